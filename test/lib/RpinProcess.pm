# Programs that a test starts in the background, and ends by their pids.

package RpinProcess;

use strict;
use warnings;

use Exporter qw(import);
use POSIX qw(WNOHANG);
use RpinTest;

our @EXPORT = qw(start_process is_running end_process);

# Its pid; what it prints is added to the log.
sub start_process
{
	my ($log, @command) = @_;
	my $pid = fork() // die "fork: $!";
	return $pid if $pid;
	open(STDIN, '<', '/dev/null') && open(STDOUT, '>>', $log) && open(STDERR, '>&', \*STDOUT)
	  && exec(@command);
	# not exit: what END blocks do is our parent's
	POSIX::_exit(127);
}

sub is_running { return waitpid($_[0], WNOHANG) == 0 }

# By a signal, and by force if that is not enough.
sub end_process
{
	my ($pid, $signal, $seconds) = @_;
	kill $signal, $pid;
	return if poll_until(sub { !is_running($pid) }, $seconds // 10);
	kill 'KILL', $pid;
	waitpid $pid, 0;
	return;
}

1;
