# The traps of checking a position by oneself: how many stale reads follow a check
# that passed, and what require() does in the same place.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use RpinMore qw(parse bind_to execute sync value sqlstate);
use RpinPooler;
use RpinTest;
use Test::More;

my $tries = 10;
my $place = PostgreSQL::Test::Utils::tempdir_short();
my ($primary, $r1, $r2) = cluster(replicas => 2);
my ($writer, $looker) = map { RpinMore->connect($_) } $primary, $r1;
my $note = 0;

# Whatever a trap holds is held by this lock until replay is over.
my $lock = 'SELECT pg_advisory_lock(42)';
my $unlock = 'SELECT pg_advisory_unlock_all()';

ask($primary, <<'END');
CREATE FUNCTION naive_read(token text, wanted integer) RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
  PERFORM pg_advisory_lock_shared(42);
  RETURN replica_pin.has_replayed(token) || ' ' || (SELECT count(*) FROM note WHERE id = wanted);
END $$;
CREATE FUNCTION require_and_read(token text, wanted integer) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
  CALL replica_pin.require(token, 30000);
  RETURN (SELECT count(*) FROM note WHERE id = wanted);
END $$;
END
wait_for_replay($primary, $r1, $r2);

sub token_of_note
{
	$note++;
	return value($writer->query("BEGIN; INSERT INTO note VALUES ($note); COMMIT; SELECT replica_pin.current_token()"));
}

sub require_sql { return "CALL replica_pin.require('$_[0]', 30000)" }
sub count_sql { return "SELECT count(*) FROM note WHERE id = $note" }

sub pause
{
	$looker->query('SELECT pg_wal_replay_pause()');
	poll_until(sub { value($looker->query('SELECT pg_get_wal_replay_pause_state()')) eq 'paused' }) or die 'replay does not pause';
	return;
}

# Replay goes on, past the token.
sub replay_to
{
	my ($token) = @_;
	$looker->query('SELECT pg_wal_replay_resume()');
	my $answer = $looker->query(require_sql($token));
	die $answer->{error}{M} if $answer->{error};
	return;
}

sub blocked
{
	return value($looker->query("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"));
}

# --- one statement: its snapshot is older than its check ----------------------------

# A statement that begins before the token is replayed, and checks after.
sub one_statement
{
	my ($sql) = @_;
	my $client = RpinMore->connect($r1);
	pause();
	my $token = token_of_note();
	$looker->query($lock);
	$client->send_query($sql->($token));
	poll_until(\&blocked) or die 'the statement does not block';
	replay_to($token);
	$looker->query($unlock);
	my $seen = join ' ', grep { length } @{ $client->answer->{rows}[0] };
	$client->query($unlock);
	my $ours = $client->query(require_sql($token) . '; ' . count_sql());
	$client->close;
	return ($seen, value($ours));
}

for my $trap (
	[ 'the same statement', sub { "SELECT pg_advisory_lock_shared(42)::text, replica_pin.has_replayed('$_[0]'), (@{[ count_sql() ]})" } ],
	[ 'a function', sub { "SELECT naive_read('$_[0]', $note)" } ])
{
	my ($name, $sql) = @$trap;
	my ($passed, $stale, $right) = (0, 0, 0);
	for (1 .. $tries)
	{
		my ($seen, $ours) = one_statement($sql);
		$passed++ if $seen =~ /^t/;
		$stale++ if $seen =~ /^t(rue)? 0$/;
		$right++ if $ours == 1;
	}
	note("$name: the check passed $passed of $tries times, $stale stale; behind require $right right");
	is($passed, $tries, "$name: the check passes");
	is($stale, $tries, '... and the read is stale, every time');
	is($right, $tries, '... where a statement behind require is right');
}

# And require() in a function refuses, rather than lend its name to that.
is(sqlstate($looker->query("SELECT require_and_read('" . token_of_note() . "', $note)")), '25001', 'require refuses in a function');

# --- a snapshot that was taken before the check --------------------------------------

sub early_snapshot
{
	my ($begin, $read) = @_;
	my ($naive, $ours) = map { RpinMore->connect($r1) } 1 .. 2;
	pause();
	my $token = token_of_note();
	$begin->($_) for $naive, $ours;
	replay_to($token);

	my $passed = value($naive->query("SELECT replica_pin.has_replayed('$token')"));
	my $seen = value($read->($naive));
	my $refusal = sqlstate($ours->query(require_sql($token)));
	$_->close for $naive, $ours;
	return ($passed, $seen, $refusal);
}

my %early = (
	'REPEATABLE READ' => [
		sub { $_[0]->query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1') },
		sub { $_[0]->query(count_sql()) } ],
	'an open cursor' => [
		sub { $_[0]->query('BEGIN; DECLARE early CURSOR FOR ' . count_sql()) },
		sub { $_[0]->query('FETCH early') } ],
	'a portal bound early' => [
		sub { $_[0]->query('BEGIN'); $_[0]->exchange(parse('', count_sql()), bind_to('early', ''), sync()) },
		sub { $_[0]->exchange(execute('early'), sync()) } ]);

for my $name (sort keys %early)
{
	my ($passed, $stale, $refused) = (0, 0, 0);
	for (1 .. $tries)
	{
		my ($check, $seen, $refusal) = early_snapshot(@{ $early{$name} });
		$passed++ if $check eq 't';
		$stale++ if $check eq 't' && $seen == 0;
		$refused++ if $refusal eq '25001';
	}
	note("$name: the check passed $passed of $tries times, $stale stale; require refused $refused");
	is("$passed $stale", "$tries $tries", "$name: the check passes, and the read is stale, every time");
	is($refused, $tries, '... where require refuses');
}

# --- two Syncs behind a pooler, two replicas behind the pooler -------------------------

package Pooler
{
	sub new { my ($class, %self) = @_; return bless {%self}, $class }
	sub host { return $_[0]{host} }
	sub port { return $_[0]{port} }
	sub name { return 'pooler' }
}

# PgBouncer takes one port for a list of hosts: each replica's socket has another
# name, in a folder of its own.
sub pooler_of_both
{
	for my $replica ($r1, $r2)
	{
		mkdir "$place/" . $replica->name;
		symlink $replica->host . '/.s.PGSQL.' . $replica->port, "$place/" . $replica->name . '/.s.PGSQL.5432';
	}
	my $port = start_pooler(
		$place,
		["postgres = host=$place/r1,$place/r2 port=5432 dbname=postgres pool_size=2"],
		trusted($place, scalar getpwuid($>)),
		pool_mode => 'transaction',
		server_round_robin => 1);
	return Pooler->new(host => $place, port => $port);
}

my $pooled = pooler_of_both();
my ($client, $second) = map { RpinMore->connect_soon($pooled) } 1 .. 2;

# Two transactions at once make it connect to both replicas.
my @ports = map { $_->query('BEGIN'); value($_->query('SHOW port')) } $client, $second;
$_->query('COMMIT') for $client, $second;
is_deeply([ sort @ports ], [ sort $r1->port, $r2->port ], 'a pooler with two replicas behind it');

pause_replay($r2);
my $token = token_of_note();
replay_to($token);
srand(1);
my %count = map { $_ => 0 } qw(passed stale naive_passed naive_stale ours refused wrong);
my $pairs = 100;
# Others use the pooler too: which replica comes next cannot be known.
sub somebody_else { $second->query('SELECT 1') if rand() < 0.5; return }

for (1 .. $pairs)
{
	somebody_else();
	if (value($client->query("SELECT replica_pin.has_replayed('$token')")) eq 't')
	{
		$count{naive_passed}++;
		$count{naive_stale}++ if value($client->query(count_sql())) == 0;
	}
	somebody_else();
	if (sqlstate($client->query("CALL replica_pin.require('$token')")) eq '')
	{
		$count{passed}++;
		$count{stale}++ if value($client->query(count_sql())) == 0;
	}
	somebody_else();
	my $answer = $client->query("CALL replica_pin.require('$token'); " . count_sql());
	$count{ sqlstate($answer) eq 'RP001' ? 'refused' : value($answer) == 1 ? 'ours' : 'wrong' }++;
}
note("behind a pooler, of $pairs: " . join ' ', map { "$_=$count{$_}" } sort keys %count);
cmp_ok($count{naive_stale}, '>', 0, 'a check with a Sync of its own: stale reads follow one that passed');
cmp_ok($count{stale}, '>', 0, '... also if the check is require');
is($count{wrong}, 0, 'in one message with the read, require is never wrong');
cmp_ok($count{ours}, '>', 0, '... it passes on the replica that has the row');
cmp_ok($count{refused}, '>', 0, '... and refuses on the one that is behind');
resume_replay($r2);

done_testing();
