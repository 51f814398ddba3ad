# Between the moment a commit becomes visible and the moment its position is
# recorded, no decision names a replica that lacks the row.
#
# The window is held open in two ways: by a gate in a transaction callback that
# runs before ours (test/module), and by a synchronous standby that is down.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use PostgreSQL::Test::Utils;
use RpinTest;
use Test::More;

my ($primary, $fresh, $paused) = cluster(
	replicas => 2,
	conf => <<'END');
shared_preload_libraries = 'replica_pin, rpin_test'
max_prepared_transactions = 10
END
my $gate = PostgreSQL::Test::Utils::tempdir() . '/gate';
my $watcher = session($primary);

sub open_gate { unlink $gate; return; }

sub close_gate
{
	append_to_file($gate, '');
	return;
}

sub pending_keys { return ask($watcher, 'SELECT pending_keys FROM replica_pin.status'); }

# Starts statements in a session of their own, without waiting for their end.
sub start
{
	my (@statements) = @_;
	my $writer = session($primary);
	$writer->query_safe("SET rpin_test.gate = '$gate'");
	$writer->query_until(qr/started/, join("\n", '\echo started', @statements, '\echo finished', ''));
	return $writer;
}

sub finish
{
	my ($writer) = @_;
	$writer->query_until(qr/finished/, '');
	return;
}

# In the window: the row is there for others, and the key's reads stay on the
# primary.
sub check_window
{
	my ($what, $id, $key, @statements) = @_;

	close_gate();
	my $writer = start(@statements);
	ok(poll_until(sub { has_note($watcher, $id) }), "$what: another session sees the row");
	my $decision = route($watcher, $key);
	is($decision->{reason}, 'commit_pending', "$what: the key is pending");
	is(names($decision), '', "$what: no replica is named");
	ok(is_pinned($watcher, $key), "$what: it is pinned");
	is(route_all($watcher, [ 'somebody else', $key ])->{reason},
		'commit_pending', "$what: so is a read that it matters to");
	open_gate();
	finish($writer);
	is(pending_keys(), 0, "$what: nothing is pending afterwards");
	ok(poll_until(sub { names(route($watcher, $key)) eq 'r1' }),
		"$what: then the one replica that has it is named");
	return;
}

pause_replay($paused);

check_window('session_key', 1, 'k1',
	"SET replica_pin.session_key = 'k1';", 'INSERT INTO note VALUES (1);');

check_window('pin() in the transaction', 2, 'k2', 'BEGIN;', 'INSERT INTO note VALUES (2);',
	"SELECT replica_pin.pin('k2') IS NULL;", 'COMMIT;');

ask($primary, <<'END');
CREATE TRIGGER pin AFTER INSERT ON note FOR EACH ROW
  EXECUTE FUNCTION replica_pin.pin_row('note', 'id');
END
check_window('pin_row()', 3, 'note:3', 'INSERT INTO note VALUES (3);');
check_window('more keys than are remembered one by one', 4, 'any key at all',
	'INSERT INTO note SELECT n FROM generate_series(10000, 12000) n UNION ALL SELECT 4;');
ask($primary, 'DROP TRIGGER pin ON note');

ask($primary, "BEGIN; INSERT INTO note VALUES (5); PREPARE TRANSACTION 'five'");
check_window('COMMIT PREPARED', 5, 'k5',
	"SET replica_pin.session_key = 'k5';", "COMMIT PREPARED 'five';");

# A replica that had the row all the time of the window is named only after it.
resume_replay($paused);
wait_for_replay($primary, $paused);

# --- a synchronous standby that does not answer ------------------------------

configure($primary, synchronous_standby_names => 'nobody');

my $writer = start("SET replica_pin.session_key = 'k6';", 'INSERT INTO note VALUES (6);');
ok(poll_until(sub { route($watcher, 'k6')->{reason} eq 'commit_pending' }),
	'the key is pending while its commit waits for a standby');
ok(poll_until(sub { has_note($fresh, 6) }), 'a replica shows the row already');
ok(!has_note($watcher, 6), 'the primary does not yet');
is(route($watcher, 'k6')->{reason}, 'commit_pending', 'it is pending still');

pause_replay($paused);
ask($primary, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
finish($writer);
is(pending_keys(), 0, 'nothing is pending after the wait was cancelled');
cmp_ok(
	ask($watcher, "SELECT replica_pin.token_lsn((replica_pin.route('k6')).required) > floor_lsn FROM replica_pin.status"),
	'eq', 't', 'the commit whose wait was cancelled has pinned');

ask($primary, "SET synchronous_commit = local; BEGIN; INSERT INTO note VALUES (7); PREPARE TRANSACTION 'seven'");
$writer = start("SET replica_pin.session_key = 'k7';", "COMMIT PREPARED 'seven';");
ok(poll_until(sub { route($watcher, 'k7')->{reason} eq 'commit_pending' }),
	'a prepared transaction is pending while it waits for a standby');
ask($primary, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
ok(poll_until(sub { pending_keys() == 0 }), 'nothing is pending after its session was terminated');
ok(has_note($watcher, 7), 'it has committed');
unlike(names(route($watcher, 'k7')), qr/r2/, 'and the replica that lacks it is not named');

configure($primary, synchronous_standby_names => '');
resume_replay($paused);
ok(poll_until(sub { !is_pinned($watcher, 'k7') && !is_pinned($watcher, 'k6') }), 'the keys are let go');

done_testing();
