# Two sessions pin and ask, a million times each, on the same keys, while WAL is
# written, one replica follows and one stands still behind all of it.

use strict;
use warnings;

use RpinMore qw(value);
use RpinTest;
use Test::More;

my $rounds = 10;
my $per_round = 100_000;
my $keys = 16;

my ($primary, $moving, $standing) = cluster(
	replicas => 2,
	conf => "replica_pin.max_session_keys = 1000000\nwal_writer_delay = 10ms\n");
my @sessions = map { RpinMore->connect($primary) } 1 .. 2;
my $writer = RpinMore->connect($primary);
my $mover = RpinMore->connect($moving);

# Counts in one transaction of many statements, each on a random key of a few:
#
#	lost	a decision that asks for less than this session pinned or was told
#			before: a pin of the other session has undone ours
#	stale	a decision that lets the key go, or names the replica standing behind
#	named	decisions that name the other one
#
# Comparing tokens as text compares their positions.
my $hammer = <<"END";
DO \$\$
DECLARE
  key text;
  k integer;
  token text COLLATE "C";
  known text[] COLLATE "C" := array_fill('0'::text, ARRAY[$keys]);
  decision record;
  lost integer := 0;
  stale integer := 0;
  named integer := 0;
BEGIN
  FOR i IN 1 .. $per_round LOOP
    k := 1 + floor(random() * $keys);
    key := 'note:' || k;
    token := replica_pin.pin(key);
    IF NOT replica_pin.is_pinned(key) THEN
      stale := stale + 1;
    END IF;
    IF i % 4 = 0 THEN
      decision := replica_pin.route(key);
      IF decision.required < token OR decision.required < known[k] THEN
        lost := lost + 1;
      END IF;
      IF '@{[$standing->name]}' = ANY (decision.replicas) THEN
        stale := stale + 1;
      END IF;
      IF decision.replica IS NOT NULL THEN
        named := named + 1;
      END IF;
      known[k] := decision.required;
    END IF;
  END LOOP;
  PERFORM set_config('test.found', format('%s %s %s', lost, stale, named), false);
END \$\$
END

# --- the same few keys ------------------------------------------------------------

pause_replay($standing);
add_note($primary, 1);

# Commits, one after the other, for as long as the others work.
$writer->query("CREATE TABLE motion (id bigint)");
my $motion = <<'END';
DO $$
BEGIN
  WHILE NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 7) LOOP
    INSERT INTO motion VALUES (1);
    COMMIT;
  END LOOP;
END $$
END
$writer->send_query($motion);

my ($lost, $stale, $named) = (0, 0, 0);
for my $round (1 .. $rounds)
{
	$_->send_query($hammer) for @sessions;
	# the moving replica stops and goes as well
	$mover->query('SELECT pg_wal_replay_pause()') if $round % 2;
	$mover->query('SELECT pg_wal_replay_resume()') if $round % 2 == 0;
	for my $session (@sessions)
	{
		my $answer = $session->answer;
		die $answer->{error}{M} if $answer->{error};
		my @found = split / /, value($session->query('SHOW test.found'));
		$lost += $found[0];
		$stale += $found[1];
		$named += $found[2];
	}
}
$sessions[0]->query('SELECT pg_advisory_lock(7)');
$writer->answer;
$sessions[0]->query('SELECT pg_advisory_unlock(7)');
$mover->query('SELECT pg_wal_replay_resume()');

my $pins = @sessions * $rounds * $per_round;
is($lost, 0, "$pins pins, none is lost");
is($stale, 0, 'no decision lets go while a replica stands behind');
cmp_ok($named, '>', 0, "the replica that had replayed was named $named times");
note($primary->name . ' wrote to ' . flushed_lsn($primary));

# --- tokens in no order, each key once per session -----------------------------------

# The positions of a few hundred commits.
$writer->query('CREATE TABLE token (n integer, token text COLLATE "C")');
$writer->query(<<'END');
DO $$
BEGIN
  FOR i IN 1 .. 200 LOOP
    PERFORM set_config('test.token', replica_pin.current_token(), false);
    INSERT INTO token VALUES (i, current_setting('test.token'));
    COMMIT;
  END LOOP;
END $$
END

# Each session pins each key with a token of its own choice, in an order that
# brings both to the same key at nearly the same time.
my $count = 100_000;
my $choose = '1 + (hashint8(i * 2 + %d) & 2147483647) %% 200';
my $pin_all = "SELECT count(replica_pin.pin('key:' || i, token)) FROM generate_series(1, $count) i JOIN token ON n = $choose";
for my $i (0, 1)
{
	$sessions[$i]->query('SET enable_mergejoin = off; SET enable_hashjoin = on; SET max_parallel_workers_per_gather = 0');
	$sessions[$i]->send_query(sprintf $pin_all, $i);
}
is(value($_->answer), $count, 'every key is pinned') for @sessions;

my $check = <<"END";
SELECT count(*) FILTER (WHERE required < greatest), count(*) FILTER (WHERE required = greatest)
FROM (SELECT (replica_pin.route('key:' || i)).required COLLATE "C",
        greatest(a.token, b.token) AS greatest
      FROM generate_series(1, $count) i
      JOIN token a ON a.n = @{[ sprintf $choose, 0 ]}
      JOIN token b ON b.n = @{[ sprintf $choose, 1 ]}) q
END
my ($below, $exact) = @{ $writer->query($check)->{rows}[0] };
is($below, 0, "of $count keys, none is required below the greater of its two tokens");

# Above it only where a full bucket gave a key its floor.
my $evictions = value($writer->query('SELECT evictions FROM replica_pin.status'));
cmp_ok($exact, '>', $count * 0.9, "$exact are required exactly there ($evictions evictions)");

# --- the end ----------------------------------------------------------------------

resume_replay($standing);
ok(poll_until(sub { !is_pinned($primary, 'note:1') }), 'every key lets go when both have replayed');
is(value($writer->query("SELECT bool_or(replica_pin.is_pinned('key:' || i)) FROM generate_series(1, $count) i")),
	'f', 'all of them');

# --- one bucket for all -----------------------------------------------------------------

# In a table of the least size, three slots, every pin is one on the same bucket,
# and every key makes another one go. Any position up to the end of WAL can be in
# a token: each session takes one a few bytes beyond what it was told last, so
# that the two overtake each other all the time.
$primary->append_conf('postgresql.conf', 'replica_pin.max_session_keys = 3');
$primary->restart;
@sessions = map { RpinMore->connect($primary) } 1 .. 2;
my $steps = 200_000;
my $first = value($sessions[0]->query("SELECT (replica_pin.route('any')).required"));
$sessions[0]->query(q{SELECT count(pg_logical_emit_message(false, '', repeat('x', 1000000))) FROM generate_series(1, 16)});

my $overtake = <<"END";
DO \$\$
DECLARE
  cluster text := left('$first', 26);
  lsn bigint := ('x' || right('$first', 16))::bit(64)::bigint;
  key text;
  token text COLLATE "C";
  required text COLLATE "C";
  lost integer := 0;
  higher integer := 0;
BEGIN
  FOR i IN 1 .. $steps LOOP
    key := 'key:' || i % 5;
    lsn := lsn + 1 + i % 8;
    token := cluster || lpad(upper(to_hex(lsn)), 16, '0');
    PERFORM replica_pin.pin(key, token);
    required := (replica_pin.route(key)).required;
    IF required < token THEN
      lost := lost + 1;
    ELSIF required > token THEN
      higher := higher + 1;
      lsn := ('x' || right(required, 16))::bit(64)::bigint;
    END IF;
  END LOOP;
  PERFORM set_config('test.found', format('%s %s', lost, higher), false);
END \$\$
END
$_->send_query($overtake) for @sessions;
my ($undone, $overtaken) = (0, 0);
for my $session (@sessions)
{
	my $answer = $session->answer;
	die $answer->{error}{M} if $answer->{error};
	my @found = split / /, value($session->query('SHOW test.found'));
	$undone += $found[0];
	$overtaken += $found[1];
}
is($undone, 0, 'one bucket: no pin undoes the other session\'s');
cmp_ok($overtaken, '>', 0, "... which had pinned a later position $overtaken times meanwhile");
done_testing();
