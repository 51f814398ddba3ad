# Servers that are not what they should be, on ports of 127.0.0.1. Each runs in a
# process of its own until the test ends.

package RpinFake;

use strict;
use warnings;

use Exporter qw(import);
use IO::Select;
use IO::Socket::INET;
use POSIX ();

our @EXPORT = qw(fake_server fake_postgres fake_proxy dead_port wait_for_end);

my $owner = $$;
my (@listeners, @reserved);

END
{
	my $status = $?;
	if ($$ == $owner)
	{
		# each leads a process group: itself and one process per connection
		kill 'KILL', map { -$_ } @listeners;
		waitpid $_, 0 for @listeners;
	}
	$? = $status;
}

sub listen_socket
{
	my ($listen) = @_;
	return IO::Socket::INET->new(LocalAddr => '127.0.0.1', Proto => 'tcp', Listen => $listen)
	  || die "could not listen: $@";
}

# A port that refuses connections: ours, so that nobody else listens there.
sub dead_port
{
	my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Proto => 'tcp')
	  or die "could not reserve a port: $@";
	push @reserved, $socket;
	return $socket->sockport;
}

# Hands each connection to a function, in a process of its own. Answers the port.
sub fake_server
{
	my ($serve) = @_;
	my $socket = listen_socket(64);
	my $parent = $$;
	my $pid = fork // die "could not fork: $!";

	if ($pid == 0)
	{
		POSIX::setpgid(0, 0);
		open STDIN, '<', '/dev/null';
		open STDOUT, '>', '/dev/null';
		open STDERR, '>', '/dev/null';
		eval { accept_connections($socket, $parent, $serve) };
		POSIX::_exit(0);
	}
	POSIX::setpgid($pid, $pid);
	push @listeners, $pid;
	return $socket->sockport;
}

sub accept_connections
{
	my ($socket, $parent, $serve) = @_;
	my $ready = IO::Select->new($socket);
	local $SIG{CHLD} = 'IGNORE';
	local $SIG{PIPE} = 'IGNORE';

	while (getppid == $parent)
	{
		next unless $ready->can_read(1);
		my $client = $socket->accept or next;
		my $pid = fork // next;
		next if $pid;
		close $socket;
		eval { $serve->($client) };
		POSIX::_exit(0);
	}
	return;
}

# Reads on until the client closes the connection.
sub wait_for_end
{
	my ($client) = @_;
	while (sysread $client, my $bytes, 65536) { }
	return;
}

# --- a proxy -----------------------------------------------------------------

# Passes everything on to a server on another port of 127.0.0.1, and back; the
# answers to questions, but not those while connecting, so many seconds late.
sub fake_proxy
{
	my ($port, $delay) = @_;
	return fake_server(
		sub {
			my ($client) = @_;
			my $server = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) or return;
			pass_on($client, $server, $delay);
		});
}

sub pass_on
{
	my ($client, $server, $delay) = @_;
	my $both = IO::Select->new($client, $server);
	my $asked = 0;

	while (1)
	{
		for my $from ($both->can_read)
		{
			sysread($from, my $bytes, 65536) or return;
			$asked ||= $from == $client && $bytes =~ /replica_pin/ && $bytes =~ /^[PB]/;
			select(undef, undef, undef, $delay) if $delay && $asked && $from == $server;
			send_all($from == $client ? $server : $client, $bytes) or return;
		}
	}
}

sub send_all
{
	my ($socket, $bytes) = @_;
	while (length $bytes)
	{
		my $sent = syswrite($socket, $bytes) or return 0;
		substr($bytes, 0, $sent) = '';
	}
	return 1;
}

# --- a server that speaks the protocol ---------------------------------------

# It lets everybody in, unless given another `greeting`, and answers each
# statement with what `prepared` and `answer` return: bytes, or undef to say
# nothing at all.
sub fake_postgres
{
	my (%behaviour) = @_;
	return fake_server(sub { speak($_[0], \%behaviour) });
}

sub speak
{
	my ($client, $behaviour) = @_;
	start_up($client) or return;
	if ($behaviour->{greeting})
	{
		send_all($client, $behaviour->{greeting});
		return;
	}
	send_all($client, message('R', pack 'N', 0) . ready());

	while (1)
	{
		my $kind = read_statement($client) or return;
		my $answer = $kind eq 'P' ? message('1', '') . ready() : $behaviour->{answer};
		send_all($client, $answer) if defined $answer;
	}
}

# Declines encryption until the start-up packet has come.
sub start_up
{
	my ($client) = @_;
	while (1)
	{
		my $length = unpack 'N', read_bytes($client, 4) // return 0;
		my $packet = read_bytes($client, $length - 4) // return 0;
		return 1 if unpack('N', $packet) == 196608;
		send_all($client, 'N');
	}
}

# Up to the next Sync; what it was: P(arse) or B(ind).
sub read_statement
{
	my ($client) = @_;
	my $statement;
	while (1)
	{
		my $kind = read_bytes($client, 1) // return;
		my $length = unpack 'N', read_bytes($client, 4) // return;
		read_bytes($client, $length - 4) // return;
		$statement = $kind if $kind =~ /[PB]/;
		return $statement if $kind eq 'S';
	}
}

sub read_bytes
{
	my ($socket, $count) = @_;
	my $bytes = '';
	while (length $bytes < $count)
	{
		sysread($socket, $bytes, $count - length $bytes, length $bytes) or return;
	}
	return $bytes;
}

sub message
{
	my ($kind, $body) = @_;
	return $kind . pack('N', 4 + length $body) . $body;
}

sub ready { return message('Z', 'I'); }

sub error
{
	my ($code, $text) = @_;
	return message('E', "SFATAL\0VFATAL\0C$code\0M$text\0\0");
}

# A result of text columns; undef is NULL.
sub result
{
	my ($columns, @rows) = @_;
	my $description = pack 'n', $columns;
	$description .= "c$_\0" . pack 'NnNnNn', 0, 0, 25, 65535, 4294967295, 0 for 1 .. $columns;

	my $data = '';
	for my $row (@rows)
	{
		$data .= message('D', pack('n', scalar @$row)
			  . join '', map { defined ? pack('N', length) . $_ : pack('N', 4294967295) } @$row);
	}
	return message('2', '') . message('T', $description) . $data . message('C', "SELECT\0") . ready();
}

1;
