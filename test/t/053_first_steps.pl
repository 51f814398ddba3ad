# The small application of docs/first-steps.md says what it says there: when all
# replicas have replayed, when one lags, and when all do.

use strict;
use warnings;

use FindBin;
use PostgreSQL::Test::Utils;
use RpinTest;
use Test::More;

my ($primary, @replicas) = cluster(replicas => 2);
my ($r1, $r2) = @replicas;
ask($primary, 'CREATE ROLE app LOGIN');
ask($primary, 'CREATE DATABASE app OWNER app');
$primary->safe_psql('app', 'CREATE EXTENSION replica_pin; SET ROLE app; CREATE TABLE note (id integer PRIMARY KEY, body text)');
wait_for_replay($primary, @replicas);

my $token = qr/[0-9A-F]{16}-00000001-[0-9A-F]{16}/;

sub address { return $_[0]->host . ':' . $_[0]->port; }

# What it prints, or its error.
sub app
{
	my ($text) = @_;
	my ($output, $error) = run_command([ 'python3', "$FindBin::RealBin/../../examples/first-steps/app.py", $text, address($primary),
			map { $_->name . '=' . address($_) } @replicas ]);
	return "$output\n$error";
}

like(app('first'), qr/^token: $token$/m, 'the write has a token');
wait_for_replay($primary, @replicas);

pause_replay($r2);
my $output = app('second');
like($output, qr/^unprotected, r2: \('first',\)$/m, 'unprotected, a replica that is behind shows the old text');
like($output, qr/^token mode,  r1: \('second',\) (?:replayed|RP001, so from the primary)$/m, 'token mode: the new one');
like($output, qr/^token mode,  r2: \('second',\) RP001, so from the primary$/m, '... of the primary, when the replica is behind');
like($output, qr/^key mode, route:     (?:r1 replica_caught_up|primary replicas_behind) \('second',\)/m, 'key mode: the new one too');
like($output, qr/^key mode, is_pinned: True$/m, '... and the key is pinned');

pause_replay($r1);
$output = app('third');
like($output, qr/^token mode,  $_: \('third',\) RP001, so from the primary$/m, "all behind: token mode, $_") for qw(r1 r2);
like($output, qr/^key mode, route:     primary replicas_behind \('third',\)$/m, '... key mode');

resume_replay($_) for @replicas;
ok(poll_until(sub { is_pinned($primary, 'user:42') == 0 }), 'the key is free again');
wait_for_replay($primary, @replicas);
$output = app('third');
like($output, qr/^token mode,  $_: \('third',\)/m, "$_ serves") for qw(r1 r2);

done_testing();
