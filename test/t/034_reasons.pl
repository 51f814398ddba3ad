# Every reason: reached by each call that can give it, with the one counter that
# moves and the line in the log, or none.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RpinFake;
use RpinLog;
use RpinTest;
use Test::More;

my ($primary, $r1, $r2) = cluster(replicas => 2, conf => "replica_pin.sample_lifetime = 60s\n");

# By the same name as in the code: none may be missing at the end.
my @all = slurp_file("$FindBin::RealBin/../../src/core/rpin_reason.h") =~ /R\([A-Z_]+, "(\w+)"/g;
my %seen;

my $token = ask($primary, 'SELECT replica_pin.current_token()');
my ($system) = split /-/, $token;

sub envelope
{
	my ($position) = @_;
	return qq({"correlation_id": "of the message", "wal_locations": {"main": "$position"}});
}

# The calls that ask for a position, and those that ask for a key.
sub by_position
{
	my ($position) = @_;
	return (
		"route(token => '$position')",
		"route_all(NULL, '$position')",
		"route_envelope('" . envelope($position) . "')");
}

sub by_key
{
	my ($key) = @_;
	return ("route('$key')", "route_all('{$key}')");
}

sub counters
{
	my ($session) = @_;
	return {
		map { ("$_->{reason}, enforced" => $_->{enforced}, "$_->{reason}, not enforced" => $_->{not_enforced}) }
		  rows($session, 'SELECT * FROM replica_pin.stat_decisions')
	};
}

sub moved
{
	my ($before, $after) = @_;
	return { map { $_ => $after->{$_} - $before->{$_} } grep { $after->{$_} != $before->{$_} } keys %$after };
}

sub line_fits
{
	my ($what, $line, $decision, $id, $found) = @_;
	is($line->{decision}, defined $decision->{replica} ? 'replica' : 'primary', "$what: the line says where");
	is($line->{reason}, $found, "$what: why");
	is($line->{enforced}, $decision->{reason} eq 'not_enforced' ? 'false' : undef, "$what: whether enforced");
	is($line->{required}, $decision->{required}, "$what: what is required");
	is($line->{correlation_id}, $id, "$what: for whom");
	# a position is not compared where it could not be judged
	my $compared = defined $line->{best} && defined $line->{required}
	  && $found !~ /^(?:in_write_transaction|not_primary)$/;
	is(defined $line->{behind_bytes}, $compared, "$what: how far the best is");
	return;
}

# One call, with log_decisions = fallbacks or all.
#
#	found	the reason that is counted, if it is another one
#	quiet	it is no fallback: no line but with all
#	mute	not counted and never logged
sub check_call
{
	my ($session, $reason, $call, $log, %expected) = @_;
	my $node = $expected{node} // $primary;
	my $counts = $expected{counts} // $session;
	my $found = $expected{found} // $reason;
	my $what = "$reason, $call, $log" =~ s/'\{.*\}'/.../r;
	my $id = $call =~ /of the message/ ? 'of the message' : "$reason $log";

	ask($session, "SET replica_pin.log_decisions = '$log'; SET replica_pin.correlation_id = '$reason $log';");
	my $before = $expected{mute} ? {} : counters($counts);
	my $mark = log_mark($node);
	my $decision = row($session, "SELECT * FROM replica_pin.$call");
	my $after = $expected{mute} ? {} : counters($counts);
	is($decision->{reason}, $reason, $what);
	is(defined $decision->{replica}, !!@{ $decision->{replicas} }, "$what: a replica or none");
	$seen{$reason} = 1;
	is_deeply(moved($before, $after),
		$expected{mute} ? {} : { ($reason eq 'not_enforced' ? "$found, not enforced" : "$found, enforced") => 1 },
		"$what: one counter moves by one");

	my @lines = decision_lines(log_since($node, $mark));
	my $expected_lines = $expected{mute} || ($expected{quiet} && $log eq 'fallbacks') ? 0 : 1;
	is(scalar @lines, $expected_lines, "$what: $expected_lines lines");
	line_fits($what, $lines[0], $decision, $id, $found) if @lines == 1;
	return;
}

sub check_reason
{
	my ($session, $reason, $calls, %expected) = @_;
	for my $call (@$calls)
	{
		check_call($session, $reason, $call, $_, %expected) for qw(fallbacks all);
	}
	return;
}

my $session = session($primary);

# --- what is wrong with the question -------------------------------------------------

sub position { return sprintf '%s-%08X-%016X', @_; }

ok(poll_until(sub { route($session, undef, $token)->{reason} eq 'in_sync' }), 'both replicas have the token');
check_reason($session, 'in_sync', [ by_key('k'), by_position($token) ], quiet => 1);
check_reason($session, 'no_session_key', [ 'route()', "route('')", "route_all('{}')", 'route_all(ARRAY[NULL])' ]);
check_reason($session, 'token_unreadable', [ "route(token => 'x')", "route_all('{k}', '')" ]);
check_reason($session, 'wal_locations_absent', [ q{route_envelope('{"correlation_id": "of the message"}')} ]);
check_reason($session, 'envelope_unreadable', [ q{route_envelope('of nobody')}, 'route_envelope(NULL)' ]);
check_reason($session, 'wrong_cluster', [ by_position(position('0000000000000001', 1, 1)) ]);
check_reason($session, 'position_in_future', [ by_position(position($system, 1, 2**60)) ]);
check_reason($session, 'unknown_timeline', [ by_position(position($system, 9, 1)) ]);
ask($session, 'BEGIN; CREATE TABLE written ()');
check_reason($session, 'in_write_transaction', [ by_key('k'), by_position($token) ], counts => session($primary));
ask($session, 'ROLLBACK');

# --- what the replicas have ----------------------------------------------------------

pause_replay($r1);
my $later = pin($session, 'k');
ask($session, 'SELECT pg_logical_emit_message(true, \'\', \'\')');
$later = pin($session, 'k');
ok(poll_until(sub { route($session, 'k')->{reason} eq 'replica_caught_up' }), 'one replica has it');
check_reason($session, 'replica_caught_up', [ by_key('k'), by_position($later) ], quiet => 1);

pause_replay($r2);
ask($session, 'SELECT pg_logical_emit_message(true, \'\', \'\')');
$later = pin($session, 'k');
check_reason($session, 'replicas_behind', [ by_key('k'), by_position($later) ]);
ask($session, 'SET replica_pin.enforce_percent = 0');
check_reason($session, 'not_enforced', [ by_key('k'), by_position($later) ], found => 'replicas_behind');
ask($session, 'RESET replica_pin.enforce_percent');
resume_replay($r1, $r2);
ok(poll_until(sub { route($session, 'k')->{reason} eq 'in_sync' }), 'both have it');

# --- a commit that waits for a standby -----------------------------------------------

configure($primary, synchronous_standby_names => 'nobody');
poll_until(sub { ask($session, 'SHOW synchronous_standby_names') eq 'nobody' });
my $waiting = $primary->background_psql('postgres');
$waiting->query_until(qr/begun/, "\\echo begun\nBEGIN; SELECT replica_pin.pin('slow'); INSERT INTO note VALUES (1); COMMIT;\n");
ok(poll_until(sub { route($session, 'slow')->{reason} eq 'commit_pending' }), 'a commit is under way');
check_reason($session, 'commit_pending', [ by_key('slow') ]);
configure($primary, synchronous_standby_names => undef);
ok(poll_until(sub { route($session, 'slow')->{reason} eq 'in_sync' }), 'it is over');
$waiting->quit;

# --- operations ----------------------------------------------------------------------

configure($primary, 'replica_pin.replicas' => 'dead=127.0.0.1:' . dead_port());
ok(poll_until(sub { route($session, 'k')->{reason} eq 'samples_stale' }), 'nobody answers');
check_reason($session, 'samples_stale', [ by_key('k'), by_position($token) ]);
configure($primary, 'replica_pin.replicas' => undef);
ok(poll_until(sub { route($session, 'k')->{reason} eq 'no_replicas' }), 'nobody is in the list');
check_reason($session, 'no_replicas', [ by_key('k'), by_position($token) ]);

my $on_replica = session($r1);
check_reason($on_replica, 'not_primary', [ by_key('k'), by_position($token) ], node => $r1);

# --- a failover ----------------------------------------------------------------------

wait_for_replay($primary, $r1);
$primary->stop;
$r1->promote;
my $successor = session($r1);
my $switch = ask($successor, "SELECT (timeline_begin - '0/0')::bigint FROM replica_pin.node_status()");
my $lost = position($system, 1, $switch + 1);
ok(poll_until(sub { route_token($successor, $lost)->{reason} eq 'write_lost' }), 'the history is known');
check_reason($successor, 'write_lost', [ by_position($lost) ], node => $r1);

# --- without preload -----------------------------------------------------------------

$r2->adjust_conf('postgresql.conf', 'shared_preload_libraries', undef);
$r2->restart;
check_reason(session($r2), 'not_preloaded', [ by_key('k'), by_position($token) ], node => $r2, mute => 1);

is(join(' ', grep { !$seen{$_} } @all), '', 'no reason is missing');
cmp_ok(scalar @all, '>=', 18, scalar(@all) . ' reasons');
done_testing();
