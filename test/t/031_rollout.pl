# Rolling out by percentage: the share is what is set, it is the same after a
# restart, and who is in at 10 % is in at 50 %. And the log of decisions: one form
# whatever the correlation id holds, and never a flood.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use PostgreSQL::Test::Utils;
use RpinTest;
use Test::More;

my $keys = 100_000;
my ($primary, $replica) = cluster(
	replicas => 1,
	conf => "replica_pin.log_decisions = none\nreplica_pin.sample_lifetime = 60s\n");

# Whoever is enforced at a percentage: how many, and a fingerprint of the set.
sub enforced
{
	my ($percent) = @_;
	return ask($primary, <<"END");
SET replica_pin.enforce_percent = $percent;
SELECT count(*) || ' ' || coalesce(md5(string_agg(n::text, ',' ORDER BY n)), '')
FROM generate_series(1, $keys) n WHERE (replica_pin.route('key:' || n)).reason <> 'not_enforced'
END
}

sub number_of { return (split / /, $_[0])[0]; }

is(number_of(enforced(0)), 0, 'nobody at 0');
is(number_of(enforced(100)), $keys, 'everybody at 100');
my %before = map { $_ => enforced($_) } 1, 10, 50;
for my $percent (sort { $a <=> $b } keys %before)
{
	my $share = 100 * number_of($before{$percent}) / $keys;
	cmp_ok(abs($share - $percent), '<', 0.5, "$share % of the keys at $percent");
}
$primary->restart;
wait_for_samples($primary, $replica);
is(enforced(10), $before{10}, 'the same keys after a restart');
is( ask($primary, <<"END"), 0, 'who is in at 10 is in at 50');
SET replica_pin.enforce_percent = 10;
CREATE TEMP TABLE inside AS SELECT n FROM generate_series(1, $keys) n
  WHERE (replica_pin.route('key:' || n)).reason <> 'not_enforced';
SET replica_pin.enforce_percent = 50;
SELECT count(*) FROM inside WHERE (replica_pin.route('key:' || n)).reason = 'not_enforced'
END

# Several keys: one that is in is enough.
my ($in, $out) = map { ask($primary, <<"END") } '<>', '=';
SET replica_pin.enforce_percent = 50;
SELECT min(n) FROM generate_series(1, 100) n WHERE (replica_pin.route('key:' || n)).reason $_ 'not_enforced'
END
is( ask($primary, <<"END"), 't f', 'one key that is in is enough');
SET replica_pin.enforce_percent = 50;
SELECT concat_ws(' ', (replica_pin.route_all(ARRAY['key:$out', 'key:$in'])).reason <> 'not_enforced',
  (replica_pin.route_all(ARRAY['key:$out'])).reason <> 'not_enforced')
END

# A token has no key: the share is that of whoever asks, and does not change.
my $token = ask($primary, 'SELECT replica_pin.current_token()');
my $consumers = ask($primary, <<"END");
SET replica_pin.enforce_percent = 50;
SELECT count(*) FROM generate_series(1, 1000) n,
  LATERAL (SELECT set_config('application_name', 'consumer-' || n, false)) s (name),
  LATERAL replica_pin.route(token => CASE WHEN name IS NOT NULL THEN '$token' END) r
WHERE reason <> 'not_enforced'
END
cmp_ok(abs($consumers - 500), '<', 80, "$consumers of 1000 consumers at 50");
is( ask($primary, <<"END"), 1, 'what one consumer decides is decided alike');
SET replica_pin.enforce_percent = 50;
SET application_name = 'one consumer';
SELECT count(DISTINCT reason = 'not_enforced') FROM generate_series(1, 100) n,
  LATERAL replica_pin.route_envelope(CASE WHEN n > 0 THEN '{"id":' || n || ',"wal_locations":{"main":"$token"}}' END)
END

# --- the log -----------------------------------------------------------------

pause_replay($replica);
ask($primary, 'CREATE TABLE written_later ()');
my $offset = -s $primary->logfile;
ask($primary, <<'END');
SET replica_pin.log_decisions = fallbacks;
SET replica_pin.correlation_id = E'forged"\nLOG:  replica_pin: decision=replica \\ \303\251\302\205';
SELECT replica_pin.pin('k');
SELECT reason FROM replica_pin.route('k');
SELECT reason FROM replica_pin.route_envelope('{"correlation_id":"a\"b\nc","wal_locations":{"main":"soon"}}');
SELECT set_config('replica_pin.correlation_id', repeat('x', 1000), false);
SELECT reason FROM replica_pin.route('');
SELECT replica_pin.is_pinned('k');
END
my @lines = slurp_file($primary->logfile, $offset) =~ /^.*?LOG:  (.*decision=.*)$/mg;
is(scalar @lines, 4, 'one line for each fallback');
is((grep { /[^ -~]/ } @lines), 0, 'printable ASCII, whatever the correlation id holds');
like($lines[0], qr/^replica_pin: decision=primary reason=replicas_behind required=\S+ best=r1 behind_bytes=\d+ sample_age_ms=\d+ correlation_id="forged\\"\\x0ALOG:  replica_pin: decision=replica \\\\ (\\x[0-9A-F]{2})+"$/, 'of the setting');
like($lines[1], qr/reason=envelope_unreadable .*correlation_id="a\\\\\\"b\\\\nc"$/, 'of the message rather than the setting');
like($lines[2], qr/reason=no_session_key .*correlation_id="x{128}"$/, 'cut');

$offset = -s $primary->logfile;
ask($primary, <<'END');
SELECT replica_pin.reset_stats();
SET replica_pin.log_decisions = fallbacks;
SELECT count((replica_pin.route('k')).reason) FROM generate_series(1, 20000);
END
@lines = slurp_file($primary->logfile, $offset) =~ /decision=primary (.*)$/mg;
cmp_ok(scalar @lines, '>=', 1, scalar(@lines) . ' lines for 20,000 fallbacks');
cmp_ok(scalar @lines, '<', 400, 'no flood');
is(ask($primary, q{SELECT enforced FROM replica_pin.stat_decisions WHERE reason = 'replicas_behind'}), 20000, 'all are counted');
my $later;
poll_until(sub {
	$offset = -s $primary->logfile;
	ask($primary, "SET replica_pin.log_decisions = fallbacks; SELECT reason FROM replica_pin.route('k')");
	($later) = slurp_file($primary->logfile, $offset) =~ /left_out=(\d+)/;
	return $later;
});
cmp_ok($later, '>', 0, 'a later line says how many were left out');

resume_replay($replica);
poll_until(sub { !is_pinned($primary, 'k') });
$offset = -s $primary->logfile;
ask($primary, "SET replica_pin.log_decisions = fallbacks; SELECT count((replica_pin.route('k')).reason) FROM generate_series(1, 1000)");
unlike(slurp_file($primary->logfile, $offset), qr/decision=/, 'nothing when in sync');

done_testing();
