# What answers at a replica's address is not the replica, or not the one it was.

use strict;
use warnings;

use IO::Socket::INET;
use RpinFake;
use RpinFaults;
use RpinMore;
use RpinTest;
use Socket qw(SOL_SOCKET SO_LINGER);

my @node_status = (1, undef, 't', 'f', 1, undef, '0/3000000');

# name => [ what listens: gives a port, state, last error, the server if it is one ]
my %impostor = (
	'a server that closes every connection' =>
	  [ sub { fake_server(sub { }) }, 'unreachable', '.*closed the connection unexpectedly' ],
	'a server that resets every connection' => [
		sub { fake_server(sub { sysread $_[0], my $some, 1; setsockopt $_[0], SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0; }) },
		'unreachable', '.*(?:Connection reset by peer|closed the connection unexpectedly)' ],
	'a server that accepts and says nothing' =>
	  [ sub { fake_server(\&wait_for_end) }, 'timed_out', 'no answer to the connection attempt' ],
	'a server that says a byte at a time' =>
	  [ sub { fake_server(\&slow_bytes) }, 'timed_out', 'no answer to the connection attempt' ],
	'a server that speaks garbage' =>
	  [ sub { fake_server(sub { syswrite $_[0], "\xff\0\x01" x 1000; wait_for_end($_[0]) }) }, 'unreachable', '.*invalid response' ],
	'a server that answers questions with garbage' =>
	  [ sub { fake_postgres(answer => "D\0\0\0\1" . 'x' x 100) }, 'connection_lost', '.' ],
	'a server that answers with other columns' =>
	  [ sub { fake_postgres(answer => RpinFake::result(6, [ @node_status[ 0 .. 5 ] ])) }, 'nonsense', '.*answered something else' ],
	'a server that never answers a question' =>
	  [ sub { fake_postgres() }, 'timed_out', 'no answer to the question' ],
	'another cluster' => [ sub { stranger()->port }, 'other_cluster', undef, \&stranger ],
	'the primary itself' => [ sub { node('primary')->port }, 'self', undef, sub { node('primary') } ]);

# An answer to the start-up packet, too slowly to be one within the time limit.
sub slow_bytes
{
	my ($client) = @_;
	RpinFake::start_up($client) or return;
	for my $byte (split //, RpinFake::error('57P03', 'x' x 100))
	{
		syswrite $client, $byte or return;
		select undef, undef, undef, 0.1;
	}
	return;
}

for my $name (sort keys %impostor)
{
	my ($listen, $state, $error, $server) = @{ $impostor{$name} };
	fault "at a replica's address: $name" => (
		on => 'first network',
		cause => sub { lead_to('first', $listen->()) },
		must => {
			state => { first => $state },
			defined $error ? (error => { first => $error }) : (),
			named => 'second cascaded',
			reason => 'replica_caught_up'
		},
		undo => sub { mend(); cut_impostor($server->()) if $server });
}

# An impostor that answers would be asked on, over the connection that is open.
sub cut_impostor
{
	my ($server) = @_;
	$server->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE application_name = 'replica_pin sampler' AND usename = 'sampler'});
	return;
}

# It opens at the consistency point of its backup, and replays no commit for an hour.
fault 'a replica is rebuilt from an older backup' => (
	on => 'first',
	cause => sub {
		my $backup = 'older_' . time;
		node('primary')->backup($backup);
		ask(asked(), q{UPDATE note SET body = body || 'newer'});
		wait_for_replay(asked(), asked('first'));
		rebuild_from(node('first'), node('primary'), $backup);
		node('first')->append_conf('postgresql.conf', 'recovery_min_apply_delay = 1h');
		start_again(node('first'));
	},
	must => {
		logged => { first => 'connection_lost|unreachable' },
		state => { first => 'sampled' },
		named => 'second cascaded',
		reason => 'replica_caught_up',
		also => sub {
			my $newer = ask(asked('first'), q{SELECT count(*) FROM note WHERE body LIKE '%newer'});
			return $newer eq ask(asked(), 'SELECT count(*) FROM note') ? 'it is not behind' : ();
		}
	},
	undo => sub { configure(node('first'), recovery_min_apply_delay => undef) });

1;
