# Processes that stand still, or are killed.

use strict;
use warnings;

use RpinFaults;
use RpinTest;

my @stopped;    # by all faults that are played now

sub stop
{
	push @stopped, @_;
	freeze(@_);
	return;
}

# Another fault may have ended it a moment ago.
sub sampler { return poll_until(sub { eval { sampler_pid(asked()) } }) || die 'there is no sampler'; }

sub go_on { thaw(splice @stopped); return; }

fault 'a replica stands still' => (
	on => 'first',
	cause => sub { stop(tree_of('first')) },
	must => {
		state => { first => 'timed_out' },
		error => { first => 'no answer to the (?:question|connection attempt) within 1000 ms' },
		named => 'second cascaded',
		reason => 'replica_caught_up'
	},
	undo => \&go_on);

fault 'the walreceiver of a replica stands still' => (
	on => 'first',
	cause => sub { stop(process_of('first', 'walreceiver')) },
	must => { state => { first => 'sampled' }, named => 'second cascaded', reason => 'replica_caught_up' },
	undo => \&go_on);

fault 'the startup process of a replica stands still' => (
	on => 'second',
	cause => sub { stop(process_of('second', 'startup')) },
	must => { state => { second => 'sampled' }, named => 'first cascaded', reason => 'replica_caught_up' },
	undo => \&go_on);

fault 'the backend that the sampler asks stands still' => (
	on => 'second',
	cause => sub { stop(sampled_backend('second')) },
	must => {
		logged => { second => 'timed_out' },
		state => { second => 'sampled' },
		named => 'first second cascaded',
		reason => 'in_sync'
	},
	undo => \&go_on);

fault 'the sampler stands still' => (
	on => 'sampler',
	blind => 1,
	cause => sub { stop(sampler()) },
	must => { named => '', reason => 'samples_stale' },
	undo => \&go_on);

fault 'the sampler is terminated each second' => (
	on => 'sampler',
	cause => sub { terminate_sampler($_[0]{smoke} ? 3 : 10) },
	must => { state => { first => 'sampled' }, named => 'first second cascaded', reason => 'in_sync' });

fault 'the sampler is killed' => (
	on => 'primary sampler',
	damage => qr/"replica_pin sampler" .* was terminated by signal 9/,
	cause => sub {
		my $pid = sampler();
		kill 'KILL', $pid;
		poll_until(sub { my $now = eval { sampler_pid(asked()) }; $now && $now != $pid }) or die 'no new sampler';
	},
	must => { state => { first => 'sampled' }, named => 'first second cascaded', reason => 'in_sync' });

fault 'a backend of a replica is killed' => (
	on => 'first',
	damage => qr/^.*server process \(PID \d+\) was terminated by signal 9/,
	cause => sub { crash_backend('first') },
	must => {
		logged => { first => 'connection_lost|unreachable' },
		named => 'first second cascaded',
		reason => 'in_sync'
	});

fault 'a backend of the primary is killed' => (
	on => 'primary sampler',
	damage => qr/server process \(PID \d+\) was terminated by signal 9/,
	cause => sub { crash_backend('primary') },
	must => { named => 'first second cascaded', reason => 'in_sync' });

fault 'a replica is killed and started at once, again and again' => (
	on => 'first',
	cause => sub { kill_and_start('first') for 1 .. ($_[0]{smoke} ? 4 : 20) },
	must => {
		logged => { first => 'connection_lost|unreachable' },
		named => 'first second cascaded',
		reason => 'in_sync'
	});

fault 'the replica that another one streams from is killed and started' => (
	on => 'second cascaded',
	cause => sub { kill_and_start('second') },
	must => {
		logged => { second => 'connection_lost|unreachable' },
		state => { cascaded => 'sampled' },
		named => 'first second cascaded',
		reason => 'in_sync'
	});

fault 'the primary is killed and started' => (
	on => 'primary sampler',
	cause => sub { kill_and_start('primary') },
	must => { named => 'first second cascaded', reason => 'in_sync' });

fault 'the primary crashes twice in a row' => (
	on => 'primary sampler',
	damage => qr/server process \(PID \d+\) was terminated by signal 9/,
	cause => sub { kill_and_start('primary'); crash_backend('primary') },
	must => { named => 'first second cascaded', reason => 'in_sync' });

sub sampled_backend
{
	my ($role) = @_;
	return poll_until(
		sub {
			eval { ask(asked($role), q{SELECT pid FROM pg_stat_activity WHERE application_name = 'replica_pin sampler'}) };
		})
	  || die "the sampler does not ask $role";
}

# So often; each time it is asked what is decided meanwhile.
sub terminate_sampler
{
	my ($times) = @_;
	for (1 .. $times)
	{
		my $pid = sampler();
		kill 'TERM', $pid;
		poll_until(sub { sampler_pid(asked()) == 0 }) or die 'the sampler does not end';
		sampler();
	}
	return;
}

1;
