# The library without shared_preload_libraries: a replica needs no more, and a
# primary says what is missing instead of an answer.

use strict;
use warnings;

use RpinMore qw(value sqlstate);
use RpinTest;
use Test::More;

my $primary = new_primary('primary');
my ($bare, $preloaded) = new_replicas($primary, 'bare', 'preloaded');

# Settings of a server that preloads, in the file of one that does not.
sub without_preload
{
	my ($node) = @_;
	$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', undef);
	$node->append_conf('postgresql.conf', <<'END');
replica_pin.replicas = 'r1=10.0.0.11, this is no list'
replica_pin.conninfo = 'dbname=postgres'
replica_pin.sample_interval = 100
replica_pin.max_session_keys = 99
replica_pin.sample_lifetime = nonsense
END
	$node->restart;
	return;
}

sub errors { return map { "$_->{C} $_->{H}" } map { $_->{error} // { C => 'no error', H => '' } } @_ }

without_preload($bare);
watch($primary, $bare, $preloaded);
my $token = ask($primary, 'SELECT replica_pin.current_token()');
wait_for_replay($primary, $bare, $preloaded);

my $hint = 'Add replica_pin to shared_preload_libraries and restart the server.';

# What does not need the shared memory, on a node that has replayed $token.
sub speaks_of_itself
{
	my ($name, $client, %node) = @_;
	my $status = $client->query(<<'END');
SELECT in_recovery, replay_lsn IS NOT NULL, timeline, replay_paused, node_id,
  system_identifier = (SELECT system_identifier FROM pg_control_system()),
  started_at = pg_postmaster_start_time()
FROM replica_pin.node_status()
END
	is_deeply($status->{rows}, [ [ $node{in_recovery}, $node{in_recovery}, 1, 'f', undef, 't', 't' ] ], "$name: node_status");
	is(value($client->call('SELECT replica_pin.has_replayed($1)', $token)), 't', "$name: has_replayed");
	is(value($client->call('SELECT replica_pin.has_replayed($1)', 'x')), 'f', "$name: has_replayed of garbage");
	is(sqlstate($client->call('CALL replica_pin.require($1)', $token)), '', "$name: require passes");
	is(sqlstate($client->call('CALL replica_pin.require($1)', 'x')), 'RP002', "$name: require refuses garbage");
	is(value($client->query('SELECT replica_pin.has_replayed(replica_pin.current_token())')), 't', "$name: current_token");
	like(value($client->call('SELECT replica_pin.token_lsn($1)', $token)), qr/^0\/[0-9A-F]+$/, "$name: token_lsn");
	return;
}

# Asking is never an error; recording and the views say what to do.
sub decides_nothing
{
	my ($name, $client) = @_;
	is(value($client->query("SELECT replica_pin.$_")), 't', "$name: $_")
	  for "is_pinned('k')", 'is_pinned(NULL)', "is_any_pinned('{k}')";
	for my $call ("route('k', '$token')", "route(token => '$token')", "route_all('{k}', '$token')")
	{
		is_deeply($client->query("SELECT * FROM replica_pin.$call")->{rows},
			[ [ undef, 'not_preloaded', '{}', $token ] ], "$name: $call keeps the token");
	}
	is_deeply($client->query('SELECT * FROM replica_pin.route(\'k\')')->{rows},
		[ [ undef, 'not_preloaded', '{}', undef ] ], "$name: route");
	is_deeply([ errors($client->query($_)) ], ["55000 $hint"], "$name: $_")
	  for "SELECT replica_pin.pin('k')", "SELECT replica_pin.pin('k', '$token')", "SELECT replica_pin.pin_all('{k}')",
	  'SELECT * FROM replica_pin.replicas', 'SELECT * FROM replica_pin.status';
	return;
}

# --- a replica, three ways to load ----------------------------------------------------

my %load = (
	'a function called first' => [],
	'LOAD' => ["LOAD 'replica_pin'"]);
for my $way (sort keys %load)
{
	my $client = RpinMore->connect($bare);
	$client->query($_) for @{ $load{$way} };
	speaks_of_itself("replica, $way", $client, in_recovery => 't');
	decides_nothing("replica, $way", $client);
}
configure($bare, session_preload_libraries => 'replica_pin');
poll_until(sub { value(RpinMore->connect($bare)->query('SHOW session_preload_libraries')) eq 'replica_pin' })
  or die 'the reload is not over';
speaks_of_itself('replica, session_preload_libraries', RpinMore->connect($bare), in_recovery => 't');
decides_nothing('replica, session_preload_libraries', RpinMore->connect($bare));

# --- a primary that preloads samples it -------------------------------------------------

is_deeply([ sort split / /, names(route($primary, 'k')) ], [qw(bare preloaded)], 'both replicas are named');
pause_replay($bare);
add_note($primary, 1);
my $pinned = pin($primary, 'note:1');
ok(poll_until(sub { names(route($primary, 'note:1')) eq 'preloaded' }), 'the one without preload is behind, and not named');
my $client = RpinMore->connect($bare);
is(sqlstate($client->call('CALL replica_pin.require($1)', $pinned)), 'RP001', 'require: behind');
is(value($client->query('SELECT replay_paused FROM replica_pin.node_status()')), 't', 'node_status: paused');
resume_replay($bare);
ok(poll_until(sub { !is_pinned($primary, 'note:1') }), 'lets go when it has replayed');

# --- a replica that preloads ---------------------------------------------------------------

$client = RpinMore->connect($preloaded);
is(value($client->query('SELECT replica_pin.is_pinned(\'k\')')), 't', 'replica with preload: is_pinned');
is(value($client->query('SELECT replica_pin.is_any_pinned(\'{k}\')')), 't', 'replica with preload: is_any_pinned');
is_deeply($client->query("SELECT * FROM replica_pin.route('k', '$token')")->{rows},
	[ [ undef, 'not_primary', '{}', $token ] ], 'replica with preload: route keeps the token');
is_deeply($client->query("SELECT * FROM replica_pin.route_all('{k}')")->{rows},
	[ [ undef, 'not_primary', '{}', undef ] ], 'replica with preload: route_all');
is(sqlstate($client->query("SELECT replica_pin.$_")), '25006', "replica with preload: $_")
  for "pin('k')", "pin('k', '$token')", "pin_all('{k}')", 'pin(NULL)';
is(value($client->query('SELECT in_recovery FROM replica_pin.status')), 't', 'replica with preload: status');
is(value($client->query('SELECT count(*) FROM replica_pin.replicas')), 0, 'replica with preload: no replicas of its own');

# --- a primary without preload ---------------------------------------------------------------

without_preload($primary);
my $offset = -s $primary->logfile;
for my $way (sort keys %load)
{
	my $client = RpinMore->connect($primary);
	$client->query($_) for @{ $load{$way} };
	speaks_of_itself("primary, $way", $client, in_recovery => 'f');
	decides_nothing("primary, $way", $client);
	is(sqlstate($client->query("BEGIN; INSERT INTO note VALUES (2); SELECT replica_pin.current_token()")), '25001',
		"primary, $way: current_token in a transaction that has written");
	$client->query('ROLLBACK');
	is(sqlstate($client->query("SET replica_pin.session_key = 'k'; INSERT INTO note VALUES (3); DELETE FROM note WHERE id = 3")),
		'', "primary, $way: commits, with a session key that nobody looks at");
}

# What the primary wrote without preload, its replicas can be asked about.
my $later = ask($primary, 'SELECT replica_pin.current_token()');
ok(poll_until(sub { value(RpinMore->connect($_)->call('SELECT replica_pin.has_replayed($1)', $later)) eq 't' }),
	$_->name . ' replays a token of a primary without preload') for $bare, $preloaded;
is_deeply([ PostgreSQL::Test::Utils::slurp_file($primary->logfile, $offset) =~ /(?:WARNING|FATAL|PANIC):.*/g ], [], 'nothing was amiss');
done_testing();
