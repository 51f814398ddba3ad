# A cluster that Patroni made and leads, with the files of examples/patroni: the
# extension is added to it as it runs, then the leader hands over, and then one is
# killed and comes back. An application writes, asks the leader, and reads, all the
# while.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use RpinMore qw(value sqlstate);
use RpinPatroni;
use RpinProcess;
use RpinTest;
use Test::More;

my @members = start_members();
my ($first, $second) = @members;
my %member = map { $_->name => $_ } @members;

# --- the extension ------------------------------------------------------------------

append_to_file(sampler_passfile(), "*:*:*:sampler:secret-of-sampler\n");
chmod 0600, sampler_passfile();
ask($first, <<'END');
CREATE ROLE sampler LOGIN PASSWORD 'secret-of-sampler';
CREATE TABLE note (id integer PRIMARY KEY);
CREATE EXTENSION replica_pin;
END
apply_example();

sub pending_restart { return grep { $_->state->{pending_restart} } @members }

is(poll_until(sub { pending_restart() == 3 }), 1, 'Patroni says of each member that it has to be restarted');
is(route($first, 'user:1')->{reason}, 'not_preloaded', '... until then decisions are the primary');
patronictl(qw(restart notes --force));
is(poll_until(sub { pending_restart() == 0 }), 1, '... and it restarts them');

# The sampler of this leader has the others, and itself, and nothing is wrong.
sub is_settled
{
	my ($leader, $when) = @_;
	my %expected = map { $_->name => $_ == $leader ? 'self' : 'sampled' } @members;
	my %seen;
	poll_until(
		sub {
			%seen = map { $_->{name} => $_->{state} } rows($leader, 'SELECT name, state FROM replica_pin.replicas');
			return join(' ', %seen{qw(db0 db1 db2)}) eq join(' ', %expected{qw(db0 db1 db2)});
		});
	is_deeply(\%seen, \%expected, "$when: the leader has found itself and samples the others");
	my $problems;
	poll_until(sub { $problems = ask($leader, q{SELECT string_agg(problem || ' ' || subject, ', ') FROM replica_pin.check_setup()}); return $problems eq '' });
	is($problems, '', '... check_setup() finds nothing');
	return;
}
is_settled($first, 'at first');

# --- the application ----------------------------------------------------------------

my $note = 0;
my %count;
my %client;

# A connection that is kept until it breaks.
sub client
{
	my ($member) = @_;
	my $name = $member->name;
	$client{$name} //= RpinMore->connect($member);
	return $client{$name};
}

# An answer, or nothing when the server is gone or refuses.
sub asked_of
{
	my ($member, $sql) = @_;
	my $client = client($member) or return;
	my $answer = $client->query($sql);
	delete $client{ $member->name } unless $answer->{status};
	return $answer;
}

# Who is not in recovery, as a driver finds out that is given all the addresses.
sub writable
{
	my ($found) = grep { (value(asked_of($_, 'SELECT pg_is_in_recovery()') // {}) // '') eq 'f' } @members;
	return $found;
}

# Counts an answer, if it is one, and how often the note was not there.
sub count_read
{
	my ($kind, $answer) = @_;
	return 0 if !$answer || $answer->{error} || !$answer->{status};
	$count{$kind}++;
	$count{"stale_$kind"}++ if value($answer) == 0;
	return 1;
}

sub decision_of
{
	my ($leader) = @_;
	my $answer = asked_of($leader, q{SELECT replica, required FROM replica_pin.route('user:1')});
	return @{ $answer->{rows}[0] // [] };
}

sub play_round
{
	$count{rounds}++;
	my $leader = writable();
	my $id = $note + 1;
	my $read = "SELECT count(*) FROM note WHERE id = $id";
	my $written = $leader
	  && asked_of($leader, "BEGIN; SET LOCAL replica_pin.session_key = 'user:1'; INSERT INTO note VALUES ($id); COMMIT");
	if (!$written || $written->{error} || $written->{status} ne 'I')
	{
		$count{failed}++;
		$note += 2;
		return 0;
	}
	$note = $id;
	for my $other (grep { $_ != $leader } @members)
	{
		count_read('unasked', asked_of($other, $read));
	}
	my ($replica, $required) = decision_of($leader);
	# some are patient, until a replica has it
	poll_until(sub { ($replica, $required) = decision_of($leader); return defined $replica }, 0.3)
	  if $count{rounds} % 5 == 0;
	if (defined $replica)
	{
		return 1 if count_read('replica', asked_of($member{$replica}, "CALL replica_pin.require('$required'); $read"));
		$count{refused}++;
	}
	count_read('primary', asked_of($leader, $read));
	return 1;
}

# Rounds until something is true.
sub play_until
{
	my ($question, $seconds) = @_;
	return poll_until(sub { play_round(); return $question->() }, $seconds);
}

sub play_rounds
{
	my ($wanted) = @_;
	my $end = ($count{rounds} // 0) + $wanted;
	return play_until(sub { $count{rounds} >= $end });
}

sub report
{
	my ($when) = @_;
	$_ //= 0 for @count{qw(rounds failed replica primary refused unasked stale_replica stale_primary stale_unasked)};
	is($count{stale_replica} + $count{stale_primary}, 0,
		"$when: no stale read of $count{replica} on replicas and $count{primary} on the primary");
	cmp_ok($count{replica}, '>', 0, "... in $count{rounds} rounds, of which $count{failed} had nobody to write to");
	cmp_ok($count{stale_unasked}, '>', 0, "... $count{stale_unasked} of $count{unasked} without asking");
	note("require refused $count{refused}");
	%count = ();
	return;
}

play_rounds(100);
report('a leader that stays');

# --- switchover ----------------------------------------------------------------------

sub follows
{
	my ($member, $leader) = @_;
	my ($state, $leading) = map { $_->state } $member, $leader;
	return $state->{role} eq 'replica' && $state->{state} eq 'running' && ($state->{timeline} // 0) == ($leading->{timeline} // -1);
}

my $token = pin($first, 'user:2');
wait_for_replay($first, grep { $_ != $first } @members);
{
	my $offset = -s $second->logfile;
	my $switchover = start_process($first->logfile, 'patronictl', '-c', $first->file,
		qw(switchover notes --force --leader), $first->name, '--candidate', $second->name);
	ok(play_until(sub { my $leader = writable(); return $leader && $leader == $second }), 'switchover: another one leads');
	ok(play_until(sub { !is_running($switchover) }), '... which patronictl waits for');
	ok(play_until(sub { follows($first, $second) }), '... and the old one follows');
	is_settled($second, 'switchover');
	play_rounds(50);
	report('switchover');
	note grep { /is now/ } split /^/m, slurp_file($second->logfile, $offset);
}

{
	my $renewed = route_token($second, $token);
	isnt($renewed->{required}, $token, 'a token of before is restated');
	is(ask($second, "SELECT replica_pin.token_lsn('$renewed->{required}') = replica_pin.token_lsn('$token')"), 't', '... on the new timeline');
	my $client = client($first);
	is(sqlstate($client->query("CALL replica_pin.require('$token')")), 'RP002', '... which a replica asks for');
	is(sqlstate($client->query("CALL replica_pin.require('$renewed->{required}')")), '', '... and is content with');
}

# --- failover ------------------------------------------------------------------------

# The leader dies with a commit that it has sent to nobody.
sub crash_leader
{
	my ($dying) = @_;
	my $end = flushed_lsn($dying);
	poll_until(sub { ask($dying, "SELECT count(*) FROM pg_stat_replication WHERE flush_lsn >= '$end'") == 2 })
	  or die 'the replicas do not follow';
	my @walsenders = split /\n/, ask($dying, 'SELECT pid FROM pg_stat_replication');
	freeze(@walsenders);
	ask($dying, 'INSERT INTO note VALUES (0)');
	my $lost = ask($dying, 'SELECT replica_pin.current_token()');
	$dying->crash;
	kill 'KILL', @walsenders;
	return $lost;
}

my $lost = crash_leader($second);
ok(play_until(sub { writable() }), 'failover: there is a new leader');
my $third = writable();
ok(wait_for_state($third, $second->name, 'unreachable'), '... the old one is down');
play_rounds(50);
is(is_pinned($third, 'nobody'), 1, '... and is_pinned is true for every key');
is_deeply([ @{ route_token($third, $lost) }{qw(reason required)} ], [ 'write_lost', undef ], '... a token of what the failover lost says so');
apply_example($second->name);
ok(poll_until(sub { !is_pinned($third, 'nobody') }), '... until it is taken out of the list');
apply_example();
my $offset = -s $third->logfile;
my $rewound = -s $second->logfile;
$second->start;
ok(play_until(sub { follows($second, $third) }), '... the old leader comes back');
like(slurp_file($second->logfile, $rewound), qr/pg_rewind/, '... by pg_rewind');
is_settled($third, 'failover');
ok(poll_until(sub { !is_pinned($third, 'nobody') }), '... and is_pinned has an end');
is(ask($second, 'SELECT count(*) FROM note WHERE id = 0'), 0, '... without the lost write');
play_rounds(50);
report('failover');
note grep { /is now/ } split /^/m, slurp_file($third->logfile, $offset);

done_testing();
