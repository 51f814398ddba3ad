# The history checker of test/history as the load of a fault: it writes and reads
# all the time, and says in the end whether a read was stale or a pin lost.

package RpinFaultLoad;

use strict;
use warnings;

use Exporter qw(import);
use JSON::PP ();
use POSIX qw(mkfifo WNOHANG);
use PostgreSQL::Test::Utils;
use RpinTest;

our @EXPORT = qw(start_load);

my @violations = qw(stale lost_pin monotonic divergent);
my ($number, $running) = (0, 0);

END
{
	my $status = $?;
	kill 'KILL', $running if $running;
	$? = $status;
}

# Begins, and returns when replicas are read.
#
#	mode, seed, primary => node, replicas => [ nodes ]
sub start_load
{
	my (%options) = @_;
	my $files = PostgreSQL::Test::Utils::tempdir() . '/load' . ++$number;
	my $self = bless { files => $files, mode => $options{mode} }, __PACKAGE__;
	my @command = ($ENV{RPIN_HISTORY}, '--mode', $options{mode}, '--seed', $options{seed},
		'--primary', conninfo($options{primary}), node_option('--spare', $options{primary}),
		(map { node_option('--replica', $_) } @{ $options{replicas} }),
		qw(--writers 2 --readers 3 --keys 16 --seconds 86400 --sample-lifetime 2000 --verbose),
		'--report', "$files.json", '--control', "$files.fifo");

	mkfifo("$files.fifo", 0600) or die "$files.fifo: $!";
	# held open for both, so that neither waits for the other
	open $self->{control}, '+<', "$files.fifo" or die "$files.fifo: $!";
	$self->{control}->autoflush(1);
	open my $log, '>', "$files.log" or die "$files.log: $!";
	$self->{pid} = $running = fork // die "could not fork: $!";
	if ($self->{pid} == 0)
	{
		open STDOUT, '>&', $log or POSIX::_exit(127);
		open STDERR, '>&', \*STDOUT or POSIX::_exit(127);
		exec @command or POSIX::_exit(127);
	}
	poll_until(sub { slurp_file("$files.log") =~ /, [1-9]\d* reads on replicas/ || $self->ended })
	  or die 'the load does not read: ' . slurp_file("$files.log");
	die 'the load ended: ' . slurp_file("$files.log") if $self->ended;
	return $self;
}

sub conninfo
{
	my ($node) = @_;
	return $node->connstr('postgres');
}

sub node_option
{
	my ($option, $node) = @_;
	return ($option, $node->name . '=' . conninfo($node));
}

sub ended
{
	my ($self) = @_;
	return 0 unless $running;
	return waitpid($self->{pid}, WNOHANG) == 0 ? 0 : ($running = 0, 1)[1];
}

sub say_to
{
	my ($self, $command) = @_;
	print { $self->{control} } "$command\n";
	return;
}

sub mark { my ($self, $name) = @_; $self->say_to("mark $name"); return; }

sub primary { my ($self, $node) = @_; $self->say_to('primary ' . conninfo($node)); return; }

# Ends. { wrong => [ what was wrong ], text, writes, reads, stale }
sub stop
{
	my ($self) = @_;
	my $file = "$self->{files}.json";
	my %result = (mode => $self->{mode}, wrong => [], text => 'the load failed', writes => 0, reads => 0, stale => 0);

	$self->say_to('stop');
	my $ended = poll_until(sub { !$running || $self->ended }, 90);
	if (!$ended || !-s $file)
	{
		push @{ $result{wrong} }, 'the load gave no report: ' . slurp_file("$self->{files}.log");
		kill 'KILL', $self->{pid};
		return \%result;
	}
	my $report = JSON::PP::decode_json(slurp_file($file));
	my %seen = map { $_ => $report->{violations}{$_}{surviving} } @violations;
	$seen{lost_commits} = $report->{lost_commits};
	push @{ $result{wrong} }, map { "the load saw $_: $seen{$_}" } grep { $seen{$_} } sort keys %seen;
	push @{ $result{wrong} }, slurp_file("$self->{files}.log") =~ s/^.*reads on replicas, .*\n//gmr if @{ $result{wrong} };
	@result{qw(writes reads stale)} = (@{ $report->{counts} }{qw(commits reads_replica)}, $seen{stale});
	$result{reasons} = $report->{reasons};
	$result{text} = sprintf '%s, %d commits, %d reads on replicas, %d stale', @result{qw(mode writes reads stale)};
	return \%result;
}

1;
