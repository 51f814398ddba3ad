# Servers that are restarted, or run with too little of something.

use strict;
use warnings;

use RpinFaults;
use RpinMore;
use RpinTest;

my $all = 'first second cascaded';
my (@clients, $reader);

sub restart
{
	my ($role, $mode, %settings) = @_;
	configure(node($role), %settings) if %settings;
	node($role)->stop($mode);
	start_again(node($role));
	return;
}

for my $mode (qw(fast immediate))
{
	fault "a replica restarts ($mode)" => (
		on => 'first',
		cause => sub { restart('first', $mode) },
		must => { logged => { first => 'connection_lost|unreachable' }, named => $all, reason => 'in_sync' });

	fault "the replica that another one streams from restarts ($mode)" => (
		on => 'second cascaded',
		cause => sub { restart('second', $mode) },
		must => { logged => { second => 'connection_lost|unreachable' }, named => $all, reason => 'in_sync' });

	fault "the primary restarts ($mode)" => (
		on => 'primary sampler',
		cause => sub { restart('primary', $mode) },
		must => { named => $all, reason => 'in_sync' });
}

fault 'a replica is down' => (
	on => 'first',
	cause => sub { node('first')->stop('fast') },
	must => {
		state => { first => 'unreachable' },
		error => { first => '.*Connection refused' },
		named => 'second cascaded',
		reason => 'replica_caught_up'
	},
	undo => sub { start_again(node('first')) });

fault 'all replicas are down' => (
	on => $all,
	cause => sub { node($_)->stop('fast') for qw(first second cascaded) },
	must => {
		state => { map { $_ => 'unreachable' } split ' ', $all },
		named => '',
		reason => 'samples_stale'
	},
	undo => sub { start_again(node($_)) for qw(first second cascaded) });

fault 'hot_standby is off on a replica' => (
	on => 'first',
	cause => sub { restart('first', 'fast', hot_standby => 'off') },
	must => {
		state => { first => 'starting_up' },
		error => { first => 'the database system is not accepting connections' },
		named => 'second cascaded',
		reason => 'replica_caught_up'
	},
	undo => sub { restart('first', 'fast', hot_standby => 'on') });

fault 'no free slot of max_worker_processes' => (
	on => 'primary sampler',
	blind => 1,
	cause => sub { restart('primary', 'fast', max_worker_processes => 1) },
	must => {
		named => '',
		reason => 'samples_stale',
		also => sub { sampler_pid(asked()) ? 'there is a sampler' : () }
	},
	undo => sub { restart('primary', 'fast', max_worker_processes => undef) });

# Whoever closes a connection makes room for the sampler, so again until it stands
# outside.
sub fill_connections
{
	return poll_until(
		sub {
			while (my $client = RpinMore->connect(node('first'), user => 'app')) { push @clients, $client; }
			my $state = replica_state(asked(), name_of('first'))->{state};
			cut_off('first') if $state eq 'sampled';
			return $state eq 'refused';
		});
}

fault 'no free connection on a replica' => (
	on => 'first sampler',
	mode => 'direct',    # whose connections last
	cause => sub { fill_connections() or die 'the sampler is not refused' },
	must => {
		state => { first => 'refused' },
		error => { first => 'remaining connection slots|sorry, too many clients' },
		named => 'second cascaded',
		reason => 'replica_caught_up'
	},
	undo => sub { $_->close for @clients; @clients = () });

# A reader whose snapshot needs rows that a VACUUM on the primary removed.
sub conflict
{
	my ($delay) = @_;
	configure(node('first'), max_standby_streaming_delay => $delay);
	poll_until(sub { ask(asked('first'), 'SHOW max_standby_streaming_delay') eq $delay })
	  or die 'the delay is not in force';
	$reader = RpinMore->connect_soon(node('first'));
	$reader->query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM note');
	ask(asked(), q{UPDATE note SET body = body || 'x' WHERE id BETWEEN 2 AND 50});
	ask(asked(), 'VACUUM note');
	return;
}

sub end_conflict
{
	$reader->close;
	configure(node('first'), max_standby_streaming_delay => undef);
	return;
}

fault 'replay waits for a reader' => (
	on => 'first',
	cause => sub {
		conflict('-1');
		my $waits = q{SELECT wait_event FROM pg_stat_activity WHERE backend_type = 'startup'};
		poll_until(sub { ask(asked('first'), $waits) =~ /^RecoveryConflict/ }) or die 'replay does not wait';
	},
	must => { state => { first => 'sampled' }, named => 'second cascaded', reason => 'replica_caught_up' },
	undo => \&end_conflict);

fault 'replay cancels readers' => (
	on => 'first',
	cause => sub { conflict('0') },
	must => {
		state => { first => 'sampled' },
		named => $all,
		reason => 'in_sync',
		also => sub {
			my $error = RpinMore::sqlstate($reader->query('SELECT count(*) FROM note'));
			return $error =~ /^(?:40001|57P01)$/ ? () : "the reader was not cancelled: '$error'";
		}
	},
	undo => \&end_conflict);

1;
