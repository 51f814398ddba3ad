# A hundred sessions that wait in require() at once, while nothing moves, cost less
# than a fifth of a core; and all of them are right when replay goes on.

use strict;
use warnings;

use POSIX ();
use PostgreSQL::Test::Utils;
use RpinMore qw(value sqlstate);
use RpinTest;
use Test::More;
use Time::HiRes qw(time);

my $sessions = 100;
my $seconds = 5;
my ($primary, $replica) = cluster(replicas => 1, conf => "max_connections = 150\n");

pause_replay($replica);
add_note($primary, 1);
my $token = ask($primary, 'SELECT replica_pin.current_token()');

my @clients = map { RpinMore->connect_soon($replica) } 1 .. $sessions;
my @pids = map { value($_->query('SELECT pg_backend_pid()')) } @clients;

# Of these processes so far, in seconds.
sub cpu_time
{
	my $ticks = 0;
	for my $pid (@pids)
	{
		my ($fields) = slurp_file("/proc/$pid/stat") =~ /\) (.*)/;
		my ($user, $system) = (split ' ', $fields)[ 11, 12 ];
		$ticks += $user + $system;
	}
	return $ticks / POSIX::sysconf(&POSIX::_SC_CLK_TCK);
}

$_->send_query("CALL replica_pin.require('$token', 120000); SELECT count(*) FROM note") for @clients;

# Their longest pace is reached after a fifth of a second.
ok(poll_until(
		sub { ask($replica, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = '" . require_wait_event($replica) . "' AND state = 'active' AND query_start < clock_timestamp() - interval '1 s'") >= $sessions * 0.9 }),
	'they wait');

my ($begin, $used) = (time, cpu_time());
poll_until(sub { time > $begin + $seconds });
my $share = (cpu_time() - $used) / (time - $begin);
note(sprintf '%d sessions use %.1f %% of a core', $sessions, 100 * $share);
cmp_ok($share, '>', 0, 'the measure counts something');
cmp_ok($share, '<', 0.2, 'waiting costs less than a fifth of a core');

resume_replay($replica);
my @answers = map { $_->answer } @clients;
is(scalar(grep { sqlstate($_) eq '' && value($_) == 1 } @answers), $sessions, 'all of them see the row');

done_testing();
