# A message that is faster than its row: consumers that decide after they have
# resolved the id lose updates, consumers that decide before lose none, and at
# enforce_percent = 0 the counters tell what it would have cost.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use PostgreSQL::Test::Utils;
use RpinTest;
use Test::More;

my $messages = 40;
my $consumers = 2;

my ($primary, @replicas) = cluster(replicas => 2);
ask($primary, 'ALTER TABLE note ALTER id ADD GENERATED ALWAYS AS IDENTITY');
wait_for_replay($primary, @replicas);
configure($_, recovery_min_apply_delay => '300ms') for @replicas;

sub notes
{
	my (@arguments) = @_;
	my %run = (out => '', err => '');
	$run{process} = IPC::Run::start(
		[ '/usr/bin/python3', "$FindBin::RealBin/../../examples/notes/notes.py", @arguments ],
		'<', \undef, '>', \$run{out}, '2>', \$run{err});
	return \%run;
}

# Publishes to consumers of a kind. What all of them say at the end, added up.
sub run_story
{
	my ($decides) = @_;
	my @running = map {
		notes('consume', $primary->connstr('postgres'), $decides, $messages,
			map { $_->name . '=' . $_->connstr('postgres') } @replicas)
	} 1 .. $consumers;
	for my $consumer (@running)
	{
		poll_until(sub { $consumer->{process}->pump_nb; $consumer->{out} =~ /listening/ })
		  or die "a consumer does not listen: $consumer->{err}";
	}
	my $publisher = notes('publish', $primary->connstr('postgres'), $messages);
	$publisher->{process}->finish or die $publisher->{err};

	my %sum;
	for my $consumer (@running)
	{
		$consumer->{process}->finish or die $consumer->{err};
		$sum{$1} += $2 while $consumer->{out} =~ /(\w+)=(\d+)/g;
		$sum{requests} .= $consumer->{out} =~ /lost requests: (.*)/ ? $1 : '';
	}
	note(join ' ', map { "$_=$sum{$_}" } sort keys %sum);
	return %sum;
}

sub decisions
{
	my ($reason) = @_;
	return row($primary, "SELECT * FROM replica_pin.stat_decisions WHERE reason = '$reason'");
}

sub all_decisions { return ask($primary, 'SELECT sum(enforced + not_enforced) FROM replica_pin.stat_decisions'); }

my $all = $messages * $consumers;

# --- run A: after ------------------------------------------------------------

my %after = run_story('after');
is($after{delivered} + $after{lost}, $all, 'A: every consumer has heard of every note');
cmp_ok($after{lost}, '>', $all / 2, 'A: most updates are lost');

# --- run B: before -----------------------------------------------------------

ask($primary, 'SELECT replica_pin.reset_stats()');
my $offset = -s $primary->logfile;
my %before = run_story('before');
is($before{lost}, 0, 'B: none is lost');
is($before{delivered}, $all, 'B: all are delivered');
cmp_ok($before{primary}, '>', $all / 2, 'B: most of them from the primary');
is(decisions('replicas_behind')->{enforced}, $before{primary}, 'B: each of those was counted');
is(all_decisions(), $all, 'B: the counts add up to the decisions');

my $log = slurp_file($primary->logfile, $offset);
my @lines = $log =~ /(replica_pin: decision=.*)/g;
cmp_ok(scalar @lines, '>=', 1, 'B: the log says why');
is( (grep { !/^replica_pin: decision=primary reason=replicas_behind required=[0-9A-F]{16}-[0-9A-F]{8}-[0-9A-F]{16} best=r\d behind_bytes=\d+ sample_age_ms=\d+ correlation_id="request-\d+"( left_out=\d+)?$/ } @lines),
	0, 'B: in one form, with the request');
like($lines[0], qr/correlation_id="request-1"/, 'B: the first of the burst is there');

# --- run C: nothing enforced -------------------------------------------------

configure($primary, 'replica_pin.enforce_percent' => 0);
poll_until(sub { ask($primary, 'SHOW replica_pin.enforce_percent') eq '0' });
ask($primary, 'SELECT replica_pin.reset_stats()');
my %measured = run_story('before');
cmp_ok($measured{lost}, '>', $all / 2, 'C: as many are lost as in A');
is($measured{primary} // 0, 0, 'C: nothing goes to the primary');
cmp_ok(decisions('replicas_behind')->{not_enforced}, '>', $all / 2, 'C: the counters tell what B would have sent there');
is(decisions('replicas_behind')->{enforced}, 0, 'C: and that none was sent');
is(all_decisions(), $all, 'C: the counts add up to the decisions');

done_testing();
