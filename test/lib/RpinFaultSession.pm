# A connection to a server that may crash: made when it is needed, and again after
# it broke. It can stand wherever RpinTest takes a node to ask.

package RpinFaultSession;

use strict;
use warnings;

use RpinMore;

sub new
{
	my ($class, $node) = @_;
	return bless { node => $node, client => undef }, $class;
}

# The output, as psql -At would have it. Dies on an error, and when the server
# does not answer. A connection that broke since the last question is made again.
sub safe_psql
{
	my ($self, $database, $sql) = @_;
	my $answer = $self->{client} ? $self->try_to_ask($sql) : undef;
	if (!$answer)
	{
		$self->{client} = RpinMore->connect($self->{node}, database => $database)
		  or die $self->{node}->name . ' accepts no connection';
		$answer = $self->try_to_ask($sql) or die $self->{node}->name . ' does not answer';
	}
	die $self->{node}->name . ": $answer->{error}{M}" if $answer->{error};
	return join "\n", map { join '|', map { $_ // '' } @$_ } @{ $answer->{rows} };
}

# Nothing if the connection broke, or replay cancelled the statement.
sub try_to_ask
{
	my ($self, $sql) = @_;
	my $answer = eval { $self->{client}->query($sql) };
	return $answer if $answer && $answer->{status} eq 'I' && RpinMore::sqlstate($answer) ne '40001';
	$self->{client} = undef;
	return;
}

1;
