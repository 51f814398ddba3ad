# Errors around the commit: nothing stays pending, nothing is lost, the server
# lives.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use PostgreSQL::Test::Utils;
use RpinTest;
use Test::More;

my ($primary, $r1) = cluster(
	replicas => 1,
	conf => <<'END');
shared_preload_libraries = 'replica_pin, rpin_test'
max_prepared_transactions = 10
END
my $started = ask($primary, 'SELECT pg_postmaster_start_time()');

sub pending_keys { return ask($primary, 'SELECT pending_keys FROM replica_pin.status'); }

sub is_free
{
	my ($key) = @_;
	return names(route($primary, $key)) eq 'r1';
}

pause_replay($r1);

# --- an error in another extension's PRE_COMMIT ------------------------------

like(
	error_of($primary, "SET replica_pin.session_key = 'k1'; SET rpin_test.fail_at = 'pre_commit'; INSERT INTO note VALUES (1)"),
	qr/failed before the commit/, 'a commit fails before its record');
is(pending_keys(), 0, 'nothing is pending');
ok(is_free('k1'), 'what rolled back does not pin');
ok(!has_note($primary, 1), 'it rolled back');

# --- an error after COMMIT PREPARED has committed ----------------------------

ask($primary, "BEGIN; INSERT INTO note VALUES (2); PREPARE TRANSACTION 'two'");
like(
	error_of($primary, "SET replica_pin.session_key = 'k2'; SET rpin_test.fail_at = 'commit_prepared'; COMMIT PREPARED 'two'"),
	qr/failed after COMMIT PREPARED/, 'COMMIT PREPARED fails after it has committed');
ok(has_note($primary, 2), 'the row is there');
is(pending_keys(), 0, 'nothing is pending');
ok(!is_free('k2'), 'and the key is pinned');

# --- COMMIT PREPARED that is refused -----------------------------------------

like(error_of($primary, "SET replica_pin.session_key = 'k3'; COMMIT PREPARED 'none'"),
	qr/^42704/, 'COMMIT PREPARED of nothing is an error');
is(pending_keys(), 0, 'nothing is pending');
my ($status, $out, $err) = $primary->psql('postgres', <<'END', extra_params => [ '--set', 'ON_ERROR_STOP=0' ]);
SET replica_pin.session_key = 'k4';
BEGIN;
SAVEPOINT s;
COMMIT PREPARED 'none';
ROLLBACK TO s;
INSERT INTO note VALUES (4);
SELECT replica_pin.pin('k5') IS NULL;
COMMIT;
END
like($err, qr/cannot run inside a transaction block/, 'COMMIT PREPARED in a block is an error');
ok(has_note($primary, 4), 'the block goes on after it');
is(pending_keys(), 0, 'nothing is pending');
ok(!is_free('k4') && !is_free('k5'), 'and pins its keys');

# --- a session that ends in the middle ---------------------------------------

my $idle = session($primary);
$idle->query_safe('BEGIN');
$idle->query_safe('INSERT INTO note VALUES (6)');
$idle->query_safe("SELECT replica_pin.pin('k6')");
my $pid = $idle->query_safe('SELECT pg_backend_pid()');
ask($primary, "SELECT pg_terminate_backend($pid)");
ok(poll_until(sub { ask($primary, "SELECT count(*) FROM pg_stat_activity WHERE pid = $pid") == 0 }),
	'a session in a transaction is terminated');
is(pending_keys(), 0, 'nothing is pending');

# --- an xid that comes late --------------------------------------------------

resume_replay($r1);
configure($primary, shared_preload_libraries => 'rpin_test, replica_pin');
$primary->restart;
wait_for_samples($primary, $r1);
pause_replay($r1);
ok(is_free('k7'), 'a key is free');
ask($primary, "SET replica_pin.session_key = 'k7'; SET rpin_test.late_xid = on; SELECT 1");
ok(!is_free('k7'), 'a transaction that gets its xid after PRE_COMMIT pins');
is(pending_keys(), 0, 'nothing is pending');
like(
	error_of($primary, "SET replica_pin.session_key = 'k8'; SET rpin_test.fail_at = 'pre_commit'; INSERT INTO note VALUES (8)"),
	qr/failed before the commit/, 'a commit fails when its marks are set');
is(pending_keys(), 0, 'the marks are taken back');
ok(is_free('k8'), 'and nothing is pinned');

resume_replay($r1);
ok(poll_until(sub { !is_pinned($primary, 'k7') }), 'the key is let go');
unlike(slurp_file($primary->logfile), qr/PANIC|terminated by signal|TRAP/, 'no crash');

done_testing();
