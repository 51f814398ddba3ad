# Readers behind HAProxy in TCP mode, which picks a replica for each connection, and
# an application behind Pgpool-II, which picks a server for each statement: what
# docs/recipes.md says of them, and the mistakes that it warns of. Every stale read
# is counted beside one of the same moment that went by no decision.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RpinMore qw(parse bind_to execute sync value sqlstate);
use RpinProxy;
use RpinTest;
use Test::More;

my $rounds = 10;
my $note = 0;

my $primary = new_primary('primary', <<'END');
listen_addresses = '127.0.0.1'
restart_after_crash = on
replica_pin.sample_interval = 50ms
replica_pin.sample_timeout = 500ms
replica_pin.sample_lifetime = 2s
replica_pin.log_decisions = none
END
my ($r1, $r2, $r3) = new_replicas($primary, 'r1', 'r2', 'r3');
my @servers = ($primary, $r1, $r2, $r3);
watch($primary, $r1, $r2);
my $asked = session($primary);
my $asked_r2 = session($r2);
my $writer = RpinMore->connect($primary);
ask($asked, 'CREATE ROLE haproxy LOGIN');
ask($asked, 'CREATE DATABASE haproxy');
wait_for_replay($asked, $r1, $r2, $r3);

# --- HAProxy ------------------------------------------------------------------------

my ($readers, $keeping, $unwatched) = map { reach($_) } qw(readers keeping unwatched);

sub section
{
	my ($address, $when_down, @nodes) = @_;
	return bind_of($address,
		'balance roundrobin',
		'option pgsql-check user haproxy',
		"default-server check inter 100ms fall 2 rise 1 $when_down",
		map { 'server ' . $_->name . ' 127.0.0.1:' . $_->port } @nodes);
}

start_haproxy(
	section($readers, 'on-marked-down shutdown-sessions', $r1, $r2),
	section($keeping, '', $r1, $r2),
	section($unwatched, '', $r1, $r2, $r3));

# A new connection through a proxy.
sub client { return RpinMore->connect_soon(@_) }

# One to each of these servers, wherever the proxy leads the next one.
sub client_at
{
	my ($address, $node) = @_;
	my $client;
	poll_until(sub { $client = client($address); server_of($client, @servers) eq $node->name })
	  or die $address->name . ' does not lead to ' . $node->name;
	return $client;
}

sub write_note
{
	$note++;
	$writer->query("BEGIN; SET LOCAL replica_pin.session_key = 'user:1'; INSERT INTO note VALUES ($note); COMMIT");
	return;
}

sub token_of_note
{
	write_note();
	return value($writer->query('SELECT replica_pin.current_token()'));
}

sub note_sql { return "SELECT count(*) FROM note WHERE id = $note" }

# 1 if it misses the note, 0 if not.
sub is_stale
{
	my ($client) = @_;
	return 1 - value($client->query(note_sql()));
}

# Reads over new connections, as many as there are servers, so that each is read.
sub stale_reads
{
	my ($address, $count) = @_;
	my $stale = 0;
	$stale += is_stale(client($address)) for 1 .. $count;
	return $stale;
}

# Who asks is_pinned first, while one replica lacks the note, and again until it is
# false, and reads there and on the replicas after that.
{
	my %stale = (asked => 0, not_asked => 0);
	my %read = (primary => 0, replica => 0);
	client_at($readers, $_) for $r1, $r2;
	for (1 .. $rounds)
	{
		pause_replay($asked_r2);
		write_note();
		$stale{not_asked} += stale_reads($readers, 2);
		$read{primary} += is_pinned($asked, 'user:1');
		$stale{asked} += stale_reads($readers, 2) unless is_pinned($asked, 'user:1');
		resume_replay($asked_r2);
		poll_until(sub { !is_pinned($asked, 'user:1') }) or die 'the key is pinned for ever';
		$read{replica} += 2;
		$stale{asked} += stale_reads($readers, 2);
	}
	is($stale{asked}, 0, "HAProxy: no stale read of $read{replica} that is_pinned let go there");
	cmp_ok($stale{not_asked}, '>', 0, "... and $stale{not_asked} of " . 2 * $rounds . ' without asking');
	is($read{primary}, $rounds, '... the others were for the primary');
}

# --- HAProxy: require and the read --------------------------------------------------

{
	pause_replay($asked_r2);
	my $token = token_of_note();
	wait_for_replay($asked, $r1);
	my %seen = (passed => 0, refused => 0, stale => 0, apart => 0);
	for (1 .. $rounds)
	{
		my $client = client($readers);
		$client->query('BEGIN');
		my $refused = sqlstate($client->query("CALL replica_pin.require('$token')"));
		if ($refused)
		{
			$seen{refused}++ if $refused eq 'RP001';
			next;
		}
		$seen{passed}++;
		$seen{stale} += is_stale($client);
		$client->query('COMMIT');
		$seen{stale} += is_stale($client);
		$seen{apart} += is_stale(client($readers));
		client($readers);
	}
	is($seen{stale}, 0, "HAProxy: no stale read on the connection of $seen{passed} require(), in the transaction and after it");
	cmp_ok($seen{apart}, '>', 0, "... but $seen{apart} on the next connection");
	is($seen{passed} + $seen{refused}, $rounds, "... and $seen{refused} were refused by the replica that is behind");
	cmp_ok($seen{refused}, '>', 0, '... at least one of them');
	resume_replay($asked_r2);
	wait_for_replay($asked, $asked_r2);
}

# --- HAProxy: a server that nobody watches ------------------------------------------

{
	pause_replay($r3);
	my ($let_go, $stale) = (0, 0);
	client_at($unwatched, $_) for $r1, $r2, $r3;
	for (1 .. $rounds / 2)
	{
		write_note();
		poll_until(sub { !is_pinned($asked, 'user:1') }) or die 'the key is pinned for ever';
		$stale += stale_reads($unwatched, 3);
		$let_go += 3;
	}
	cmp_ok($stale, '>', 0, "HAProxy: a server that is not in the list: $stale stale reads of $let_go that is_pinned let go");
	is(ask($asked, q{SELECT count(*) FROM replica_pin.check_setup() WHERE problem = 'standby_not_listed'}), 1, '... of which check_setup() tells');
	watch($primary, $r1, $r2, $r3);
	write_note();
	wait_for_replay($asked, $r1, $r2);
	is(is_pinned($asked, 'user:1'), 1, '... and in the list the key is pinned for it');
	watch($primary, $r1, $r2);
	$r3->stop;
}

# --- HAProxy: a replica that hangs, and one that crashes ------------------------------

# The server's processes, its own first.
sub processes_of
{
	my ($node) = @_;
	my $postmaster = postmaster_pid($node);
	my ($children) = run_command([ 'ps', '--ppid', $postmaster, '-o', 'pid=' ]);
	return ($postmaster, split ' ', $children);
}

{
	my ($on_r1, $on_r2, $kept) = (client_at($readers, $r1), client_at($readers, $r2), client_at($keeping, $r2));
	my @frozen = processes_of($r2);
	freeze(@frozen);
	ok(poll_until(sub { broken($on_r2) }), 'HAProxy: a replica that hangs: the connections to it break');
	ok(!broken($kept), '... not without on-marked-down shutdown-sessions');
	is(server_of($on_r1, @servers), 'r1', '... those to the other one go on');
	ok(poll_until(sub { is_pinned($asked, 'nobody') }), '... is_pinned is true for every key');
	ok(wait_for_state($asked, 'r2', 'timed_out'), '... since that replica does not answer');
	ok(poll_until(sub { names(route($asked, 'nobody')) eq 'r1' }), '... and route names the other one');
	is(join(' ', map { server_of(client($readers), @servers) } 1 .. 4), 'r1 r1 r1 r1', '... which has all new connections');
	thaw(@frozen);
	client_at($readers, $r2);
	ok(poll_until(sub { !is_pinned($asked, 'nobody') }), '... until it is back');
}

# Its old connections do not come back with it: so they prove what direct ones do.
{
	my ($on_r1, $on_r2) = map { client_at($readers, $_) } $r1, $r2;
	kill 'KILL', value(client_at($readers, $r2)->query('SELECT pg_backend_pid()'));
	ok(poll_until(sub { broken($on_r2) }), 'HAProxy: a replica that crashes: an old connection to it breaks');
	client_at($readers, $r2);
	is($on_r2->query(note_sql())->{status}, '', '... and does not lead to it again when it is back');
	is(server_of($on_r1, @servers), 'r1', '... those to the other one go on');
}

# --- Pgpool-II: where statements go -----------------------------------------------------

$asked_r2 = session($r2);
my ($plain, $list, $pattern, $no_care) = map { reach($_) } qw(plain list pattern no_care);
my $lists = q{write_function_list = 'nextval,setval'};
my $cure = q{primary_routing_query_pattern_list = '.*replica_pin\..*'};
my $to_r2 = 'backend_weight1 = 0';    # all reads that may be balanced
my @nodes = ($primary, $r1, $r2);
start_pgpool($plain, '', @nodes);
start_pgpool($list, $lists, @nodes);
start_pgpool($pattern, "$lists\n$cure\n$to_r2", @nodes);
start_pgpool($no_care, "disable_load_balance_on_write = off\nallow_sql_comments = on\n$to_r2", @nodes);

configure($_, log_statement => 'all') for @nodes;
wait_for_replay($asked, $r1, $r2);
my $token = ask($asked, 'SELECT replica_pin.current_token()');

# The statements on one connection, in order, and for each the servers' logs that
# have it: "primary", "replica", or "both".
sub goes_to
{
	my ($address, $protocol, @statements) = @_;
	my $client = client($address);
	my %offset = map { $_->name => -s $_->logfile } @nodes;
	my %where;
	for (0 .. $#statements)
	{
		my $answer = $client->$protocol("$statements[$_] /* $_. */");
		die "$statements[$_]: $answer->{error}{M}" if $answer->{error};
	}
	for my $node (@nodes)
	{
		my $role = $node == $primary ? 'primary' : 'replica';
		$where{$_}{$role} = 1 for slurp_file($node->logfile, $offset{ $node->name }) =~ m!/\* (\d+)\. \*/!g;
	}
	return map { my @roles = keys %{ $where{$_} }; @roles == 1 ? $roles[0] : @roles ? 'both' : 'nowhere' } 0 .. $#statements;
}

# [ statement, as it is, with our pattern ]
my @routes = (
	[ 'SELECT count(*) FROM note', 'replica', 'replica' ],
	[ q{SELECT replica_pin.is_pinned('user:1')}, 'primary', 'primary' ],
	[ qq{SELECT\n  replica_pin.is_any_pinned(ARRAY['user:1'])}, 'primary', 'primary' ],
	[ q{SELECT replica_pin.pin('user:1')}, 'primary', 'primary' ],
	[ q{SELECT replica_pin.pin_all(ARRAY['user:1'])}, 'primary', 'primary' ],
	[ q{SELECT reason FROM replica_pin.route('user:1')}, 'primary', 'primary' ],
	[ q{select reason from replica_pin.route_all(ARRAY['user:1'])}, 'primary', 'primary' ],
	[ q{SELECT reason FROM replica_pin.route_envelope('{}')}, 'primary', 'primary' ],
	[ q{SELECT replica_pin.stamp('{}')}, 'primary', 'primary' ],
	[ 'SELECT replica_pin.current_token()', 'primary', 'primary' ],
	[ 'SELECT * FROM replica_pin.check_setup()', 'primary', 'primary' ],
	[ q{SELECT * FROM replica_pin.explain('user:1')}, 'primary', 'primary' ],
	[ "CALL replica_pin.require('$token')", 'primary', 'primary' ],
	[ "SELECT replica_pin.has_replayed('$token')", 'replica', 'primary' ],
	[ 'SELECT * FROM replica_pin.node_status()', 'replica', 'primary' ],
	[ "SELECT replica_pin.token_lsn('$token')", 'replica', 'primary' ],
	[ 'SELECT * FROM replica_pin.replicas', 'replica', 'primary' ],
	[ 'SELECT * FROM replica_pin.status', 'replica', 'primary' ],
	[ 'SELECT * FROM replica_pin.stat_decisions', 'replica', 'primary' ],
	[ '/*NO LOAD BALANCE*/ SELECT count(*) FROM note', 'primary', 'primary' ],
	[ q{SET replica_pin.correlation_id = 'a'}, 'both', 'both' ],
	[ 'SELECT count(*) FROM note', 'replica', 'replica' ]);
my @statements = map { $_->[0] } @routes;

for my $protocol (qw(query call))
{
	my $name = $protocol eq 'query' ? 'simple protocol' : 'extended protocol';
	is_deeply([ goes_to($plain, $protocol, @statements) ], [ map { $_->[1] } @routes ],
		"Pgpool-II, $name: decisions go to the primary, and what is not volatile or a view to a replica");
	is_deeply([ goes_to($pattern, $protocol, @statements) ], [ map { $_->[2] } @routes ],
		'... everything of the extension to the primary, with the pattern');
}

# --- Pgpool-II: traps of its settings ----------------------------------------------------

{
	my $listed = client($list);
	is(value($listed->query(q{SELECT replica_pin.is_pinned('user:9')})), 't', 'Pgpool-II: a list of functions that write: replicas are asked, and is_pinned is always true');
	is(value($listed->query(q{SELECT reason FROM replica_pin.route('user:9')})), 'not_primary', '... route says why');
	is(sqlstate($listed->query(q{SELECT replica_pin.pin('user:9')})), '25006', '... and pin is an error');
}
{
	ask($asked, 'CREATE DATABASE later');
	wait_for_replay($asked, $r1, $r2);
	my $question = q{SELECT replica_pin.is_pinned('user:9')};
	is(sqlstate(client($_, database => 'later')->query($question)), '3F000', 'Pgpool-II: asked before the extension is there') for $plain, $pattern;
	$primary->safe_psql('later', 'CREATE EXTENSION replica_pin');
	wait_for_replay($asked, $r1, $r2);
	is(value(client($plain, database => 'later')->query($question)), 't', '... it remembers for ever that there is no such function, and asks a replica');
	is(value(client($pattern, database => 'later')->query($question)), 'f', '... not with the pattern');
}

# --- Pgpool-II: reads ---------------------------------------------------------------------

# One connection for all, and what the answer asks for is said in a comment.
{
	my %stale = (asked => 0, not_asked => 0, on_primary => 0);
	my ($let_go, $pinned) = (0, 0);
	my @clients = map { client($pattern) } 1 .. 2;
	for my $round (1 .. $rounds)
	{
		pause_replay($asked_r2);
		$note++;
		my $client = $clients[ $round % @clients ];
		my $written = $client->query("BEGIN; SET LOCAL replica_pin.session_key = 'user:1'; INSERT INTO note VALUES ($note); COMMIT");
		die $written->{error}{M} if $written->{error};
		$stale{not_asked} += is_stale($_) for @clients;
		$pinned++ if value($client->query(q{SELECT replica_pin.is_pinned('user:1')})) eq 't';
		$stale{on_primary} += 1 - value($client->query('/*NO LOAD BALANCE*/ ' . note_sql()));
		resume_replay($asked_r2);
		poll_until(sub { value($client->query(q{SELECT replica_pin.is_pinned('user:1')})) eq 'f' }) or die 'the key is pinned for ever';
		$stale{asked} += is_stale($_) for @clients;
		$let_go += @clients;
	}
	is($stale{asked}, 0, "Pgpool-II: no stale read of $let_go that is_pinned let go to a replica");
	is($stale{on_primary}, 0, "... nor of those behind the comment");
	is($pinned, $rounds, '... while one replica lacked the note the key was pinned');
	is($stale{not_asked}, $let_go, '... and all of them are without asking');
}

# require is a question to the primary, which has everything.
{
	pause_replay($asked_r2);
	my $token = token_of_note();
	my $require = "CALL replica_pin.require('$token')";
	my %stale = (in_transaction => 0, after => 0, no_care => 0, comment => 0);
	my ($client, $careless) = map { client($_) } $pattern, $no_care;
	for (1 .. $rounds)
	{
		$client->query($_) for 'BEGIN', $require;
		$stale{in_transaction} += is_stale($client);
		$client->query('COMMIT');
		die 'require failed' if sqlstate($client->query($require));
		$stale{after} += is_stale($client);
		$careless->query($_) for 'BEGIN', $require;
		$stale{no_care} += is_stale($careless);
		$careless->query('COMMIT');
		$stale{comment} += 1 - value($careless->query('/*NO LOAD BALANCE*/ ' . note_sql()));
	}
	is($stale{in_transaction}, 0, 'Pgpool-II: require makes the whole transaction one of the primary');
	is($stale{after}, $rounds, '... outside of one it proves nothing: every read is stale');
	is($stale{no_care}, $rounds, '... nor with disable_load_balance_on_write = off');
	is($stale{comment}, $rounds, '... and with allow_sql_comments = on a comment says nothing');
	resume_replay($asked_r2);
}

# --- Pgpool-II: the token of a commit -------------------------------------------------------

{
	ask($asked, 'CREATE ROLE app LOGIN');
	ask($asked, 'GRANT ALL ON note TO app');
	ask($asked, 'ALTER ROLE app SET replica_pin.report_commit_token = on');
	wait_for_replay($asked, $r1, $r2);
	my $client = client($plain, user => 'app');
	my $pushed = sub { $_[0]{parameters}{'replica_pin.commit_token'} };
	for my $protocol (qw(query call))
	{
		my $before = ask($asked, 'SELECT replica_pin.current_token()');
		$note++;
		$client->$protocol('BEGIN');
		is($pushed->($client->$protocol("INSERT INTO note VALUES ($note)")), undef, "Pgpool-II, $protocol: no token before COMMIT");
		my $token = $pushed->($client->$protocol('COMMIT')) // '';
		cmp_ok($token, 'gt', $before, '... and one with it');
		cmp_ok($token, 'le', ask($asked, 'SELECT replica_pin.current_token()'), '... of that commit');
		is($pushed->($client->$protocol(note_sql())), undef, '... none for a read');
	}
}

done_testing();
