# Programs that stand between the application and the servers: HAProxy, Pgpool-II.
# Each in the foreground, with its files in a folder of its own, listening on Unix
# sockets there; all are ended with the test.

package RpinProxy;

use strict;
use warnings;

use Exporter qw(import);
use IO::Select;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RpinMore qw(value);
use RpinProcess;

our @EXPORT = qw(start_haproxy start_pgpool bind_of reach server_of broken);

my ($place, @programs);

END
{
	my $status = $?;
	end_process(@$_) for reverse @programs;
	$? = $status;
}

sub start_program
{
	my ($log, $signal, @command) = @_;
	local $ENV{PATH} = "$ENV{PATH}:/usr/sbin";
	push @programs, [ start_process($log, @command), $signal ];
	return;
}

# --- HAProxy ----------------------------------------------------------------------

# Its sections "listen" are what bind_of() makes of an address of reach().
sub start_haproxy
{
	my (@sections) = @_;
	my $sections = join "\n", @sections;
	append_to_file("$place/haproxy.cfg", <<"END");
defaults
    mode tcp
    timeout connect 2s
    timeout client 2m
    timeout server 2m
    timeout check 500ms
$sections
END
	return start_program("$place/haproxy.log", 'TERM', 'haproxy', '-db', '-f', "$place/haproxy.cfg");
}

# --- Pgpool-II --------------------------------------------------------------------

# What the setting is called: before 4.4 it was one folder only.
sub socket_setting
{
	local $ENV{PATH} = "$ENV{PATH}:/usr/sbin";
	my ($major, $minor) = join('', run_command([qw(pgpool --version)])) =~ /version (\d+)\.(\d+)/;
	return 100 * $major + $minor < 404 ? 'socket_dir' : 'unix_socket_directories';
}

# Of two nodes or more, of which the first is the primary, and gets no reads that
# may be balanced.
sub start_pgpool
{
	my ($address, $settings, @nodes) = @_;
	my $port = $address->port;
	my $pcp_port = PostgreSQL::Test::Cluster::get_free_port();
	my $user = getpwuid($>);
	my $socket_setting = socket_setting();
	my $backends = '';

	for my $number (0 .. $#nodes)
	{
		$backends .= "backend_hostname$number = '" . $nodes[$number]->host . "'\n";
		$backends .= "backend_port$number = " . $nodes[$number]->port . "\n";
		$backends .= "backend_weight$number = " . ($number > 0 ? 1 : 0) . "\n";
		$backends .= "backend_flag$number = 'DISALLOW_TO_FAILOVER'\n";
	}
	mkdir "$place/pgpool-$port";
	append_to_file("$place/pgpool-$port/$_", '') for qw(pcp.conf pool_hba.conf);
	append_to_file("$place/pgpool-$port/pgpool.conf", <<"END");
backend_clustering_mode = 'streaming_replication'
load_balance_mode = on
listen_addresses = ''
port = $port
$socket_setting = '$place'
pcp_listen_addresses = ''
pcp_port = $pcp_port
pcp_socket_dir = '$place'
wd_ipc_socket_dir = '$place'
pid_file_name = '$place/pgpool-$port/pid'
logdir = '$place/pgpool-$port'
work_dir = '$place/pgpool-$port'
num_init_children = 5
sr_check_user = '$user'
sr_check_database = 'postgres'
$backends
$settings
END
	return start_program("$place/pgpool-$port/log", 'INT', 'pgpool', '-n', '-D',
		map { ("-$_->[0]", "$place/pgpool-$port/$_->[1]") }
		  [ f => 'pgpool.conf' ], [ F => 'pcp.conf' ], [ a => 'pool_hba.conf' ]);
}

# --- their clients ----------------------------------------------------------------

# A free address: what stands for a server where it is asked where to go.
sub reach
{
	my ($name) = @_;
	$place //= PostgreSQL::Test::Utils::tempdir_short();
	return bless { name => $name, port => PostgreSQL::Test::Cluster::get_free_port() }, 'RpinProxy::Address';
}

sub RpinProxy::Address::name { return $_[0]{name} }
sub RpinProxy::Address::host { return $place }
sub RpinProxy::Address::port { return $_[0]{port} }

sub bind_of
{
	my ($address, @lines) = @_;
	return join "\n    ", 'listen ' . $address->name,
	  'bind unix@' . $address->host . '/.s.PGSQL.' . $address->port, @lines;
}

# The name of the server that this client's connection leads to, of these, which
# the proxy reaches by TCP.
sub server_of
{
	my ($client, @nodes) = @_;
	my $port = value($client->query('SELECT inet_server_port()')) // 0;
	my ($node) = grep { $_->port == $port } @nodes;
	return $node ? $node->name : '';
}

# Whether the connection was ended from the other side; its last words are dropped.
sub broken
{
	my ($client) = @_;
	while (IO::Select->new($client->{socket})->can_read(0))
	{
		return 1 unless sysread $client->{socket}, my $bytes, 8192;
	}
	return 0;
}

1;
