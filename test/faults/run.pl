# Plays faults on a real cluster under load, and checks what each must show.
# script/faults runs this, as user postgres, in a network namespace of its own.
#
# usage: run.pl [--smoke | --minutes N | --control] [--seed N] [part of a name ...]
#
# A fault of the tables in this directory is its name and a hash:
#	on	the roles that it touches; two that share one are not played together
#	cause	makes it happen. Gets { smoke => 1 or 0 }
#	undo	ends it
#	must	what must show while it lasts
#		(of two at once, only what the view says of each role: what is over may not
#		have been seen, when the sampler was away just then)
#		state	{ role => regex }: in the view replicas of the primary
#		error	{ role => regex }: last_error there
#		logged	{ role => regex }: a state that the primary's log must name
#		named, reason	a key that was written in the fault: the roles that route()
#			names for it in the end, in the order of the list, and its reason
#		also	a function that answers what is wrong, or nothing
#	blind	the sampler sees nothing new meanwhile
#	mode	of the load, if it must be this one
#	hold	seconds that it lasts
#	damage	what may stand in a server's log of what is otherwise a crash
#	free	seconds after which all keys must be free again

use strict;
use warnings;

my $terminal;
BEGIN { open $terminal, '>&', \*STDOUT; }    # before it becomes the log

use FindBin;
use Getopt::Long;
use List::Util qw(shuffle sum0);
use PostgreSQL::Test::Utils;
use RpinFaultDamage;
use RpinFaultLoad;
use RpinFaults;
use RpinTest;
use Test::More;
use Time::HiRes qw(time);

my %option = (seed => time % 2**31);
GetOptions(\%option, qw(smoke minutes=f control seed=i)) or die "see the head of $0\n";
srand $option{seed};
$RpinTest::patience = 30;
$terminal->autoflush(1);

my $free_within = 15;    # seconds, unless a fault says otherwise
my $settle_within = 60;    # after which the cluster is repaired
my @modes = qw(direct require token);    # of the load, in turns
my $smoke = $option{minutes} ? 0 : 1;
require "$FindBin::Bin/$_.pl" for qw(replay processes restarts failover network impostors load);
my @faults = all_faults();
my (@results, $decided);

# --- all of it -----------------------------------------------------------------

eval { new_cluster(); 1 } or broke();
print $terminal "seed $option{seed}\n";
eval { $option{control} ? play_control() : $smoke ? play_all() : play_at_random($option{minutes}); 1 }
  or broke();

my $failed = grep { @{ $_->{wrong} } } @results;
sum_up() unless $option{control};
write_markdown($ENV{RPIN_MARKDOWN}) if $ENV{RPIN_MARKDOWN};
printf $terminal "%d passed, %d failed\n", @results - $failed, $failed;
exit($failed ? 1 : 0);

# --- playing -----------------------------------------------------------------

# What is broken here, and no fault: else it would be in the log alone.
sub broke
{
	print $terminal "Bail out!  $@";
	exit 1;
}

sub play
{
	my (@played) = @_;
	my %result = (name => join(' + ', map { $_->{name} } @played), faults => \@played, wrong => []);
	my $wrong = $result{wrong};
	my $begin = time;

	my $before = growth_before();
	my %offset = map { $_->name => -s $_->logfile } nodes();
	my ($mode) = map { $_->{mode} // () } @played;
	my $load = start_load(mode => $mode // $modes[ @results % @modes ], seed => int rand 2**31,
		primary => node('primary'), replicas => [ replicas() ]);
	on_failover(sub { $load->primary(node('primary')) });
	$load->mark('cause');

	for my $fault (@played)
	{
		eval { $fault->{cause}->({ smoke => $smoke }); 1 } or push @$wrong, "cause: $@";
	}
	my $caused = time;
	push @$wrong, missing(\@played, \%offset) unless @$wrong;
	push @$wrong, meanwhile(\@played, $caused) unless @$wrong;
	$load->mark('undo');
	for my $fault (reverse @played)
	{
		next unless $fault->{undo};
		eval { $fault->{undo}->(); 1 } or push @$wrong, "undo: $@";
	}
	end_background();

	my $limit = sum0 map { $_->{free} // $free_within } @played;
	$result{free} = seconds_to_free();
	push @$wrong, "keys are not free after $settle_within s: " . why_not_free() unless defined $result{free};
	push @$wrong, sprintf 'keys are free after %.1f s, not %d s', $result{free}, $limit
	  if defined $result{free} && $result{free} > $limit;
	$result{load} = $load->stop;
	push @$wrong, @{ $result{load}{wrong} };
	push @$wrong, damage(\@played, \%offset), grown($before);
	$result{seconds} = time - $begin;

	repair() unless defined $result{free};
	return \%result;
}

# Of what must show, what does not.
sub missing
{
	my ($played, $offset) = @_;
	my @missing;
	my $blind = grep { $_->{blind} } @$played;
	for my $must (map { $_->{must} } @$played)
	{
		push @missing, map { not_seen(state => $_, $must->{state}{$_}) } sort keys %{ $must->{state} } unless $blind;
		push @missing, map { not_seen(last_error => $_, $must->{error}{$_}) } sort keys %{ $must->{error} } unless $blind;
		next if @$played > 1;
		push @missing, map { not_logged($_, $must->{logged}{$_}, $offset) } sort keys %{ $must->{logged} } unless $blind;
		push @missing, not_decided($must), $must->{also} ? $must->{also}->() : ();
	}
	return @missing;
}

sub not_seen
{
	my ($column, $role, $wanted) = @_;
	my $seen = 'nothing';
	return if soon(
		sub {
			$seen = replica_state(asked(), name_of($role))->{$column} // 'nothing';
			return $seen =~ /^(?:$wanted)/;
		});
	return "$column of $role is $seen, not $wanted";
}

sub not_logged
{
	my ($role, $wanted, $offset) = @_;
	my ($primary, $name) = (node('primary'), name_of($role));
	return if soon(
		sub { slurp_file($primary->logfile, $offset->{ $primary->name }) =~ /replica "$name" .* is now (?:$wanted)$/m });
	return "the primary's log does not say that $role was $wanted";
}

# A key that is written and pinned now.
sub pin_probe
{
	our $probe++;
	my $key = "probe:$probe";
	ask(asked(), 'UPDATE note SET body = ' . "'$probe' WHERE id = 1");
	pin(asked(), $key);
	return $key;
}

sub not_decided
{
	my ($must) = @_;
	my ($pinned, $seen, $reason) = (0, 'nothing', 'none');
	$decided = $must->{key};
	return if soon(
		sub {
			# a new one now and then: the fault may not have begun at the first
			if (!$must->{key} && time - $pinned > 1)
			{
				$decided = pin_probe();
				$pinned = time;
			}
			my $decision = route(asked(), $decided);
			$seen = join ' ', map { role_of($_) } @{ $decision->{replicas} };
			$reason = $decision->{reason};
			return $seen eq $must->{named} && $reason =~ /^(?:$must->{reason})$/
			  && is_pinned(asked(), $decided) == ($reason eq 'in_sync' ? 0 : 1);
		});
	return "route() names '$seen' ($reason), not '$must->{named}' ($must->{reason})";
}

# The fault lasts a little. Nobody is named meanwhile for the key that was written
# in it but those who are named in the end.
sub meanwhile
{
	my ($played, $caused) = @_;
	my $seconds = (sort { $b <=> $a } map { $_->{hold} // ($smoke ? 1 : rand 10) } @$played)[0];
	my $must = @$played == 1 ? $played->[0]{must} : { };
	my %safe = map { $_ => 1 } split ' ', $must->{named} // '';
	my @wrong;
	poll_until(
		sub {
			my @named = defined $must->{reason} ? named_for($decided) : ();
			@wrong = map { "route() names $_" } grep { !$safe{$_} } @named;
			return @wrong || time > $caused + $seconds;
		});
	return @wrong;
}

sub named_for
{
	my ($key) = @_;
	my $decision = eval { route(asked(), $key) } or return;
	return map { role_of($_) } @{ $decision->{replicas} };
}

# --- afterwards --------------------------------------------------------------

# Seconds until every key that was written up to now is free: each replica of the
# list is eligible and has replayed the greatest position that any key needs.
sub seconds_to_free
{
	my $begin = time;
	my ($greatest, $probe);
	my $free = soon(
		sub {
			$probe //= pin_probe();
			$greatest //= ask(asked(), 'SELECT greatest_lsn FROM replica_pin.status');
			return ask(asked(), <<"END") eq 't' && !is_pinned(asked(), $probe);
SELECT count(*) = 3 AND bool_and(eligible AND replay_lsn >= '$greatest')
FROM replica_pin.replicas WHERE state <> 'self'
END
		},
		$settle_within);
	return $free ? time - $begin : undef;
}

sub why_not_free
{
	return eval { join ', ', map { "$_->{name} $_->{state} " . ($_->{last_error} // '') }
		  rows(asked(), 'SELECT name, state, last_error FROM replica_pin.replicas') } // $@;
}

# So that one failure does not make all others fail: new copies of the primary.
sub repair
{
	mend();
	my $primary = node('primary');
	my $source = $primary;
	start_again($primary) unless $primary->{_pid};
	for my $role (qw(first second cascaded))
	{
		my $backup = "repair_$role" . time;
		thaw(tree_of($role)) if node($role)->{_pid};
		$source->backup($backup);
		rebuild_from(node($role), $source, $backup);
		start_again(node($role));
		follow(node($role), $source);
		$source = node('second') if $role eq 'second';
	}
	wait_for_samples(asked(), replicas());
	return;
}

# --- telling -----------------------------------------------------------------

sub report
{
	my ($result) = @_;
	my $wrong = @{ $result->{wrong} };
	push @results, $result;
	printf $terminal "%s %d - %s: %s, free after %s, %.0f s\n", $wrong ? 'not ok' : 'ok', scalar @results,
	  $result->{name}, $result->{load}{text},
	  defined $result->{free} ? sprintf('%.1f s', $result->{free}) : 'never', $result->{seconds};
	print $terminal map { "    $_\n" } map { s/\s+$//r =~ s/\n/\n    /gr } @{ $result->{wrong} };
	return;
}

sub play_all
{
	my @chosen = grep { my $fault = $_; !@ARGV || grep { index($fault->{name}, $_) >= 0 } @ARGV } @faults;
	die "there is no such fault\n" unless @chosen;
	report(play($_)) for @chosen;
	return;
}

# Nothing is enforced: the load has to see stale reads, and the decisions have to
# be found wrong.
sub play_control
{
	my ($fault) = grep { $_->{name} eq 'replay paused on one replica' } @faults;
	configure(node('primary'), 'replica_pin.enforce_percent' => 0);
	my $result = play($fault);
	my @found = @{ $result->{wrong} };
	$result->{name} = "control, nothing enforced: $fault->{name}";
	$result->{wrong} = [ grep { my $must = $_; !grep { index($_, $must) == 0 } @found } 'the load saw stale', 'route() names' ];
	report($result);
	return;
}

sub play_at_random
{
	my ($minutes) = @_;
	my $end = time + 60 * $minutes;
	while (time < $end)
	{
		my ($one, @others) = shuffle @faults;
		my @possible = grep { compatible($one, $_) } @others;
		report(play($one, rand() < 0.5 && @possible ? $possible[0] : ()));
	}
	return;
}

sub compatible
{
	my ($one, $other) = @_;
	my %touched = map { $_ => 1 } touched_by($one);
	return !grep { $touched{$_} } touched_by($other);
}

# The roles that it happens to, and those that it says something of.
sub touched_by
{
	my ($fault) = @_;
	return (split(' ', $fault->{on}), keys %{ $fault->{must}{state} // { } });
}

# What was seen in all. If none of n was stale, the true share is below 3/n with
# 95 % confidence.
sub sum_up
{
	my %sum = map { my $what = $_; ($what => sum0 map { $_->{load}{$what} } @results) } qw(writes reads stale);
	my %reasons;
	for my $of (map { $_->{load}{reasons} // { } } @results)
	{
		$reasons{$_} += $of->{$_} for keys %$of;
	}
	printf $terminal "%d faults in %.0f s: %d commits, %d reads on replicas, %d stale%s\n", scalar @results,
	  (sum0 map { $_->{seconds} } @results), @sum{qw(writes reads stale)},
	  $sum{stale} || !$sum{reads} ? '' : sprintf ': fewer than %.2g of all, with 95 %% confidence', 3 / $sum{reads};
	print $terminal "reasons: ", join(', ', map { "$_ $reasons{$_}" } sort keys %reasons), "\n";
	return;
}

sub write_markdown
{
	my ($file) = @_;
	my %of;
	push @{ $of{ $_->{name} } }, $_ for @results;
	open my $out, '>', $file or die "$file: $!";
	print $out "| fault | times | states and reasons | writes | reads on replicas | stale | seconds until all keys are free |\n";
	print $out "|---|---|---|---|---|---|---|\n";
	for my $name (map { $_->{name} } @faults)
	{
		my $list = $of{$name} or next;
		my @free = sort { $a <=> $b } map { $_->{free} // 'never' } @$list;
		printf $out "| %s | %d | %s | %d | %d | %d | %s |\n", $name, scalar @$list,
		  must_text($list->[0]{faults}[0]{must}),
		  (map { my $what = $_; sum0 map { $_->{load}{$what} } @$list } qw(writes reads stale)),
		  @free > 1 ? sprintf('%.1f … %.1f', @free[ 0, -1 ]) : sprintf '%.1f', @free;
	}
	close $out;
	return;
}

sub must_text
{
	my ($must) = @_;
	my %state = (%{ $must->{logged} // { } }, %{ $must->{state} // { } });
	my @text = map { "$_: `" . ($state{$_} =~ s/\|/` or `/gr) . '`' } sort keys %state;
	push @text, '`' . ($must->{reason} =~ s/\|/` or `/gr) . '`' if defined $must->{reason};
	return join ', ', @text;
}
