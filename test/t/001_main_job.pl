# The main job: after a write, where may the next read go?

use strict;
use warnings;

use RpinTest;
use Test::More;

# Patient, so that a busy machine is not taken for a broken replica.
my ($primary, @replica) = cluster(replicas => 3, conf => <<'END');
replica_pin.sample_timeout = 5s
replica_pin.sample_lifetime = 20s
END
my $asked = session($primary);
my %session = map { $_->name => session($_) } @replica;
my ($r1, $r2, $r3) = @replica;

# Of all replicas, those that do not have a note.
sub lacking
{
	my ($id, @names) = @_;
	return grep { !has_note($session{$_}, $id) } @names;
}

# Waits until the sampler has asked a replica a few times more.
sub after_samples
{
	my ($name, $count) = @_;
	my $from = replica_state($asked, $name)->{samples};
	return poll_until(sub { replica_state($asked, $name)->{samples} >= $from + $count });
}

subtest 'the story: one of three replicas is behind' => sub {
	pause_replay($r3);
	add_note($asked, 24);
	my $token = pin($asked, 'note:24');
	wait_for_replay($asked, $r1, $r2);

	# Control: whoever waits until one replica has caught up, and then reads
	# from any, does not find the note.
	is(has_note($session{r1}, 24), 1, 'one replica has caught up');
	is_deeply([ lacking(24, qw(r1 r2 r3)) ], ['r3'], 'a reader who trusts that gets a 404');

	ok(poll_until(sub { names(route($asked, 'note:24')) eq 'r1 r2' }),
		'route names the two that have replayed');
	my $decision = route($asked, 'note:24');
	is($decision->{reason}, 'replica_caught_up', 'and says why');
	is($decision->{required}, $token, 'and what is required: the token of the pin');

	my %chosen = map { route($asked, 'note:24')->{replica} => 1 } 1 .. 40;
	is_deeply([ sort keys %chosen ], [qw(r1 r2)], 'chooses among the two, and no other');

	for (1 .. 3)
	{
		is(is_pinned($asked, 'note:24'), 1, 'pinned while the third is behind');
		ok(after_samples('r3', 1), 'it was sampled again');
		is(names(route($asked, 'note:24')), 'r1 r2', 'and is not named');
	}

	resume_replay($r3);
	ok(poll_until(sub { !is_pinned($asked, 'note:24') }), 'lets go once it has replayed');
	is(has_note($session{r3}, 24), 1, 'which it has');
	$decision = route($asked, 'note:24');
	is($decision->{reason}, 'in_sync', 'in sync');
	is(names($decision), 'r1 r2 r3', 'names all three, in the order of the setting');
};

subtest 'all replicas are behind' => sub {
	pause_replay(@replica);
	add_note($asked, 25);
	my $token = pin($asked, 'user:42');

	is_deeply(
		route($asked, 'user:42'),
		{ replica => undef, reason => 'replicas_behind', replicas => [], required => $token },
		'the primary, at once');
	ok(after_samples($_->name, 1), $_->name . ' was sampled again') for @replica;
	is(route($asked, 'user:42')->{reason}, 'replicas_behind', 'and still the primary');
	is(is_pinned($asked, 'user:42'), 1, 'pinned');

	resume_replay(@replica);
	ok(poll_until(sub { names(route($asked, 'user:42')) eq 'r1 r2 r3' }), 'lets go');
	is(is_pinned($asked, 'user:42'), 0, 'for both ways of asking');
};

subtest 'several keys: the greatest position decides' => sub {
	my $old = pin($asked, 'old');
	ok(poll_until(sub { !is_pinned($asked, 'old') }), 'a key of which all is replayed');
	pause_replay($r3);
	add_note($asked, 26);
	my $new = pin($asked, 'new');
	wait_for_replay($asked, $r1, $r2);
	ok(poll_until(sub { names(route($asked, 'new')) eq 'r1 r2' }), 'one that r3 lacks');

	is(names(route($asked, 'old')), 'r1 r2 r3', 'the old one alone is in sync');
	for my $keys ([qw(old new)], [qw(new old)], [qw(new new old)], [ 'new', 'never seen' ])
	{
		my $decision = route_all($asked, $keys);
		is(names($decision), 'r1 r2', "keys @$keys");
		is($decision->{required}, $new, 'require the greater one');
	}
	is(names(route_all($asked, ['old'])), 'r1 r2 r3', 'a list of one');
	is(names(route_all($asked, ['old'], $new)), 'r1 r2', 'a token counts as well as a key');
	is(names(route_all($asked, ['new'], $old)), 'r1 r2', 'whichever is greater');
	is(names(route($asked, 'old', $new)), 'r1 r2', 'also with one key');
	cmp_ok($new, 'gt', $old, 'tokens compare as text');

	is(ask($asked, "SELECT replica_pin.is_any_pinned('{old,new}')"), 't', 'one of two is pinned');
	is(ask($asked, "SELECT replica_pin.is_any_pinned('{old}')"), 'f', 'the old one is not');
	is(ask($asked, "SELECT replica_pin.pin_all('{a,b}') <= replica_pin.current_token()"),
		't', 'pin_all pins at the end of what is committed');
	ok(poll_until(sub { names(route_all($asked, [qw(a b)])) eq 'r1 r2' }),
		'its keys are let go where all of that is replayed');
	is(names(route($asked, $_)), 'r1 r2', "key $_ of pin_all") for qw(a b);
	resume_replay($r3);
	ok(poll_until(sub { names(route_all($asked, [qw(old new a b)])) eq 'r1 r2 r3' }), 'lets go');
};

# Replicas stop and go at random, r1 but for a moment. What is read on a replica
# that was named is read at once.
subtest 'many writes, no missing row' => sub {
	my $rounds = 200;
	my $seed = $ENV{RPIN_SEED} // time;
	my %count = map { $_ => 0 } qw(named primary missing trusting);
	note "RPIN_SEED=$seed";
	srand $seed;

	my $read_where_named = sub {
		my ($id) = @_;
		my $decision = route($asked, "note:$id");
		$count{ $decision->{replica} ? 'named' : 'primary' }++;
		$count{missing} += lacking($id, @{ $decision->{replicas} });
		return $decision->{replica};
	};
	my $stop_or_go = sub {
		my ($name, $stop) = @_;
		ask($session{$name}, 'SELECT pg_wal_replay_' . ($stop ? 'pause()' : 'resume()'));
	};

	for my $id (1001 .. 1000 + $rounds)
	{
		$stop_or_go->((qw(r2 r3))[ rand 2 ], rand() < 0.6);
		$stop_or_go->('r1', rand() < 0.3);

		add_note($asked, $id);
		pin($asked, "note:$id");
		$read_where_named->($id);
		$stop_or_go->('r1', 0);
		poll_until(sub { $read_where_named->($id) }) or die 'no replica catches up';

		# Now one has caught up. The control takes any.
		$count{trusting} += lacking($id, (qw(r1 r2 r3))[ rand 3 ]);
	}
	note join ', ', map { "$_ $count{$_}" } sort keys %count;
	is($count{missing}, 0, 'every row was on every replica that was named');
	cmp_ok($count{named}, '>=', $rounds, 'and replicas were named');
	cmp_ok($count{primary}, '>', 0, 'sometimes it was the primary');
	cmp_ok($count{trusting}, '>', 0, 'control: rows are missing where one replica is taken for all');
	resume_replay($r2, $r3);
	ok(poll_until(sub { !is_pinned($asked, 'note:' . (1000 + $rounds)) }), 'lets go');
};

done_testing();
