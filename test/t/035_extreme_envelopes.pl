# Messages at the limits: of the size of a text, of nesting, of encodings. Each has
# its reason, and the backend's memory is as before.

use strict;
use warnings;

# A gigabyte takes its time on a busy machine.
BEGIN { $ENV{PG_TEST_TIMEOUT_DEFAULT} //= 900; }

use FindBin;
use lib "$FindBin::RealBin/../lib";

use PostgreSQL::Test::Utils;
use RpinLog;
use RpinTest;
use Test::More;
use Time::HiRes qw(time);

my ($primary, $replica) = cluster(replicas => 1, conf => "replica_pin.sample_lifetime = 600s\nreplica_pin.log_decisions = none\n");
my $token = ask($primary, 'SELECT replica_pin.current_token()');
poll_until(sub { route_token($primary, $token)->{reason} eq 'in_sync' }) or die 'the replica does not catch up';
my $ours = qq("wal_locations":{"main":"$token"});

sub memory
{
	my ($session, $what) = @_;
	my ($pid, $bytes) = split /\|/, ask($session, 'SELECT pg_backend_pid(), sum(total_bytes) FROM pg_backend_memory_contexts');
	my ($kilobytes) = slurp_file("/proc/$pid/status") =~ /^$what:\s*(\d+) kB/m;
	return ($bytes, $kilobytes);
}

# The greatest value of the setting, which is beyond the greatest text.
my $greatest = 2**30 - 2;

# Large texts, of blocks, because repeat() puts one after the other. A gigabyte
# takes its time: RPIN_ENVELOPE_MB=1023 asks for it.
my $megabytes = $ENV{RPIN_ENVELOPE_MB} // 128;

sub large
{
	my ($character) = @_;
	return "repeat(repeat('$character', 65536), 16 * $megabytes)";
}

# What it is, the text, max_envelope_size, the reason.
my @extremes = (
	[ 'a million brackets', q(repeat('[', 1000000)), $greatest, 'envelope_unreadable' ],
	[ 'a million objects', q(repeat('{"a":', 1000000)), $greatest, 'envelope_unreadable' ],
	[ 'a million pairs of brackets in a row', qq('{$ours,"a":[' || repeat('[],', 1000000) || '[]]}'), $greatest, 'in_sync' ],
	[ 'a million brackets in a string', qq('{$ours,"a":"' || repeat('[', 1000000) || '"}'), $greatest, 'in_sync' ],
	[ 'a million escapes', qq('{$ours,"a":"' || repeat('\\n', 1000000) || '"}'), $greatest, 'in_sync' ],
	[ 'a million escaped characters that no LATIN1 has', qq('{$ours,"a":"' || repeat('\\u4e2d', 1000000) || '"}'), $greatest, 'in_sync' ],
	[ 'a million lone surrogates', qq('{$ours,"a":"' || repeat('\\ud800', 1000000) || '"}'), $greatest, 'in_sync' ],
	[ 'a million zeros, escaped', qq('{$ours,"a":"' || repeat('\\u0000', 1000000) || '"}'), $greatest, 'envelope_unreadable' ],
	[ 'one zero, escaped, at the end', qq('{"a":"' || repeat('\\\\u0000', 1000000) || '\\u0000",$ours}'), $greatest, 'envelope_unreadable' ],
	[ 'a million backslashes, escaped, before 0000', qq('{"a":"' || repeat('\\\\u0000', 1000000) || '",$ours}'), $greatest, 'in_sync' ],
	[ 'a number of a million digits', qq('{$ours,"a":' || repeat('9', 1000000) || '}'), $greatest, 'in_sync' ],
	[ 'a name of a million characters', qq('{$ours,"' || repeat('x', 1000000) || '":1}'), $greatest, 'in_sync' ],
	[ 'our name a million times', qq('{"wal_locations":{' || repeat('"main":"0/1",', 1000000) || '"main":"0/1"}}'), $greatest, 'envelope_unreadable' ],
	[ 'our object a hundred thousand times', qq('{' || repeat('$ours,', 100000) || '$ours}'), $greatest, 'envelope_unreadable' ],
	[ 'a position of a million digits', q('{"wal_locations":{"main":"' || repeat('0', 1000000) || '"}}'), $greatest, 'envelope_unreadable' ],
	[ 'a correlation id of a million characters', qq('{$ours,"correlation_id":"' || repeat('x', 1000000) || '"}'), $greatest, 'in_sync' ],
	[ 'one byte too large', qq(rpad('{$ours}', 1024 * 1024 + 1)), '1MB', 'envelope_unreadable' ],
	[ 'as large as it may be', qq(rpad('{$ours}', 1024 * 1024)), '1MB', 'in_sync' ],
	[ "$megabytes MB of brackets", large('['), '1MB', 'envelope_unreadable' ],
	[ "$megabytes MB of brackets when they may be", large('['), $greatest, 'envelope_unreadable' ],
	[ "$megabytes MB that are valid", qq('{$ours}' || ) . large(' '), $greatest, 'in_sync' ]);

my $session = session($primary);
my $mark = log_mark($primary);
ask($session, "SELECT reason FROM replica_pin.route_envelope('{}')");
my ($bytes, $resident) = memory($session, 'VmRSS');

for my $extreme (@extremes)
{
	my ($what, $text, $limit, $reason) = @$extreme;
	my $began = time;
	my $found = ask($session, "SET replica_pin.max_envelope_size = '$limit'; SELECT reason FROM replica_pin.route_envelope($text)");
	is($found, $reason, "$what, at $limit: $reason");
	note(sprintf '%.2f s, with making the text', time - $began);
}

my ($bytes_after, $resident_after) = memory($session, 'VmRSS');
note("contexts $bytes -> $bytes_after bytes, resident $resident -> $resident_after kB");
cmp_ok($bytes_after - $bytes, '<', 256 * 1024, 'the contexts have not grown');
cmp_ok($resident_after - $resident, '<', 16 * 1024, 'nor has the process');
unlike(log_since($primary, $mark), qr/ (?:ERROR|FATAL|PANIC|TRAP): |terminated by signal/, 'nothing went wrong');

# Its size is told without making a large text out of a small compressed one.
ask($primary, 'CREATE TABLE large AS SELECT repeat(\'[\', 64 * 1024 * 1024) AS text');
my $fresh = session($primary);
my $question = 'SELECT reason FROM large, replica_pin.route_envelope(text)';
ask($fresh, "SELECT reason FROM replica_pin.route_envelope('{}')");
my (undef, $peak) = memory($fresh, 'VmHWM');
is(ask($fresh, $question), 'envelope_unreadable', '64 MB in less than one of a table');
my (undef, $peak_after) = memory($fresh, 'VmHWM');
cmp_ok($peak_after - $peak, '<', 16 * 1024, 'are not unpacked to be refused');
ask($fresh, "SET replica_pin.max_envelope_size = '$greatest'");
is(ask($fresh, $question), 'envelope_unreadable', 'and when they may be');
(undef, $peak_after) = memory($fresh, 'VmHWM');
cmp_ok($peak_after - $peak, '>', 48 * 1024, 'control: unpacked they would be seen');

# --- encodings -----------------------------------------------------------------------

# Bytes between the quotes of a string, by database: is it one there?
my %strings = (
	'' => 'SQL_ASCII LATIN1 EUC_JP',
	'C3A9' => 'SQL_ASCII LATIN1 EUC_JP',
	'E4B8AD' => 'SQL_ASCII LATIN1',
	'E9' => 'LATIN1',
	'FF' => 'LATIN1',
	'C080' => 'LATIN1',
	'EDA080' => 'LATIN1',
	'F4908080' => 'LATIN1',
	'E4B8' => 'LATIN1 EUC_JP',
	'A4A2' => 'LATIN1 EUC_JP',
	'5C7534653264' => 'SQL_ASCII LATIN1 EUC_JP',
	'5C7564383030' => 'SQL_ASCII LATIN1 EUC_JP',
	'5C7530303030' => '',
	'5C75303030' => '',
	'01' => '');

for my $encoding (qw(SQL_ASCII LATIN1 EUC_JP))
{
	my $database = lc $encoding;
	ask($primary, "CREATE DATABASE $database TEMPLATE template0 ENCODING $encoding LOCALE \"C\"");
	my $within = session($primary, $database);
	ask($within, 'CREATE EXTENSION replica_pin');
	ask($within, 'CREATE CAST (bytea AS text) WITHOUT FUNCTION');
	for my $hex (sort keys %strings)
	{
		my $expected = $strings{$hex} =~ /\b$encoding\b/ ? 'in_sync' : 'envelope_unreadable';
		for my $place ([ '{"a":"', "\",$ours}" ], [ '{"', "\":1,$ours}" ], [ "{$ours,\"correlation_id\":\"", '"}' ])
		{
			my ($before, $behind) = @$place;
			is(ask($within, "SELECT reason FROM replica_pin.route_envelope(('$before'::bytea || '\\x$hex'::bytea || '$behind'::bytea)::text)"),
				$expected, "$encoding: $before$hex: $expected");
		}
	}
	is(ask($within, "SELECT reason FROM replica_pin.route_envelope(('\\xEFBBBF'::bytea || '{$ours}'::bytea)::text)"),
		'envelope_unreadable', "$encoding: a byte order mark");
}

done_testing();
