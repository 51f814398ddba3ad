# A role without privileges may decide and pin. It sees nothing of the topology,
# changes no setting of the server, and whatever it sends, it neither crashes nor
# fills the server, nor pins anything for longer than the replicas take.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use RpinMore qw(value sqlstate);
use RpinTest;
use Test::More;

my $capacity = 999;
my ($primary, $replica) = cluster(
	replicas => 1,
	conf => "replica_pin.max_session_keys = $capacity\n");
ask($primary, 'CREATE ROLE app LOGIN; CREATE ROLE watcher LOGIN IN ROLE pg_monitor');
wait_for_replay($primary, $replica);

my $admin = RpinMore->connect($primary);
my $app = RpinMore->connect($primary, user => 'app');
my $watcher = RpinMore->connect($primary, user => 'watcher');
my $app_on_replica = RpinMore->connect($replica, user => 'app');
my $token = value($app->query('SELECT replica_pin.current_token()'));
my $started = value($admin->query('SELECT pg_postmaster_start_time()'));

# --- what it may ----------------------------------------------------------------------

is(sqlstate($app->query($_)), '', "may: $_")
  for "SELECT replica_pin.pin('k')", "SELECT replica_pin.pin('k', '$token')", "SELECT replica_pin.pin_all('{k}')",
  "SELECT replica_pin.is_pinned('k')", "SELECT replica_pin.is_any_pinned('{k}')",
  "SELECT * FROM replica_pin.route('k')", "SELECT * FROM replica_pin.route_all('{k}')",
  'SELECT replica_pin.current_token()', "SELECT replica_pin.token_lsn('$token')",
  "SELECT replica_pin.has_replayed('$token')", "CALL replica_pin.require('$token')",
  "SELECT * FROM replica_pin.route_envelope('{}')", "SELECT replica_pin.stamp('{}')",
  'SELECT * FROM replica_pin.node_status()';
is(sqlstate($app_on_replica->query($_)), '', "may, on a replica: $_")
  for "SELECT replica_pin.has_replayed('$token')", 'SELECT replica_pin.current_token()',
  'SELECT * FROM replica_pin.node_status()', "SELECT * FROM replica_pin.route('k')";

# --- what it may not --------------------------------------------------------------------

my @views = (
	'SELECT * FROM replica_pin.replicas', 'SELECT * FROM replica_pin.status',
	'SELECT * FROM replica_pin.replica_rows()', 'SELECT * FROM replica_pin.status_row()');
is(sqlstate($app->query($_)), '42501', "may not: $_") for @views,
  'SELECT replica_pin.reset_stats()', 'SELECT * FROM pg_file_settings',
  'CREATE TABLE replica_pin.mine (x text)', 'DROP EXTENSION replica_pin',
  "CREATE FUNCTION replica_pin.is_pinned(varchar) RETURNS boolean RETURN false",
  "CREATE OR REPLACE FUNCTION replica_pin.is_pinned(session_key text) RETURNS boolean LANGUAGE sql AS 'SELECT false'",
  "CREATE FUNCTION mine(text) RETURNS boolean LANGUAGE c AS 'replica_pin', 'rpin_is_pinned'";
is(sqlstate($watcher->query($_)), '', "pg_monitor may: $_") for @views;
is(sqlstate($watcher->query('SELECT replica_pin.reset_stats()')), '42501', 'pg_monitor may not begin the counts anew');
is(value($watcher->query('SELECT name FROM replica_pin.replicas')), 'r1', 'and sees the replicas');

# Settings: its own behaviour, and nothing else.
my %own = map { ("replica_pin.$_" => 1) } qw(session_key capture report_commit_token correlation_id);
my @settings = map { $_->[0] } @{ $admin->query(
		"SELECT name FROM pg_settings WHERE name LIKE 'replica\\_pin.%' ORDER BY name")->{rows} };
cmp_ok(scalar @settings, '>=', 8, 'there are settings');
for my $setting (@settings)
{
	my $value = value($admin->query("SELECT quote_literal(boot_val) FROM pg_settings WHERE name = '$setting'"));
	my @ways = (
		"SET $setting = $value",
		"SELECT set_config('$setting', $value, true)",
		"ALTER ROLE app SET $setting = $value",
		"CREATE FUNCTION pg_temp.f() RETURNS integer SET $setting = $value RETURN 1",
		"ALTER SYSTEM SET $setting = $value");
	if ($own{$setting})
	{
		is(sqlstate($app->query("BEGIN; $ways[0]; ROLLBACK")), '', "may set $setting");
		@ways = $ways[-1];
	}
	my @states;
	for my $role ($app, $watcher)
	{
		for my $way (@ways)
		{
			push @states, sqlstate($role->query($way =~ s/ROLE app/ROLE CURRENT_USER/r));
		}
	}
	# 42501 insufficient privilege, 55P02 cannot be changed now
	is_deeply([ grep { !/^(42501|55P02)$/ } @states ], [], "may not set $setting");
}

# Addresses are nobody's business.
for my $setting ('replica_pin.replicas', 'replica_pin.conninfo')
{
	is(sqlstate($app->query($_)), '42501', "may not: $_") for "SHOW $setting", "SELECT current_setting('$setting', true)";
	is(value($app->query("SELECT count(*) FROM pg_settings WHERE name = '$setting'")), 0, "$setting is not in pg_settings");
	is(sqlstate($watcher->query("SHOW $setting")), '', "pg_monitor may: SHOW $setting");
}
my $everything = join "\n", map { map { $_ // '' } @$_ } @{ $app->query('SELECT name, setting, reset_val FROM pg_settings')->{rows} };
unlike($everything, qr/\Q@{[ replica_list($replica) ]}\E/, 'no setting shows the list');

# --- what it cannot do to the server ---------------------------------------------------------

pause_replay($replica);
add_note($primary, 1);
pin($primary, 'somebody');
my $offset = -s $primary->logfile;
my $before = row($primary, 'SELECT shared_memory_bytes, session_key_slots, sampler_pid FROM replica_pin.status');

# Statements, and the first column of what each answers.
my @loads = (
	[ "SELECT replica_pin.is_pinned(repeat(repeat('x', 1000), 30000))", 'f' ],
	[ "SELECT length(replica_pin.pin(repeat(repeat('x', 1000), 30000)))", 42 ],
	[ "SELECT replica_pin.is_pinned(repeat(repeat('x', 1000), 30000))", 't' ],
	[ "SELECT reason FROM replica_pin.route(repeat(repeat('y', 1000), 30000))", 'in_sync' ],
	[ "SELECT reason FROM replica_pin.route(token => repeat(repeat('y', 1000), 30000))", 'token_unreadable' ],
	[ "SELECT replica_pin.has_replayed(repeat(repeat('y', 1000), 30000))", 'f' ],
	[ 'SELECT replica_pin.is_any_pinned(array_agg(i::text)) FROM generate_series(1, 100000) i', 'f' ],
	[ 'SELECT reason FROM replica_pin.route_all((SELECT array_agg(i::text) FROM generate_series(1, 100000) i))', 'in_sync' ],
	[ "SELECT replica_pin.is_any_pinned(array_agg(i::text) || '{somebody}') FROM generate_series(1, 100000) i", 't' ],
	[ 'SELECT replica_pin.is_any_pinned(array_fill(NULL::text, ARRAY[100000]))', 't' ],
	[ "SELECT reason FROM replica_pin.route_all(array_fill(''::text, ARRAY[100000]))", 'no_session_key' ],
	[ "SELECT replica_pin.is_any_pinned(array_fill('z'::text, ARRAY[10, 10, 10, 10, 10]))", 'f' ],
	[ "SELECT reason FROM replica_pin.route_all(array_fill(repeat('z', 1000000), ARRAY[20]))", 'in_sync' ],
	[ "SELECT count(replica_pin.is_pinned('k' || i)) FROM generate_series(1, 100000) i", 100000 ],
	[ "SELECT count(replica_pin.route('somebody', i::text)) FROM generate_series(1, 100000) i", 100000 ],
	[ "SELECT length(replica_pin.pin_all(array_agg('all' || i))) FROM generate_series(1, 100000) i", 42 ],
	[ "SELECT count(replica_pin.pin('flood' || i)) FROM generate_series(1, 100000) i", 100000 ],
	[ "SELECT count(replica_pin.pin('old' || i, '$token')) FROM generate_series(1, 100000) i", 100000 ]);
for my $load (@loads)
{
	my ($sql, $expected) = @$load;
	my $answer = $app->query($sql);
	is($answer->{error} ? $answer->{error}{M} : value($answer), $expected, $sql);
}

# The same with commits of its own, so that each key has a later position.
$app->query('CREATE TEMP TABLE mine (x integer)');
my $commits = $app->query(<<'END');
DO $$
BEGIN
  FOR i IN 1 .. 5000 LOOP
    PERFORM replica_pin.pin('flood of commits' || i);
    INSERT INTO mine VALUES (i);
    COMMIT;
  END LOOP;
END $$
END
is($commits->{error}, undef, 'thousands of commits, each with a key');

is(is_pinned($primary, 'somebody'), 1, 'a key of somebody else is still pinned after the floods');
is(value($app->query("SELECT bool_and(replica_pin.is_pinned('flood' || i)) FROM generate_series(1, 100000) i")),
	't', 'and so are all keys of the flood');
my $after = row($primary, 'SELECT shared_memory_bytes, session_key_slots, sampler_pid, session_keys, evictions FROM replica_pin.status');
is_deeply([ @{$after}{sort keys %$before} ], [ @{$before}{sort keys %$before} ], 'the table has the size that it had');
cmp_ok($after->{session_keys}, '<=', $after->{session_key_slots}, 'as many keys as fit are remembered one by one');
cmp_ok($after->{evictions}, '>', 3000, 'the others share a floor');

# Each of these hundreds of thousands of decisions for the primary could have had
# a line in the log.
my @lines = slurp_file($primary->logfile, $offset) =~ /(replica_pin: decision=primary)/g;
cmp_ok(scalar @lines, '<', 500, 'the log is not flooded: ' . @lines . ' lines');

# Nothing is left in a session that asks without end, in one transaction or many.
my $memory = 'SELECT sum(total_bytes) FROM pg_backend_memory_contexts';
my @endless = (
	"SELECT count(replica_pin.route('k' || i, '$token')) FROM generate_series(1, 100000) i",
	"DO 'BEGIN FOR i IN 1..50000 LOOP PERFORM replica_pin.pin(i::text); PERFORM replica_pin.route_all(ARRAY[i::text]); END LOOP; END'",
	'SELECT count(*) FROM generate_series(1, 20000) i, LATERAL replica_pin.node_status()');
$admin->query($_) for @endless;
my $memory_before = value($admin->query($memory));
$admin->query($_) for @endless, @endless;
cmp_ok(value($admin->query($memory)) - $memory_before, '<', 2_000_000, 'a session does not grow');

# A position that nobody has reached cannot be pinned, so nothing is pinned for ever.
my $future = substr($token, 0, 26) . '00FFFFFFFFFFFFFF';
is(sqlstate($app->query("SELECT replica_pin.pin('somebody', '$future')")), '22023', 'the future cannot be pinned');

# More keys than a transaction remembers one by one: its commit pins every key,
# until the replicas have it.
resume_replay($replica);
ok(poll_until(sub { !is_pinned($primary, 'nobody') && !is_pinned($primary, 'somebody') }), 'everything lets go');
pause_replay($replica);
$app->query("BEGIN; SELECT count(replica_pin.pin('big' || i)) FROM generate_series(1, 5000) i; INSERT INTO mine VALUES (1); COMMIT");
is(is_pinned($primary, 'nobody'), 1, 'a transaction with very many keys pins them all');
resume_replay($replica);
ok(poll_until(sub { !is_pinned($primary, 'nobody') && !is_pinned($primary, 'somebody') }), 'everything lets go');

# --- the end ------------------------------------------------------------------------------

$_->close for $app, $watcher, $app_on_replica;
ask($primary, 'REVOKE EXECUTE ON FUNCTION replica_pin.pin(text), replica_pin.pin_all(text[]) FROM PUBLIC');
$app = RpinMore->connect($primary, user => 'app');
is(sqlstate($app->query("SELECT replica_pin.$_")), '42501', "$_ can be revoked") for "pin('k')", "pin_all('{k}')";
is(sqlstate($app->query("SELECT replica_pin.is_pinned('k')")), '', 'what is left still works');

is(value($admin->query('SELECT pg_postmaster_start_time()')), $started, 'the server has not been restarted');
unlike(slurp_file($_->logfile), qr/terminated by signal|PANIC|TRAP|FATAL/, $_->name . ' has seen no crash')
  for $primary, $replica;
done_testing();
