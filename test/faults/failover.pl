# Another primary.

use strict;
use warnings;

use RpinFaults;
use RpinMore;
use RpinTest;

my $everybody = 'primary first second cascaded sampler network';

# The others follow the new primary, by pg_rewind where they must.
sub others_follow
{
	follow_or_rejoin('second', 'primary');
	follow_or_rejoin('cascaded', 'second');
	return;
}

# The old primary writes what nobody else will ever have.
sub diverge
{
	my $old = node('first');
	configure($old, synchronous_standby_names => '');
	poll_until(sub { ask(asked('first'), 'SHOW synchronous_standby_names') eq '' }) or die 'no reload';
	ask(asked('first'), q{UPDATE note SET body = 'of the old primary'});
	return;
}

sub old_primary_knows
{
	my $state = replica_state(asked('first'), name_of('primary'))->{state};
	return $state eq 'not_a_replica' ? () : "to the old primary the new one is $state";
}

fault 'promotion, the old primary dead' => (
	on => $everybody,
	free => 20,
	cause => sub { fail_over(sub { $_[0]->kill9 }) },
	must => {
		state => { first => 'unreachable', second => 'other_timeline', cascaded => 'other_timeline' },
		named => '',
		reason => 'samples_stale'
	},
	undo => sub { rejoin(node('first'), node('primary')); others_follow() });

fault 'promotion, the old primary alive' => (
	on => $everybody,
	free => 20,
	cause => sub { fail_over(sub { }) },
	must => {
		state => { first => 'not_a_replica', second => 'other_timeline', cascaded => 'other_timeline' },
		named => '',
		reason => 'samples_stale',
		also => \&old_primary_knows
	},
	undo => sub { others_follow(); diverge(); rejoin(node('first'), node('primary')) });

fault 'the old primary comes back without pg_rewind' => (
	on => $everybody,
	free => 20,
	cause => sub {
		fail_over(sub { });
		others_follow();
		diverge();
		node('first')->stop('fast');
		node('first')->set_standby_mode;
		follow_stopped(node('first'), node('primary'));
		start_again(node('first'));
	},
	must => {
		state => { first => 'other_timeline', second => 'sampled', cascaded => 'sampled' },
		named => 'second cascaded',
		reason => 'replica_caught_up'
	},
	undo => sub { rejoin(node('first'), node('primary')) });

fault 'two promotions, one after the other' => (
	on => $everybody,
	free => 20,
	cause => sub {
		fail_over(sub { $_[0]->kill9 });
		rejoin(node('first'), node('primary'));
		others_follow();
		wait_for_samples(asked(), replicas());
		fail_over(sub { $_[0]->kill9 });
	},
	must => { state => { first => 'unreachable', second => 'other_timeline' }, named => '', reason => 'samples_stale' },
	undo => sub { rejoin(node('first'), node('primary')); others_follow() });

1;
