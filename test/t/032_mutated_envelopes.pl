# Ten thousand messages that somebody has tampered with, on a live server: no
# error, every decision counted, every line of the log in its form, and the
# backend's memory as before.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use Encode ();
use PostgreSQL::Test::Utils;
use RpinLog;
use RpinMutate;
use RpinTest;
use Test::More;

my $count = 10_000;
my $seed = $ENV{RPIN_SEED} // int rand 2**31;

my ($primary, $replica) = cluster(replicas => 1, conf => "replica_pin.sample_lifetime = 60s\n");
note("RPIN_SEED=$seed repeats this");

my $token = ask($primary, 'SELECT replica_pin.current_token()');
my $lsn = ask($primary, "SELECT replica_pin.token_lsn('$token')");
my @envelopes = (
	ask($primary, q{SELECT replica_pin.stamp('{"note": 24}', 'request-7')}),
	qq({"wal_locations":{"main":"$token"},"correlation_id":"m1"}),
	qq({"wal_locations":{"main":"$lsn"},"correlation_id":"m2","note":[1,{"a":null}]}),
	qq({"note":1,"wal_locations":{"sec":"$token","ci":"0/1","main":"$token"},"correlation_id":"m3"}),
	qq({"correlation_id":"m4","payload":{"wal_locations":{"main":"x"},"text":"\xC3\xA9\\u00e9\\n"},"wal_locations":{"main":"$token"}}),
	q({"wal_locations":{"ci":"0/1"},"correlation_id":"m5"}));
my @mutated = mutated_envelopes($seed, $count, @envelopes);

# Any bytes in a database without an encoding; the others as they are.
sub load
{
	my ($database, @texts) = @_;
	my $file = PostgreSQL::Test::Utils::tempdir() . '/envelopes';
	my $number = 0;
	append_to_file($file, join '', map { $number++ . "\t" . s/([^ -\[\]-~])/sprintf '\\x%02x', ord $1/ger . "\n" } @texts);
	$primary->safe_psql($database, <<"END");
CREATE TABLE envelope (n integer PRIMARY KEY, text text);
COPY envelope FROM '$file';
VACUUM ANALYZE envelope;
END
	return scalar @texts;
}

# What the backend of a session holds: in its contexts, and in all.
sub memory
{
	my ($session, $what) = @_;
	my ($pid, $bytes) = split /\|/, ask($session, 'SELECT pg_backend_pid(), sum(total_bytes) FROM pg_backend_memory_contexts');
	my ($resident) = slurp_file("/proc/$pid/status") =~ /^$what:\s*(\d+) kB/m;
	return ($bytes, $resident);
}

my $ask_all = 'SELECT n, reason FROM envelope, replica_pin.route_envelope(text) ORDER BY n';

sub storm
{
	my ($database, @texts) = @_;
	my $asked = load($database, @texts);
	my $session = session($primary, $database);
	my $count_by_reason = "SELECT string_agg(reason || '=' || count, ' ' ORDER BY reason) FROM";

	ask($session, 'SET replica_pin.log_decisions = none; SET enable_sort = off; SET enable_bitmapscan = off; SET enable_seqscan = off;');
	my $answered = ask($session, "$count_by_reason (SELECT reason, count(*) FROM ($ask_all) a GROUP BY 1) b");
	note("$database: $answered");
	my ($bytes, $resident) = memory($session, 'VmRSS');
	my (undef, $peak) = memory($session, 'VmHWM');

	ask($session, 'SELECT replica_pin.reset_stats(); SET replica_pin.log_decisions = \'all\'');
	my $mark = log_mark($primary);
	my @reasons = map { (split /\|/)[1] } split /\n/, ask($session, $ask_all);
	is(scalar @reasons, $asked, "$database: $asked messages, as many answers");
	is(ask($session, "$count_by_reason (SELECT reason, enforced AS count FROM replica_pin.stat_decisions WHERE enforced > 0) s"),
		$answered, "$database: each counted under its reason");
	is(ask($session, 'SELECT sum(enforced + not_enforced) FROM replica_pin.stat_decisions'), $asked, "$database: and once");

	my $log = log_since($primary, $mark);
	my @lines = decision_lines($log);
	is(join(',', map { $_->{reason} } @lines), join(',', @reasons), "$database: each has its line");
	is((grep { ($_->{decision} eq 'replica') ne ($_->{reason} eq 'in_sync') } @lines), 0, "$database: with the right decision");
	unlike($log, qr/ (?:ERROR|WARNING|FATAL|PANIC|TRAP): /, "$database: and no error");
	my %id = map { $_ => /"correlation_id": ?"([^"]+)"/ } @envelopes;
	my @untouched = grep { exists $id{ $texts[$_] } } 0 .. $#texts;
	cmp_ok(scalar @untouched, '>', $asked / 40, "$database: " . @untouched . ' are as they were');
	is_deeply([ map { $lines[$_]{correlation_id} } @untouched ], [ map { $id{ $texts[$_] } } @untouched ],
		"$database: logged with their correlation id");
	like($answered, qr/\b$_=/, "$database: $_ is among them")
	  for qw(in_sync envelope_unreadable wal_locations_absent wrong_cluster position_in_future unknown_timeline);

	# Again, and three times as many in one statement.
	ask($session, 'SET replica_pin.log_decisions = none');
	ask($session, "SELECT count(*) FROM generate_series(1, 3), ($ask_all) a");
	my ($bytes_after, $resident_after) = memory($session, 'VmRSS');
	my (undef, $peak_after) = memory($session, 'VmHWM');
	note("$database: contexts $bytes -> $bytes_after bytes, resident $resident -> $resident_after kB, peak $peak -> $peak_after kB");
	cmp_ok($bytes_after - $bytes, '<', 256 * 1024, "$database: the contexts have not grown");
	cmp_ok($resident_after - $resident, '<', 4096, "$database: nor has the process");
	cmp_ok($peak_after - $peak, '<', 8192, "$database: nor was it larger meanwhile");
	return;
}

storm('postgres', grep { eval { Encode::decode('UTF-8', my $copy = $_, Encode::FB_CROAK); 1 } } @mutated);
ask($primary, 'CREATE DATABASE bytes TEMPLATE template0 ENCODING SQL_ASCII LOCALE "C"');
$primary->safe_psql('bytes', 'CREATE EXTENSION replica_pin');
storm('bytes', @mutated);

done_testing();
