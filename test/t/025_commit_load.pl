# Commits under load: eight sessions on a few keys, sessions that are terminated
# at random moments, errors before the commit. Nothing stays pending, a position
# never goes down, no pin is lost, the server lives.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use PostgreSQL::Test::Utils;
use RpinTest;
use Test::More;
use Time::HiRes qw(time);

my $seconds = 8;

my ($primary, $replica) = cluster(
	replicas => 1,
	conf => <<'END');
shared_preload_libraries = 'replica_pin, rpin_test'
synchronous_commit = off
fsync = off
END
my $started = ask($primary, 'SELECT pg_postmaster_start_time()');
my $folder = PostgreSQL::Test::Utils::tempdir();

# Every row says which keys its commit has pinned.
ask($primary, <<'END');
CREATE TABLE written (id bigserial, key text, at pg_lsn DEFAULT pg_current_wal_insert_lsn());
CREATE TRIGGER pin AFTER INSERT ON written FOR EACH ROW EXECUTE FUNCTION replica_pin.pin_row('row', 'key');
END

# A psql goes on after an error, which pgbench does not.
append_to_file("$folder/write.sql", join '', map { <<"END" } 1 .. 2000);
BEGIN;
SET LOCAL replica_pin.session_key = 'k@{[ 1 + $_ % 5 ]}';
SET LOCAL rpin_test.fail_at = '@{[ $_ % 17 == 0 ? "pre_commit" : "" ]}';
INSERT INTO written (key) VALUES ('@{[ 1 + $_ % 5 ]}');
COMMIT;
END

# A position that goes down is an error of the script, which the count shows.
append_to_file("$folder/read.sql", <<'END');
\set key random(1, 5)
SELECT watch('row:' || :key);
END
ask($primary, <<'END');
CREATE FUNCTION watch(key text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  seen text := coalesce(current_setting('seen.' || replace(key, ':', '_'), true), '');
  now_required text := (replica_pin.route(key)).required;
BEGIN
  IF now_required < seen THEN
    RAISE EXCEPTION 'the position of % went down', key;
  END IF;
  PERFORM set_config('seen.' || replace(key, ':', '_'), now_required, false);
END $$;
END

my $clients = 0;

sub start_client
{
	my ($name, $command) = @_;
	my $output = "$folder/" . ++$clients;
	local $ENV{PGAPPNAME} = $name;
	local $ENV{PGHOST} = $primary->host;
	local $ENV{PGPORT} = $primary->port;
	return IPC::Run::start([ 'sh', '-c', $command ], '<', \undef, '>', "$output.out", '2>', "$output.err");
}

my $readers = start_client('reader', "exec pgbench -n -f $folder/read.sql -c 2 -T $seconds postgres");

# A writer that is terminated is followed by another.
my @writers = map {
	start_client('writer', "while [ ! -e $folder/stop ]; do psql -X -q -f $folder/write.sql postgres; done")
} 1 .. 8;
my $killer = session($primary);
my $kill = "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity WHERE application_name = 'writer' ORDER BY random() LIMIT %s) victim";
my $end = time + $seconds;
my $terminated = 0;
$terminated += ask($killer, sprintf $kill, 1) while time < $end;
append_to_file("$folder/stop", '');
ask($killer, sprintf $kill, 'ALL');
$_->finish for $readers, @writers;

cmp_ok($terminated, '>', 10, "$terminated sessions were terminated");
is(slurp_file("$folder/1.err") =~ /went down/ ? 1 : 0, 0, 'no position ever went down');
like(slurp_file("$folder/1.out"), qr/number of transactions actually processed: [1-9]\d{2}/, 'and they were watched');
cmp_ok(ask($primary, 'SELECT count(*) FROM written'), '>', 1000, 'rows were written');
ok(poll_until(sub { ask($primary, 'SELECT pending_keys FROM replica_pin.status') == 0 }, 10), 'nothing is pending');
is(ask($primary, 'SELECT pg_postmaster_start_time()'), $started, 'the server was not restarted');

# Each key is pinned beyond the insertion of its last row.
is( ask($primary, <<'END'), 0, 'no pin is lost');
SELECT count(*) FROM (SELECT key, max(at) AS at FROM written GROUP BY key) w
WHERE replica_pin.token_lsn((replica_pin.route('row:' || key)).required) <= at
   OR replica_pin.token_lsn((replica_pin.route('k' || key)).required) <= at
END
ok(poll_until(sub { ask($primary, "SELECT bool_or(replica_pin.is_pinned('row:' || k)) FROM generate_series(1, 5) k") eq 'f' }),
	'the keys are let go');
unlike(slurp_file($primary->logfile), qr/PANIC|terminated by signal|TRAP/, 'no crash');

done_testing();
