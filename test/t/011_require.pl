# require(): the proof that every later statement of the transaction sees what a
# token covers; and the other functions on tokens, on the nodes asked.

use strict;
use warnings;

use FindBin;
use PostgreSQL::Test::Utils;
use RpinMore qw(parse bind_to execute sync value sqlstate);
use RpinTest;
use Test::More;

my ($primary, $r1, $r2) = cluster(
	replicas => 2,
	conf => "max_locks_per_transaction = 256\n");
my $reader = RpinMore->connect($r1);
my $writer = RpinMore->connect($primary);
my $note = 0;

sub current_token { return ask($_[0], 'SELECT replica_pin.current_token()') }
sub token_of_note { add_note($primary, ++$note); return current_token($primary) }
sub call_of { return "CALL replica_pin.require('$_[0]')" }

# The answer to one message of several statements; the transaction is over after.
sub answer_to
{
	my ($client, @statements) = @_;
	my $answer = $client->query(join '; ', @statements);
	$client->query('ROLLBACK') if $answer->{status} ne 'I';
	return $answer;
}

sub refused
{
	my ($state, $client, $name, @statements) = @_;
	is(sqlstate(answer_to($client, @statements)), $state, $name);
	return;
}

sub passes
{
	my ($client, $name, @statements) = @_;
	my $answer = answer_to($client, @statements);
	is($answer->{error} ? "$answer->{error}{C} $answer->{error}{M}" : 'passes', 'passes', $name);
	return $answer;
}

sub with_timeline
{
	my ($token, $timeline) = @_;
	return substr($token, 0, 17) . sprintf('%08X', $timeline) . substr($token, 25);
}

my $old = token_of_note();
wait_for_replay($primary, $r1, $r2);

# --- a replica that is behind -------------------------------------------------

pause_replay($r1);
my $new = token_of_note();
my $at = value($reader->query('SELECT pg_last_wal_replay_lsn()'));

my $refusal = $reader->query(call_of($new))->{error};
is($refusal->{C}, 'RP001', 'behind: RP001');
my $expected = value($writer->query(
	"SELECT format('It is at %s, %s bytes before %s.', '$at', "
	  . "replica_pin.token_lsn('$new') - '$at'::pg_lsn, replica_pin.token_lsn('$new'))"));
is($refusal->{D}, $expected, 'the detail says where it is and how many bytes are missing');
is(value($reader->query("SELECT replica_pin.has_replayed('$new')")), 'f', 'has_replayed agrees');
passes($reader, 'what was replayed before passes', call_of($old), 'SELECT 1');

my $lock = 'SELECT pg_advisory_lock(42)';
my $held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 42";

refused('RP001', $reader, 'in a transaction', 'BEGIN', call_of($new), $lock);
is(value($reader->query($held)), 0, 'the read behind it was not run');
refused('RP001', $reader, 'in one message without BEGIN', call_of($new), $lock);
is(value($reader->query($held)), 0, 'the read behind it was not run');

# A pipeline: everything is sent at once, one Sync ends it.
my @pipeline = (
	parse('', 'CALL replica_pin.require($1)'), bind_to('', '', $new), execute(''),
	parse('', $lock), bind_to('', ''), execute(''));
is(sqlstate($reader->exchange(@pipeline, sync())), 'RP001', 'in a pipeline');
is(value($reader->query($held)), 0, 'the read behind it was not run');
splice @pipeline, 3, 0, sync();
is(sqlstate($reader->exchange(@pipeline, sync())), 'RP001', 'with a Sync in between');
$reader->answer;
is(value($reader->query($held)), 1, 'the read is run: it takes one Sync, or BEGIN');
$reader->query('SELECT pg_advisory_unlock_all()');

# --- snapshots that are older than the proof -----------------------------------

# A function and a DO block that see the row only with a snapshot of after the
# proof; made on the primary before, so the replica has to get that far.
resume_replay($r1);
ask($primary, <<'END');
CREATE FUNCTION require_in_function(token text, wanted integer) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
  CALL replica_pin.require(token);
  RETURN (SELECT count(*) FROM note WHERE id = wanted);
END $$;
CREATE PROCEDURE require_in_procedure(token text, wanted integer, INOUT n bigint)
LANGUAGE plpgsql AS $$
BEGIN
  CALL replica_pin.require(token);
  n := (SELECT count(*) FROM note WHERE id = wanted);
END $$;
END
wait_for_replay($primary, $r1);

refused('25001', $reader, $_->[0], @{ $_->[1] })
  for (
	[ 'REPEATABLE READ', [ 'BEGIN ISOLATION LEVEL REPEATABLE READ', call_of($old) ] ],
	[ 'an open cursor', [ 'BEGIN', 'DECLARE c CURSOR FOR SELECT id FROM note', call_of($old) ] ],
	[ 'an open cursor WITH HOLD', [ 'BEGIN', 'DECLARE c CURSOR WITH HOLD FOR SELECT id FROM note', call_of($old) ] ],
	[ 'an exported snapshot', [ 'BEGIN', 'SELECT pg_export_snapshot()', call_of($old) ] ],
	[ 'a function', [ "SELECT require_in_function('$old', 1)" ] ],
	[ 'a DO block in a transaction', [ 'BEGIN', "DO 'BEGIN " . call_of($old) =~ s/'/''/gr . "; END'" ] ]);
refused('25001', $writer, 'SERIALIZABLE', 'BEGIN ISOLATION LEVEL SERIALIZABLE', call_of($old));
$reader->query("SET default_transaction_isolation = 'repeatable read'");
refused('25001', $reader, 'REPEATABLE READ as the default', call_of($old), 'SELECT 1');
$reader->query('RESET default_transaction_isolation');

# For each way to come by an early snapshot: one that a read behind a position
# check of one's own would still use, and that require() refuses.
sub early_snapshot
{
	my ($name, $begin, $read) = @_;
	my $stale = RpinMore->connect($r1);
	my $proof = RpinMore->connect($r1);

	pause_replay($r1);
	my $token = token_of_note();
	$begin->($_) for $stale, $proof;
	resume_replay($r1);
	wait_for_replay($primary, $r1);

	is(value($stale->call('SELECT pg_last_wal_replay_lsn() >= replica_pin.token_lsn($1)', $token)),
		't', "$name: the naive check passes");
	is(value($read->($stale)), 0, '... and an old row count follows');
	is(sqlstate($proof->exchange(
				parse('', 'CALL replica_pin.require($1)'), bind_to('', '', $token),
				execute(''), sync())),
		'25001', '... where require() refuses');
	$_->close for $stale, $proof;
	return;
}

sub count_sql { return "SELECT count(*) FROM note WHERE id = $note" }

early_snapshot('a portal bound early',
	sub { $_[0]->query('BEGIN'); $_[0]->exchange(parse('', count_sql()), bind_to('early', ''), sync()) },
	sub { $_[0]->exchange(execute('early'), sync()) });
early_snapshot('a cursor opened early',
	sub { $_[0]->query('BEGIN; DECLARE early CURSOR FOR ' . count_sql()) },
	sub { $_[0]->query('FETCH early') });
early_snapshot('REPEATABLE READ',
	sub { $_[0]->query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1') },
	sub { $_[0]->query(count_sql()) });

# The same in one pipeline, without BEGIN: the transaction is implicit.
{
	my $client = RpinMore->connect($r1);
	my $token = token_of_note();
	wait_for_replay($primary, $r1);
	my $answer = $client->exchange(
		parse('', count_sql()), bind_to('early', ''),
		parse('', 'CALL replica_pin.require($1)'), bind_to('', '', $token), execute(''),
		execute('early'), sync());
	is(sqlstate($answer), '25001', 'a portal bound early in a pipeline');
	is_deeply($answer->{rows}, [], '... is not executed');
}

# A procedure or a DO block outside a transaction holds no snapshot between its
# statements: refused or right are both true answers, a stale row is not.
for (
	[ 'a procedure', sub { "CALL require_in_procedure('$_[0]', $note, NULL)" } ],
	[ 'a DO block', sub { <<"END" } ])
DO \$\$
DECLARE n bigint;
BEGIN
  SELECT count(*) INTO n FROM note WHERE id = $note;
  WHILE NOT replica_pin.has_replayed('$_[0]') LOOP END LOOP;
  CALL replica_pin.require('$_[0]');
  n := (SELECT count(*) FROM note WHERE id = $note);
  RAISE EXCEPTION 'n = %', n;
END \$\$
END
{
	my ($name, $sql) = @$_;
	pause_replay($r1);
	my $token = token_of_note();
	my $client = RpinMore->connect($r1);
	resume_replay($r1) if $name eq 'a procedure';
	wait_for_replay($primary, $r1) if $name eq 'a procedure';
	$client->send_query($sql->($token));
	resume_replay($r1);
	my $answer = $client->answer;
	my $seen = sqlstate($answer) eq '25001' ? 'refused' :
	  $answer->{error} ? $answer->{error}{M} : 'n = ' . value($answer);
	like($seen, qr/^(refused|n = 1)$/, "$name: refused or right");
}

# --- where it works -------------------------------------------------------------

my $token = token_of_note();
wait_for_replay($primary, $r1, $r2);
my $count = count_sql();

for (
	[ 'alone', [ call_of($token), $count ] ],
	[ 'first in a transaction', [ 'BEGIN', call_of($token), $count, 'COMMIT' ] ],
	[ 'first in a read-only transaction', [ 'BEGIN READ ONLY', call_of($token), $count, 'COMMIT' ] ],
	[ 'twice', [ 'BEGIN', call_of($old), call_of($token), $count, 'COMMIT' ] ],
	[ 'after a read', [ 'BEGIN', 'SELECT FROM note', call_of($token), $count, 'COMMIT' ] ],
	[ 'in a subtransaction', [ 'BEGIN', 'SAVEPOINT s', call_of($token), 'RELEASE s', $count, 'COMMIT' ] ],
	[ 'after a cursor was closed', [ 'BEGIN', 'DECLARE c CURSOR FOR SELECT id FROM note', 'CLOSE c', call_of($token), $count, 'COMMIT' ] ],
	[ 'in lower case', [ call_of(lc $token), $count ] ])
{
	my ($name, $statements) = @$_;
	is_deeply(passes($reader, "passes $name", @$statements)->{rows}[-1], [1], '... and the row is seen');
}
is(value($reader->exchange(
			parse('', 'CALL replica_pin.require($1)'), bind_to('', '', $token), execute(''),
			parse('', $count), bind_to('', ''), execute(''), sync())),
	1, 'passes as a parameter, in a pipeline');
passes($writer, 'passes on the primary', call_of($token), $count);

$ENV{PGHOST} = $r1->host;
$ENV{PGPORT} = $r1->port;
pause_replay($r1);
my $late = token_of_note();
is(run_pipeline($token), '1', 'passes in a pipeline of psycopg 3');
is(run_pipeline($late), 'RP001', 'is behind in a pipeline of psycopg 3, the read is not run');
resume_replay($r1);

# The driver warns, if the error has arrived before its block ends.
sub run_pipeline
{
	my ($token) = @_;
	my ($output, $errors) = run_command(
		[ '/usr/bin/python3', "$FindBin::Bin/../drivers/pipeline_psycopg3.py", $token ]);
	note($errors) if $errors ne '';
	return $output;
}

# --- not comparable here --------------------------------------------------------

my %incomparable = (
	'another cluster' => substr($token, 0, 15) . (substr($token, 15, 1) eq '0' ? '1' : '0') . substr($token, 16),
	'another timeline' => with_timeline($token, 7),
	'timeline 0' => with_timeline($token, 0),
	'LSN 0' => substr($token, 0, 26) . '0' x 16,
	'an empty text' => '',
	'NULL' => undef,
	'garbage' => 'garbage',
	'a bare LSN' => '0/3000000',
	'a token with a blank' => " $token",
	'a token cut short' => substr($token, 0, 41),
	'two tokens' => $token . $token,
	'control characters' => "\x01\n\t",
	'42 others' => '-' x 42,
	'a megabyte' => 'A' x 1048576);

for my $name (sort keys %incomparable)
{
	my $token = $incomparable{$name};
	for my $where ([ 'replica', $reader ], [ 'primary', $writer ])
	{
		my ($node, $client) = @$where;
		is(sqlstate($client->call('CALL replica_pin.require($1)', $token)), 'RP002', "$name: RP002 on the $node");
		is(value($client->call('SELECT replica_pin.has_replayed($1)', $token)), 'f', "$name: has_replayed is false on the $node");
	}
}

# A replica may reach a position that it does not have yet; a primary made all
# there are.
my $future = substr($token, 0, 26) . '00FFFFFFFFFFFFFF';
is(sqlstate($reader->call('CALL replica_pin.require($1)', $future)), 'RP001', 'a future position is behind on a replica');
is(sqlstate($writer->call('CALL replica_pin.require($1)', $future)), 'RP002', 'a future position is nobody\'s on a primary');
is(value($_->call('SELECT replica_pin.has_replayed($1)', $future)), 'f', 'a future position is not replayed')
  for $reader, $writer;

# --- tokens ----------------------------------------------------------------------

is(value($reader->call(q{SELECT replica_pin.token_lsn($1) = '1/ABCD'}, '00000000000000FF-00000001-000000010000ABCD')), 't', 'token_lsn');
is(value($reader->call('SELECT replica_pin.token_lsn($1)', $_)), undef, 'token_lsn of what is no token is NULL')
  for undef, '', 'garbage', '0/ABCD', with_timeline($token, 0);
is(value($writer->call('SELECT replica_pin.has_replayed($1)', $token)), 't', 'has_replayed on the primary');
like(current_token($primary), qr/^[0-9A-F]{16}-00000001-[0-9A-F]{16}$/, 'current_token on the primary');

refused('25001', $writer, 'current_token in a transaction that has written',
	'BEGIN', 'UPDATE note SET body = body WHERE id = 1', 'SELECT replica_pin.current_token()');
passes($writer, 'current_token in a transaction that has only read',
	'BEGIN', 'SELECT count(*) FROM note', 'SELECT replica_pin.current_token()');

# What was seen on one replica is asked of another one.
pause_replay($r2);
token_of_note();
ok(poll_until(sub { has_note($r1, $note) }), 'a reader sees a row on one replica');
my $seen = current_token($r1);
is(sqlstate($_->query(call_of($seen))), 'RP001', 'its token there is behind on a replica without the row')
  for RpinMore->connect($r2);
resume_replay($r2);
ok(poll_until(sub { !RpinMore->connect($r2)->query(call_of($seen))->{error} }), '... and passes later');
is(has_note($r2, $note), 1, '... when the row is there');

# A commit that drops files: its row is visible before its redo is over. The
# token on a replica covers the row already then.
sub row_seen_early
{
	my $tables = 800;
	$writer->query("DO 'BEGIN FOR i IN 1..$tables LOOP EXECUTE format(''CREATE TABLE d%s ()'', i); END LOOP; END'");
	wait_for_replay($primary, $r1);
	my $before = value($writer->query('SELECT pg_current_wal_insert_lsn()'));
	$note++;
	$writer->send_query("BEGIN; DO 'BEGIN FOR i IN 1..$tables LOOP EXECUTE format(''DROP TABLE d%s'', i); END LOOP; END';"
		  . "INSERT INTO note VALUES ($note); COMMIT");
	my $sql = "SELECT (SELECT count(*) FROM note WHERE id = $note), pg_last_wal_replay_lsn()";
	my $answer;
	poll_until(sub {
		for (1 .. 1000)
		{
			$answer = $reader->query($sql);
			return 1 if value($answer);
		}
		return 0;
	});
	my $token = value($reader->query('SELECT replica_pin.current_token()'));
	$writer->answer;
	return ($before, $answer->{rows}[0][1], $token);
}

my ($before, $replayed, $covering, $commit);
for my $try (1 .. 5)
{
	($before, $replayed, $covering) = row_seen_early();
	my ($records) = run_command([ 'pg_waldump', '--rmgr=Transaction', '--path=' . $primary->data_dir . '/pg_wal',
		"--start=$before", '--end=' . flushed_lsn($primary) ]);
	($commit) = $records =~ /lsn: (\S+), [^\n]*COMMIT[^\n]*\Z/;
	last if value($writer->query("SELECT '$replayed'::pg_lsn <= '$commit'")) eq 't';
}
is(value($writer->query("SELECT '$replayed'::pg_lsn <= '$commit'")), 't',
	'a row was seen before its commit counted as replayed');
is(value($writer->query("SELECT replica_pin.token_lsn('$covering') > '$commit'")), 't',
	'... and current_token covers the commit');

done_testing();
