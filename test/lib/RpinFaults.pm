# The cluster that faults happen to, and the verbs that the tables in test/faults
# are written in.
#
# Four servers, n1 to n4, each in one of four roles, by which the tables name
# them: at first n1 is the primary, n2 (first) and n3 (second) stream from it, n4
# (cascaded) from n3. A failover moves the roles, not the names.
#
# All of it runs in a network namespace of its own. Each server has two addresses
# there, so that what happens to one does not happen to the other: 127.1.0.N,
# where the sampler asks it, and 127.2.0.N, where it streams from. The load and
# the checks go through Unix sockets: they reach a replica that the sampler does
# not reach, which is the harder case.

package RpinFaults;

use strict;
use warnings;

use Exporter qw(import);
use File::Path qw(rmtree);
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::RecursiveCopy;
use PostgreSQL::Test::Utils;
use RpinFaultSession;
use RpinMore;
use RpinTest;

our @EXPORT = qw(
  fault all_faults
  new_cluster node asked name_of nodes replicas role_of
  packets mend lead_to cut_off sampling_address streaming_address
  follow start_again kill_and_start process_of tree_of crash_backend
  rejoin rebuild_from follow_stopped follow_or_rejoin fail_over stranger
  on_failover in_background end_background);

our $settings = <<'END';
listen_addresses = '0.0.0.0'
max_connections = 90
shared_buffers = 32MB
restart_after_crash = on
log_replication_commands = off
wal_keep_size = 1GB
wal_sender_timeout = 3s
wal_receiver_timeout = 3s
replica_pin.conninfo = 'user=sampler dbname=postgres'
replica_pin.max_session_keys = 3000
replica_pin.sample_interval = 100ms
replica_pin.sample_timeout = 1s
replica_pin.sample_lifetime = 2s
END

my (@faults, @all, %role, %session, %backups, $stranger, @background);
my $on_failover = sub { };

# A fault for the tables; run.pl says what it consists of.
sub fault
{
	my ($name, %fault) = @_;
	push @faults, { name => $name, %fault };
	return;
}

sub all_faults { return @faults; }

# --- who is who --------------------------------------------------------------

sub node { my ($role) = @_; return $role{$role} // die "nobody is $role"; }

sub name_of { return node($_[0])->name; }

sub nodes { return @all; }

sub replicas { return map { node($_) } qw(first second cascaded); }

sub role_of
{
	my ($name) = @_;
	my ($role) = grep { $role{$_}->name eq $name } keys %role;
	return $role;
}

# A connection for questions, made again whenever it broke.
sub asked
{
	my ($role) = @_;
	my $node = node($role // 'primary');
	return $session{ $node->name } //= RpinFaultSession->new($node);
}

sub number { my ($node) = @_; return $node->name =~ s/\D//gr; }

sub sampling_address { return '127.1.0.' . number($_[0]); }

sub streaming_address { return '127.2.0.' . number($_[0]); }

# --- the cluster -------------------------------------------------------------

sub new_cluster
{
	my $primary = new_primary('n1', $settings);
	$primary->safe_psql('postgres', <<'END');
CREATE ROLE sampler LOGIN;
CREATE ROLE app LOGIN;
CREATE TABLE hot (client integer);
INSERT INTO note SELECT i FROM generate_series(1, 100) i;
END
	my ($first, $second) = new_replicas($primary, qw(n2 n3));
	my ($cascaded) = new_replicas($second, 'n4');
	@all = ($primary, $first, $second, $cascaded);
	@role{qw(primary first second cascaded)} = @all;

	# one list for all nodes
	my $list = join ', ', map { $_->name . '=' . sampling_address($_) . ':' . $_->port } @all;
	configure($_, 'replica_pin.replicas' => $list) for @all;
	follow($first, $primary);
	follow($second, $primary);
	follow($cascaded, $second);
	wait_for_samples(asked(), replicas());
	return;
}

sub follow
{
	my ($node, $source) = @_;
	configure($node, primary_conninfo => conninfo_of($node, $source));
	return;
}

sub conninfo_of
{
	my ($node, $source) = @_;
	return sprintf 'host=%s port=%d user=%s application_name=%s',
	  streaming_address($node), $source->port, scalar getpwuid($>), $node->name;
}

# --- packets -----------------------------------------------------------------

# The rules of the namespace are root's: a helper of script/faults sets them.
my ($ask, $answer);

sub firewall
{
	my (@rules) = @_;
	if (!$ask)
	{
		open $ask, '>', $ENV{RPIN_FIREWALL} or die "$ENV{RPIN_FIREWALL}: $!";
		open $answer, '<', "$ENV{RPIN_FIREWALL}.answer" or die "$ENV{RPIN_FIREWALL}.answer: $!";
		$ask->autoflush(1);
	}
	print $ask join('; ', @rules), "\n";
	my $line = <$answer> // die 'the firewall helper is gone';
	die "firewall: $line" unless $line eq "done\n";
	return;
}

# What shall become of packets, as nftables has it: 'ip daddr 127.1.0.2 drop'.
sub packets
{
	firewall(map { "add rule ip faults packets $_" } @_);
	return;
}

# Everything passes again, and goes where it is addressed to.
sub mend
{
	firewall('flush chain ip faults packets', 'flush chain ip faults addresses');
	return;
}

# New connections to where the sampler asks this server are led to another port.
# The one that is open is cut.
sub lead_to
{
	my ($role, $port) = @_;
	my $node = node($role);
	firewall(sprintf 'add rule ip faults addresses ip daddr %s tcp dport %d dnat to 127.0.0.1:%d',
		sampling_address($node), $node->port, $port);
	cut_off($role);
	return;
}

sub cut_off
{
	my ($role) = @_;
	ask(asked($role), q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE application_name = 'replica_pin sampler'});
	return;
}

# --- processes ---------------------------------------------------------------

# Of a server, by its backend_type.
sub process_of
{
	my ($role, $type) = @_;
	my $pid = poll_until(
		sub { ask(asked($role), "SELECT pid FROM pg_stat_activity WHERE backend_type = '$type'") });
	return $pid || die "$role has no $type";
}

# A server with all of its processes.
sub tree_of
{
	my ($role) = @_;
	my $postmaster = postmaster_pid(node($role));
	return ($postmaster, grep { parent_of($_) == $postmaster } map { m!(\d+)! } glob '/proc/[0-9]*');
}

sub parent_of
{
	my ($pid) = @_;
	open(my $status, '<', "/proc/$pid/status") or return 0;
	my ($parent) = map { /^PPid:\s+(\d+)/ } <$status>;
	return $parent // 0;
}

# Starts a server whose predecessor may not be quite gone.
sub start_again
{
	my ($node) = @_;
	poll_until(
		sub {
			# a failed start takes the dead postmaster, until it is reaped, for one that runs
			$node->{_pid} = undef;
			return $node->start(fail_ok => 1);
		})
	  or die $node->name . ' does not start';
	return;
}

sub kill_and_start
{
	my ($role) = @_;
	node($role)->kill9;
	start_again(node($role));
	return;
}

# The server then restarts all of its processes.
sub crash_backend
{
	my ($role) = @_;
	my $client = RpinMore->connect_soon(node($role));
	my $pid = RpinMore::value($client->query('SELECT pg_backend_pid()'));
	kill 'KILL', $pid;
	poll_until(sub { $client->query('SELECT 1')->{status} eq '' }) or die 'the server does not crash';
	return;
}

# A program that runs until end_background().
sub in_background
{
	my (@command) = @_;
	my $pid = fork // die "could not fork: $!";
	if ($pid == 0)
	{
		exec @command or POSIX::_exit(127);
	}
	push @background, $pid;
	return $pid;
}

sub end_background
{
	kill 'TERM', @background;
	waitpid $_, 0 for @background;
	@background = ();
	return;
}

# --- copies, failover --------------------------------------------------------

# Replaces what a replica has by a copy of another server.
sub rebuild_from
{
	my ($node, $source, $backup) = @_;
	my $conf = slurp_file($node->data_dir . '/postgresql.conf');

	$node->stop('immediate', fail_ok => 1);
	rmtree($node->data_dir);
	PostgreSQL::Test::RecursiveCopy::copypath($source->backup_dir . "/$backup", $node->data_dir);
	chmod 0700, $node->data_dir;
	replace_file($node->data_dir . '/postgresql.conf', $conf);
	$node->set_standby_mode;
	return;
}

sub replace_file
{
	my ($file, $text) = @_;
	unlink $file;
	append_to_file($file, $text);
	return;
}

# A server that may have WAL which the primary lacks becomes a replica of another
# one. pg_rewind reads the timeline of its source from the last checkpoint there.
sub rejoin
{
	my ($node, $source) = @_;
	my $file = $node->data_dir . '/postgresql.conf';
	my $conf = slurp_file($file);

	$node->stop('fast', fail_ok => 1) if $node->{_pid};
	ask(asked('primary'), 'CHECKPOINT');
	# one that was killed may not be quite gone
	my @rewind = ('pg_rewind', '--no-sync', '-D', $node->data_dir, '--source-server', node('primary')->connstr('postgres'));
	poll_until(sub { PostgreSQL::Test::Utils::system_log(@rewind) == 0 }) or die 'pg_rewind fails';
	replace_file($file, $conf);
	unlink $node->data_dir . '/standby.signal';
	$node->set_standby_mode;
	configure_stopped($node, synchronous_standby_names => undef);
	follow_stopped($node, $source);
	start_again($node);
	return;
}

# As a reload would be, of a server that does not run.
sub follow_stopped
{
	my ($node, $source) = @_;
	configure_stopped($node, primary_conninfo => conninfo_of($node, $source));
	return;
}

# A replica follows another server: by a reload; by pg_rewind, if it has WAL that
# the other one lacks.
sub follow_or_rejoin
{
	my ($role, $source) = @_;
	my ($node, $target) = (node($role), node($source));
	follow($node, $target);
	my $wanted = ask(asked('primary'), 'SELECT timeline FROM replica_pin.node_status()');
	poll_until(sub { eval { ask(asked($role), 'SELECT timeline FROM replica_pin.node_status()') == $wanted } }, 5)
	  or rejoin($node, $target);
	return;
}

sub configure_stopped
{
	my ($node, %settings) = @_;
	for my $name (sort keys %settings)
	{
		$node->adjust_conf('postgresql.conf', quotemeta $name, undef);
		$node->append_conf('postgresql.conf', "$name = '$settings{$name}'") if defined $settings{$name};
	}
	return;
}

# The replica `first` becomes the primary, and the primary `first`, whatever its
# condition. Nothing that was acknowledged is lost: before it happens, commits
# wait for the replica that is promoted.
sub fail_over
{
	my ($happening) = @_;
	my ($old, $new) = (node('primary'), node('first'));

	configure($old, synchronous_standby_names => $new->name);
	poll_until(
		sub {
			ask(asked('primary'), 'SELECT sync_state FROM pg_stat_replication WHERE application_name = '
				  . "'" . $new->name . "'") eq 'sync';
		})
	  or die 'commits do not wait for the replica';

	# Commits wait from when the checkpointer has read the setting, which it does
	# before a checkpoint that is asked for; those before have to arrive as well.
	ask(asked('primary'), 'CHECKPOINT');
	my $lsn = ask(asked('primary'), 'SELECT pg_current_wal_insert_lsn()');
	poll_until(
		sub {
			ask(asked('primary'), "SELECT flush_lsn >= '$lsn' FROM pg_stat_replication WHERE application_name = "
				  . "'" . $new->name . "'") eq 't';
		})
	  or die 'the replica does not get what was committed';
	$happening->($old);
	$new->promote;
	poll_until(sub { ask(asked('first'), 'SELECT pg_is_in_recovery()') eq 'f' }) or die 'not promoted';
	@role{qw(primary first)} = ($new, $old);
	$on_failover->();
	return;
}

# What is called when there is another primary.
sub on_failover
{
	($on_failover) = @_;
	return;
}

# Another cluster, with the extension. It is made when it is needed first.
sub stranger
{
	$stranger //= new_primary('stranger', $settings . "replica_pin.replicas = ''\n");
	$stranger->safe_psql('postgres', 'CREATE ROLE sampler LOGIN')
	  unless $stranger->safe_psql('postgres', "SELECT 1 FROM pg_roles WHERE rolname = 'sampler'");
	return $stranger;
}

1;
