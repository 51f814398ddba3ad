# What a fault must not leave behind: lines in the servers' logs that only a crash
# writes, and a sampler that holds more than before.

package RpinFaultDamage;

use strict;
use warnings;

use Exporter qw(import);
use PostgreSQL::Test::Utils;
use RpinFaults;
use RpinTest;

our @EXPORT = qw(soon damage growth_before grown);

my $shown_within = 20;    # seconds, for what must show
my $memory_margin = 2048;    # kB that the sampler may have more than at first
my $first_memory;

# Waits until a question has a true answer; one that fails has none.
sub soon
{
	my ($question, $seconds) = @_;
	return poll_until(sub { eval { $question->() } }, $seconds // $shown_within);
}

# What the servers' logs have that only a crash writes, unless the fault is one.
sub damage
{
	my ($played, $offset) = @_;
	my @allowed = map { $_->{damage} // () } @$played;
	my @damage;
	for my $node (nodes())
	{
		for my $line (split /\n/, slurp_file($node->logfile, $offset->{ $node->name }))
		{
			next unless $line =~ /PANIC|TRAP:|was terminated by signal|exited with exit code (?![01]\b)/;
			next if grep { $line =~ $_ } @allowed;
			push @damage, $node->name . ": $line";
		}
	}
	return @damage;
}

# Of the sampler: descriptors, private memory, and connections on the replicas.
sub growth_of
{
	my $pid = sampler_pid(asked()) or die 'no sampler';
	my ($memory) = slurp_file("/proc/$pid/status") =~ /^RssAnon:\s+(\d+)/m;
	my %growth = (descriptors => scalar(() = glob "/proc/$pid/fd/*"), memory => $memory);
	for my $role (qw(first second cascaded))
	{
		$growth{"connections to $role"} = ask(asked($role),
			q{SELECT count(*) FROM pg_stat_activity WHERE application_name = 'replica_pin sampler'});
	}
	return \%growth;
}

# Before a fault.
sub growth_before
{
	my $before;
	soon(sub { $before = growth_of() }) or die 'there is no sampler';
	$first_memory //= $before->{memory};
	return $before;
}

sub grown
{
	my ($before) = @_;
	my @grown;
	soon(
		sub {
			my $after = growth_of();
			@grown = map { "$_ of the sampler: $before->{$_}, now $after->{$_}" }
			  grep { $_ ne 'memory' && $after->{$_} > $before->{$_} } sort keys %$after;
			push @grown, "memory of the sampler: $first_memory kB at first, now $after->{memory} kB"
			  if $after->{memory} > $first_memory + $memory_margin;
			return !@grown;
		})
	  or @grown or @grown = ('the sampler is not there any more');
	return @grown;
}

1;
