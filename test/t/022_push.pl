# The push of a commit's token can hurt nobody: not where there is no client to
# push to, not when the client never reads, not when there is no memory for it.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use RpinMore qw(value sqlstate);
use RpinTest;
use Test::More;

# Seconds within which a stalled session ends.
my $soon = 10;

my $primary = new_primary('primary', <<'END');
shared_preload_libraries = 'replica_pin, rpin_test'
wal_level = logical
autovacuum = on
autovacuum_naptime = 1s
END

# A database in which everything that commits has the push on and pins a key; this
# session has one of its own.
ask($primary, 'CREATE DATABASE push');
ask($primary, <<'END');
ALTER DATABASE push SET replica_pin.report_commit_token = on;
ALTER DATABASE push SET replica_pin.session_key = 'everything';
END
my $push = connect_to('push');
run($push, $_) for (
	"SET replica_pin.session_key = 'own'",
	'CREATE EXTENSION replica_pin', 'CREATE EXTENSION rpin_test',
	'CREATE TABLE note (id serial PRIMARY KEY, body text)',
	'CREATE TABLE loop (id integer)',
	'CREATE TABLE churn (id integer)',
	'ALTER TABLE churn SET (autovacuum_vacuum_threshold = 1, autovacuum_analyze_threshold = 1)');

# Would be gone after a PANIC, which ends every session.
my $survivor = connect_to('postgres');

# --- sessions -------------------------------------------------------------------

sub connect_to
{
	my ($database, %options) = @_;
	return RpinMore->connect_soon($primary, database => $database, %options);
}

# What RpinMore's answer() tells, and the tokens and notices that came with it.
sub hear
{
	my ($client) = @_;
	my %answer = (tokens => [], notices => [], tags => [], error => undef, status => '');

	while (my ($type, $body) = $client->read_message)
	{
		my ($name, $value) = $type eq 'S' ? unpack 'Z* Z*', $body : ('', '');
		push @{ $answer{tokens} }, $value if $name eq 'replica_pin.commit_token';
		push @{ $answer{notices} }, RpinMore::fields($body)->{M} if $type eq 'N';
		push @{ $answer{tags} }, unpack 'Z*', $body if $type eq 'C';
		$answer{error} //= RpinMore::fields($body) if $type eq 'E';
		$answer{status} = $body if $type eq 'Z';
		last if $type eq 'Z';
	}
	return \%answer;
}

# The same of a statement that must succeed.
sub run
{
	my ($client, $sql) = @_;
	$client->send_query($sql);
	my $answer = hear($client);
	die "$sql: $answer->{error}{M}" if $answer->{error};
	return $answer;
}

sub value_of { return value($_[0]->query($_[1])) }

sub pid_of { return value_of($_[0], 'SELECT pg_backend_pid()') }

# The position of a key, which a commit of the session recorded.
sub position_of { return value_of($_[0], "SELECT required FROM replica_pin.route('$_[1]')") }

sub count_of { return value_of($push, "SELECT count(*) FROM $_[0]") }

# Waits until a backend waits for an advisory lock.
sub wait_for_lock
{
	my ($pid) = @_;
	my $sql = "SELECT wait_event FROM pg_stat_activity WHERE pid = $pid";
	poll_until(sub { (value_of($survivor, $sql) // '') eq 'advisory' }) or die 'it does not wait';
	return;
}

# The survivor's word on a backend: what it does and how many locks it holds.
sub doing
{
	my ($pid) = @_;
	return value_of($survivor, <<"END") // 'gone';
SELECT CASE WHEN wait_event = 'ClientWrite' THEN 'writes to its client' ELSE state END
  || ', ' || (SELECT count(*) FROM pg_locks l WHERE l.pid = a.pid) || ' locks'
FROM pg_stat_activity a WHERE a.pid = $pid
END
}

sub terminate
{
	my ($pid, $name) = @_;
	is(value_of($survivor, "SELECT pg_terminate_backend($pid, ${soon}000)"), 't', $name);
	return;
}

# --- no client to push to -------------------------------------------------------

sub commits_in_background
{
	my ($name, $work) = @_;
	my $before = position_of($survivor, 'everything');
	$work->();
	ok(poll_until(sub { position_of($survivor, 'everything') gt $before }, $soon),
		"$name pins the key of its database");
	return;
}

commits_in_background('a background worker', sub {
	run($push, q{SELECT rpin_test_worker('push', 'INSERT INTO note (body) VALUES (''worker'')', 20)});
	is(count_of("note WHERE body = 'worker'"), 20, 'a background worker commits');
});

# Both ends in one cluster: the slot has to be there before.
commits_in_background('logical replication', sub {
	my $source = connect_to('postgres');
	run($push, 'CREATE TABLE copied (id integer PRIMARY KEY)');
	run($source, $_) for (
		'CREATE TABLE copied (id integer PRIMARY KEY)',
		'INSERT INTO copied SELECT generate_series(1, 100)',
		'CREATE PUBLICATION copies FOR TABLE copied',
		"SELECT pg_create_logical_replication_slot('copies', 'pgoutput')");
	run($push, sprintf q{CREATE SUBSCRIPTION copies CONNECTION 'host=%s port=%s dbname=postgres'
		PUBLICATION copies WITH (create_slot = false)}, $primary->host, $primary->port);
	ok(poll_until(sub { count_of('copied') == 100 }), 'rows of before are copied');

	my $pid_sql = "SELECT pid FROM pg_stat_subscription WHERE relid IS NULL";
	my $pid = value_of($push, $pid_sql);
	run($source, "INSERT INTO copied VALUES ($_)") for 101 .. 150;
	ok(poll_until(sub { count_of('copied') == 150 }), 'rows of after are applied');
	is(value_of($push, $pid_sql), $pid, '... by one and the same process');
	run($push, 'DROP SUBSCRIPTION copies');
});

# Parallel workers commit as well, a transaction without a write.
run($push, $_) for (
	'CREATE TABLE big AS SELECT generate_series(1, 20000) id',
	'ALTER TABLE big SET (parallel_workers = 2)',
	'SET parallel_setup_cost = 0',
	'SET parallel_tuple_cost = 0',
	'BEGIN',
	"INSERT INTO note (body) VALUES ('parallel')");
my $plan = $push->query('EXPLAIN (ANALYZE) SELECT count(*) FROM big WHERE id % 7 = 0');
like(join("\n", map { $_->[0] } @{ $plan->{rows} }), qr/Workers Launched: [1-9]/, 'workers are launched');
is_deeply(run($push, 'COMMIT')->{tokens}, [ position_of($push, 'own') ], 'the leader pushes the token, once');

run($push, 'SET client_min_messages = debug1');
my $build = run($push, 'CREATE INDEX ON big (id)');
like("@{ $build->{notices} }", qr/with request for [1-9]\d* parallel worker/, 'an index is built in parallel');
is_deeply($build->{tokens}, [ position_of($push, 'own') ], 'the leader pushes the token, once');
run($push, 'RESET client_min_messages');

commits_in_background('autovacuum', sub {
	my $writes = connect_to('push');
	run($writes, $_) for (
		'SET replica_pin.session_key = another',
		'INSERT INTO churn SELECT generate_series(1, 1000)',
		'DELETE FROM churn');
	ok(poll_until(sub {
		value_of($push, "SELECT autovacuum_count * autoanalyze_count > 0 FROM pg_stat_user_tables"
			  . " WHERE relname = 'churn'") eq 't'
	}), 'autovacuum does its work');
});

# --- a walsender is a client ----------------------------------------------------

{
	my $walsender = connect_to('push', replication => 'database');
	run($walsender, "SET replica_pin.session_key = 'walsender'");
	my $answer = run($walsender, "INSERT INTO note (body) VALUES ('walsender')");
	is_deeply($answer->{tokens}, [ position_of($push, 'walsender') ], 'a commit of a walsender pushes its token');
	is(count_of("note WHERE body = 'walsender'"), 1, '... and is there');
	like(value_of($walsender, 'IDENTIFY_SYSTEM'), qr/^\d+$/, '... which still answers');
}

# --- no memory for the message --------------------------------------------------

{
	my $client = connect_to('push');
	my $pid = pid_of($client);
	my $insert = "INSERT INTO note (body) VALUES ('unsent')";

	run($push, 'SELECT pg_advisory_lock(1)');
	run($client, "SET replica_pin.session_key = 'unsent'");
	run($client, 'SET rpin_test.fail_send = on');
	my @statements = ($insert, "BEGIN; $insert; COMMIT", "DO \$\$ BEGIN $insert; COMMIT; $insert; END \$\$");
	for my $statement (@statements)
	{
		my $answer = run($client, $statement);
		is_deeply($answer->{tokens}, [], "no token: $statement");
		is($answer->{status}, 'I', '... and the commit succeeds');
	}
	is(count_of("note WHERE body = 'unsent'"), 4, 'every row is there');
	my $missed = position_of($push, 'unsent');

	# Whoever holds interrupts back for too long cannot be interrupted any more.
	my $waits = 'SELECT pg_advisory_lock(1)';
	run($client, "SET statement_timeout = '100ms'");
	is(sqlstate($client->query($waits)), '57014', 'a statement can still time out');
	run($client, 'SET statement_timeout = 0');
	$client->send_query($waits);
	wait_for_lock($pid);
	run($survivor, "SELECT pg_cancel_backend($pid)");
	is(sqlstate($client->answer), '57014', 'can still be cancelled');

	run($client, 'SET rpin_test.fail_send = off');
	my $tokens = run($client, $insert)->{tokens};
	is_deeply($tokens, [ position_of($push, 'unsent') ], 'the next commit pushes its token');
	cmp_ok($tokens->[0], 'gt', $missed, '... which covers what was missed');

	$client->send_query($waits);
	wait_for_lock($pid);
	terminate($pid, 'can still be terminated');
}

# --- a client that does not read ------------------------------------------------

# A session that pins a key of its own, and its backend.
sub unread_session
{
	my ($on) = @_;
	my $client = connect_to('push');
	run($client, $_) for (
		"SET replica_pin.report_commit_token = $on",
		"SET replica_pin.session_key = 'unread $on'",
		'SET synchronous_commit = off');
	return ($client, pid_of($client));
}

# Sends statements that commit until neither side gets any further.
sub flood
{
	my ($client, $pid) = @_;
	my $messages = RpinMore::message('Q', "INSERT INTO note (body) VALUES ('flood')\0") x 1000;
	my $rest = '';
	$client->{socket}->blocking(0);
	return poll_until(sub {
		$rest = $messages if $rest eq '';
		my $written = syswrite $client->{socket}, $rest;
		substr($rest, 0, $written, '') if $written;
		return !$written && doing($pid) =~ /^writes/;
	});
}

for my $on (qw(off on))
{
	my ($client, $pid) = unread_session($on);
	ok(flood($client, $pid), "push $on: thousands of commits, unread, stall");
	is(doing($pid), 'writes to its client, 0 locks', "push $on: the stalled session holds no lock");
	terminate($pid, "push $on: and can be terminated");
}

# One statement that commits 100,000 times: nothing is sent in between, unless
# the tokens are.
my $commits = 100_000;
my $many = statement_of($commits);

sub statement_of
{
	my ($count, $end) = @_;
	return "DO 'BEGIN FOR i IN 1..$count LOOP INSERT INTO loop VALUES (i); COMMIT; END LOOP; "
	  . ($end // '') . "END'";
}

# Lets a session commit without an end, and waits until it has done so more often
# than the socket has room for, or gets no further.
sub commit_for_ever
{
	my ($client, $pid) = @_;
	my $before = count_of('loop');
	$client->send_query(statement_of(1_000_000_000));
	return poll_until(sub { doing($pid) =~ /^writes/ || count_of('loop') > $before + 10_000 });
}

# kB that only this process has.
sub own_memory
{
	my ($pid) = @_;
	return slurp_file("/proc/$pid/status") =~ /^RssAnon:\s*(\d+)/m ? $1 : die 'no RssAnon';
}

# Runs it, waits until it is over or gets no further, and reads only then.
sub commit_unread
{
	my ($on) = @_;
	my ($client, $pid) = unread_session($on);
	my $begin = position_of($client, "unread $on");
	my $does = '';
	$client->send_query($many);
	poll_until(sub { position_of($survivor, "unread $on") gt $begin });
	poll_until(sub { $does = doing($pid); $does =~ /^(idle|writes)/ });
	like($does, qr/, 0 locks$/, "push $on: $commits commits in one statement, unread, keep no lock");
	return ends_with_token($on, $client, $pid);
}

# Reads the answer; what memory the backend has then.
sub ends_with_token
{
	my ($on, $client, $pid) = @_;
	my $answer = hear($client);
	is_deeply([ $answer->{error}, @{ $answer->{tags} } ], [ undef, 'DO' ], "push $on: read, it ends");
	is($answer->{tokens}[-1], $on eq 'on' ? position_of($survivor, "unread $on") : undef,
		"push $on: the last token is that of the last commit");
	my $memory = own_memory($pid);
	terminate($pid, "push $on: and can be terminated");
	return $memory;
}

# The second session stops committing a little before the first got stuck, if it
# did: then what is left to be sent is more than the socket would take, while the
# session waits for something else.
for my $on (qw(off on))
{
	my $before = count_of('loop');
	my ($client, $pid) = unread_session($on);
	ok(commit_for_ever($client, $pid), "push $on: commits without an end in one statement");
	my $fit = count_of('loop') - $before - 20;
	terminate($pid, "push $on: and can be terminated");

	($client, $pid) = unread_session($on);
	$client->send_query(statement_of($fit, 'PERFORM pg_advisory_lock(1); '));
	wait_for_lock($pid);
	terminate($pid, "push $on: also while it does something else");
}

{
	my $without = commit_unread('off');
	my %with = (unread => commit_unread('on'));
	my ($client, $pid) = unread_session('on');
	$client->send_query($many);
	$with{'read at once'} = ends_with_token('on', $client, $pid);
	cmp_ok($with{$_} - $without, '<', 1024, "the tokens of $commits commits, $_, stay in no buffer")
	  for sort keys %with;
}

# An error afterwards does not undo the commits, nor their last token.
{
	my ($client, $pid) = unread_session('on');
	$client->send_query(statement_of(2000, 'RAISE division_by_zero; '));
	my $answer = hear($client);
	is($answer->{error}{C}, '22012', 'a statement fails after its commits');
	is($answer->{tokens}[-1], position_of($survivor, 'unread on'), '... and the last token is that of the last commit');
}

# --- the server lives -----------------------------------------------------------

is(value_of($survivor, 'SELECT pending_keys FROM replica_pin.status'), 0, 'nothing is pending');

sub stops_soon
{
	my ($name) = @_;
	local $ENV{PGCTLTIMEOUT} = $soon;
	ok($primary->stop('fast', fail_ok => 1), $name) or $primary->stop('immediate');
	return;
}

{
	my ($client, $pid) = unread_session('on');
	my ($statement, $statement_pid) = unread_session('on');
	ok(flood($client, $pid), 'a session stalls');
	ok(commit_for_ever($statement, $statement_pid), 'another one commits without an end');
	stops_soon('fast shutdown stops both');
}

my $log = slurp_file($primary->logfile);
unlike($log, qr/PANIC|TRAP|was terminated by signal|terminating any other active/, 'no process crashed');
is_deeply([ grep { /(?:ERROR|WARNING): / && !/canceling statement due to|division_by_zero/ } split /\n/, $log ], [],
	'no error but those that were asked for');

# --- without a postmaster -------------------------------------------------------

{
	my ($output, $errors) = ('', '');
	my $ok = IPC::Run::run([ 'postgres', '--single', '-D', $primary->data_dir, 'push' ],
		'<', \"INSERT INTO note (body) VALUES ('single')\n", '>', \$output, '2>', \$errors);
	ok($ok, 'a standalone server commits') or diag($output, $errors);
	unlike($output . $errors, qr/PANIC|ERROR|FATAL|commit_token/, '... and pushes nothing');
}

$primary->start;
$push = connect_to('push');
is(count_of("note WHERE body = 'single'"), 1, 'its row is there');
is(scalar @{ run($push, "INSERT INTO note (body) VALUES ('after')")->{tokens} }, 1, 'a commit pushes its token');

done_testing();
