# A client that speaks the frontend/backend protocol itself: a connection that
# never reconnects behind one's back, errors with all their fields, any bytes as
# a parameter, and messages in an order that no driver would send.
#
#	my $client = RpinMore->connect($node, user => 'app', database => 'postgres');
#	my $answer = $client->query('SELECT 1');
#	my $answer = $client->call('SELECT replica_pin.pin($1)', $key);
#	my $answer = $client->exchange(parse(...), bind(...), execute(...), sync());
#
# An answer is a hash:
#	rows	all rows of all results, each a list; NULL is undef
#	tags	the command tags
#	error	of an ErrorResponse, by field: C the SQLSTATE, M, D, H; or undef
#	parameters	what ParameterStatus messages said, by name
#	status	of the transaction afterwards: I, T or E; '' if the server is gone

package RpinMore;

use strict;
use warnings;

use Exporter qw(import);
use IO::Select;
use IO::Socket::UNIX;
use RpinTest;

our @EXPORT_OK = qw(parse bind_to execute sync value sqlstate);

# --- messages ----------------------------------------------------------------

sub message
{
	my ($type, $body) = @_;
	return $type . pack('N', 4 + length $body) . $body;
}

sub parse
{
	my ($statement, $sql) = @_;
	return message('P', pack('Z* Z* n', $statement, $sql, 0));
}

# The parameters as text; undefined is NULL.
sub bind_to
{
	my ($portal, $statement, @parameters) = @_;
	my $values = join '', map { defined $_ ? pack('N/a*', $_) : pack('N', 0xFFFFFFFF) } @parameters;
	return message('B',
		pack('Z* Z* n n', $portal, $statement, 0, scalar @parameters) . $values . pack('n', 0));
}

sub execute
{
	my ($portal) = @_;
	return message('E', pack('Z* N', $portal, 0));
}

sub sync { return message('S', '') }

# --- answers -----------------------------------------------------------------

# The first column of the first row.
sub value
{
	my ($answer) = @_;
	return $answer->{rows}[0] ? $answer->{rows}[0][0] : undef;
}

# '' if there was no error.
sub sqlstate
{
	my ($answer) = @_;
	return $answer->{error} ? $answer->{error}{C} : '';
}

sub fields
{
	my ($body) = @_;
	return { map { substr($_, 0, 1) => substr($_, 1) } grep { length } split /\0/, $body };
}

sub columns
{
	my ($body) = @_;
	my ($count, $rest) = unpack 'n a*', $body;
	my @columns;

	for (1 .. $count)
	{
		(my $length, $rest) = unpack 'N a*', $rest;
		push @columns, $length == 0xFFFFFFFF ? undef : substr($rest, 0, $length, '');
	}
	return \@columns;
}

# --- the connection ----------------------------------------------------------

# A connection, or nothing when the server refuses it.
sub connect
{
	my ($class, $node, %options) = @_;
	my $socket = IO::Socket::UNIX->new(Peer => $node->host . '/.s.PGSQL.' . $node->port)
	  or return;
	my %startup = (
		user => scalar getpwuid($>),
		database => 'postgres',
		client_encoding => 'UTF8',
		%options);
	my $body = pack('N', 196608) . pack('(Z*)*', %startup) . "\0";
	my $self = bless { socket => $socket, buffer => '' }, $class;

	$self->write_all(pack('N', 4 + length $body) . $body);
	return $self->answer->{status} eq 'I' ? $self : undef;
}

# The same, as soon as the server lets one in.
sub connect_soon
{
	my ($class, $node, %options) = @_;
	return RpinTest::poll_until(sub { $class->connect($node, %options) })
	  || die $node->name . ' accepts no connection';
}

sub query
{
	my ($self, $sql) = @_;
	$self->send_query($sql);
	return $self->answer;
}

# One statement with parameters, by the unnamed statement and portal.
sub call
{
	my ($self, $sql, @parameters) = @_;
	return $self->exchange(parse('', $sql), bind_to('', '', @parameters), execute(''), sync());
}

# Sends messages, and answers what comes until the server is ready again.
sub exchange
{
	my ($self, @messages) = @_;
	$self->write_all(join '', @messages);
	return $self->answer;
}

# For several servers at work at once: answer() afterwards.
sub send_query
{
	my ($self, $sql) = @_;
	$self->write_all(message('Q', pack 'Z*', $sql));
	return;
}

sub answer
{
	my ($self) = @_;
	my %answer = (rows => [], tags => [], error => undef, parameters => {}, status => '');

	while (my ($type, $body) = $self->read_message)
	{
		push @{ $answer{rows} }, columns($body) if $type eq 'D';
		push @{ $answer{tags} }, unpack 'Z*', $body if $type eq 'C';
		$answer{error} //= fields($body) if $type eq 'E';
		%{ $answer{parameters} } = (%{ $answer{parameters} }, unpack '(Z*)2', $body) if $type eq 'S';
		if ($type eq 'Z')
		{
			$answer{status} = $body;
			last;
		}
	}
	return \%answer;
}

sub close
{
	my ($self) = @_;
	$self->write_all(message('X', ''));
	CORE::close $self->{socket};
	return;
}

# --- bytes -------------------------------------------------------------------

# What a server that is gone does not take is noticed when its answer is read.
sub write_all
{
	my ($self, $bytes) = @_;
	local $SIG{PIPE} = 'IGNORE';

	while (length $bytes)
	{
		my $written = syswrite $self->{socket}, $bytes;
		return unless $written;
		substr($bytes, 0, $written, '');
	}
	return;
}

# Nothing when the connection is lost.
sub read_message
{
	my ($self) = @_;
	$self->read_bytes(5) or return;
	my ($type, $length) = unpack 'a N', $self->{buffer};
	$self->read_bytes(1 + $length) or return;
	return ($type, substr(substr($self->{buffer}, 0, 1 + $length, ''), 5));
}

sub read_bytes
{
	my ($self, $wanted) = @_;
	while (length $self->{buffer} < $wanted)
	{
		IO::Select->new($self->{socket})->can_read($RpinTest::patience)
		  or die 'no answer from the server';
		sysread($self->{socket}, $self->{buffer}, 65536, length $self->{buffer})
		  or return 0;
	}
	return 1;
}

1;
