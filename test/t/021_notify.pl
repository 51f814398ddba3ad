# A listener that a NOTIFY wakes asks where to read at once, over thousands of
# rounds against a replica that lags: never is it sent to one that lacks the row.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use PostgreSQL::Test::Utils;
use RpinTest;
use Test::More;

my $rounds = 3000;
my ($primary, $fresh, $late) = cluster(replicas => 2, conf => "fsync = off\n");

# The row of the first message is there before the replica is late for it.
configure($late, recovery_min_apply_delay => '20ms');

my ($output, $error);
my $good = IPC::Run::run(
	[ '/usr/bin/python3', "$FindBin::RealBin/../programs/notify_race.py", $primary->connstr('postgres'), $rounds,
		map { $_->name . '=' . $_->connstr('postgres') } $fresh, $late ],
	'<', \undef, '>', \$output, '2>', \$error);
ok($good, 'the listener has heard of every row') or diag($error);
note($output);
my %count = $output =~ /(\w+)=(\d+)/g;

is($count{rounds}, $rounds, "$rounds rounds");
is($count{stale}, 0, 'no replica was named that lacks the row');
cmp_ok($count{naive}, '>', $rounds / 20, 'a replica taken at random lacks it often');
cmp_ok($count{primary}, '>', 0, 'the primary was named where it had to be');

done_testing();
