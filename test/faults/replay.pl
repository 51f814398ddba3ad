# Replay that stands still, or is late.

use strict;
use warnings;

use RpinFaults;
use RpinTest;

my @replicas = qw(first second cascaded);

fault 'replay paused on one replica' => (
	on => 'first',
	cause => sub { pause_replay(asked('first')) },
	must => {
		state => { first => 'sampled' },
		named => 'second cascaded',
		reason => 'replica_caught_up',
		also => sub { replica_state(asked(), name_of('first'))->{replay_paused} ? () : 'not shown as paused' }
	},
	undo => sub { resume_replay(asked('first')) });

fault 'replay paused on all replicas' => (
	on => "@replicas",
	cause => sub { pause_replay(map { asked($_) } @replicas) },
	must => {
		state => { map { $_ => 'sampled' } @replicas },
		named => '',
		reason => 'replicas_behind'
	},
	undo => sub { resume_replay(map { asked($_) } @replicas) });

fault 'replay ten seconds late' => (
	on => 'second',
	cause => sub { configure(node('second'), recovery_min_apply_delay => '10s') },
	must => {
		state => { second => 'sampled' },
		named => 'first cascaded',
		reason => 'replica_caught_up'
	},
	undo => sub { configure(node('second'), recovery_min_apply_delay => undef) });

1;
