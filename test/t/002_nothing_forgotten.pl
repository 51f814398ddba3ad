# What is not remembered is taken for the newest: a key never seen, a key that
# was evicted, and every key after a restart, a crash or a promotion.

use strict;
use warnings;

use RpinTest;
use Test::More;

my ($primary, $r1, $r2) = cluster(replicas => 2, conf => <<'END');
replica_pin.max_session_keys = 3
replica_pin.sample_interval = 100ms
replica_pin.sample_timeout = 5s
replica_pin.sample_lifetime = 20s
END
my %reader;

# Asks for a key for as long as it takes to see fresh samples of all replicas,
# and from then on three times more. Answers how often a replica was named that
# lacks the note.
sub stale_decisions
{
	my ($node, $key, $note, @replicas) = @_;
	my $asked = session($node);
	$reader{ $_->name } //= session($_) for @replicas;
	my ($stale, $more) = (0, 3);

	poll_until(
		sub {
			for my $name (@{ route($asked, $key)->{replicas} })
			{
				$stale++ unless has_note($reader{$name}, $note);
			}
			my @eligible = grep { replica_state($asked, $_->name)->{eligible} } @replicas;
			return @eligible == @replicas && $more-- == 0;
		})
	  or die 'the replicas are not sampled';
	return $stale;
}

sub lets_go
{
	my ($node, $key, @replicas) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $all = join ' ', map { $_->name } @replicas;
	ok(poll_until(sub { !is_pinned($node, $key) && names(route($node, $key)) eq $all }),
		"lets go of $key");
}

sub status
{
	return row($_[0], 'SELECT *, floor_lsn::text, greatest_lsn::text FROM replica_pin.status');
}

subtest 'a key that was evicted' => sub {
	my $asked = session($primary);
	my $old = pin($asked, 'other');
	wait_for_replay($asked, $r1, $r2);
	pause_replay($r1, $r2);
	add_note($asked, 1);
	my $token = pin($asked, 'note:1');
	my $before = status($asked);
	cmp_ok($before->{max_session_keys}, '<=', 24, 'the table is small');

	# Keys with older and with newer positions.
	ask($asked, "SELECT count(replica_pin.pin('a' || i, '$old')) FROM generate_series(1, 2000) i");
	is(stale_decisions($primary, 'note:1', 1, $r1, $r2), 0, 'no stale decision after older ones');
	ask($asked, <<'END');
CREATE FUNCTION pg_temp.forgotten() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  token text[];
  forgotten integer := 0;
BEGIN
  FOR i IN 1..3000 LOOP
    PERFORM pg_logical_emit_message(false, '', '');
    token[i] := replica_pin.pin('b' || i);
  END LOOP;
  FOR i IN 1..3000 LOOP
    IF (replica_pin.route('b' || i)).required < token[i] THEN
      forgotten := forgotten + 1;
    END IF;
  END LOOP;
  RETURN forgotten;
END $$
END
	is(ask($asked, 'SELECT pg_temp.forgotten()'), 0, 'none of thousands of keys is lowered');
	cmp_ok(status($asked)->{evictions}, '>=', $before->{evictions} + 3000, 'they were evicted');
	is(stale_decisions($primary, 'note:1', 1, $r1, $r2), 0, 'no stale decision after newer ones');

	my $decision = route($asked, 'note:1');
	is($decision->{reason}, 'replicas_behind', 'but the primary');
	cmp_ok($decision->{required}, 'gt', $token, 'for the sake of its neighbours');
	resume_replay($r1, $r2);
	lets_go($asked, 'note:1', $r1, $r2);
};

# Each loses the table: the key that was pinned is as unknown as any other.
for my $how (qw(fast immediate))
{
	subtest "stopped -m $how" => sub {
		my $id = $how eq 'fast' ? 2 : 3;
		pause_replay($r1, $r2);
		add_note($primary, $id);
		my $token = pin($primary, "note:$id");

		$primary->stop($how);
		$primary->start;
		for my $key ("note:$id", "never seen $how")
		{
			is(stale_decisions($primary, $key, $id, $r1, $r2), 0, "no stale decision for $key");
			my $decision = route($primary, $key);
			is($decision->{reason}, 'replicas_behind', 'but the primary');
			cmp_ok($decision->{required}, 'ge', $token, 'it requires what was pinned, or more');
		}
		my $status = status($primary);
		is($status->{session_keys}, 0, 'no key is remembered');
		is(ask($primary, "SELECT replica_pin.token_lsn((replica_pin.route('x')).required)"),
			$status->{floor_lsn}, 'a key without an entry has the floor');

		resume_replay($r1);
		ok(poll_until(sub { names(route($primary, "note:$id")) eq 'r1' }), 'names one that has replayed');
		resume_replay($r2);
		lets_go($primary, $_, $r1, $r2) for "note:$id", "never seen $how";
	};
}

subtest 'a standby was promoted' => sub {
	my ($c1, $c2) = new_replicas($r1, 'c1', 'c2');
	configure($r1, 'replica_pin.replicas' => replica_list($c1, $c2));
	pause_replay($c1);
	add_note($primary, 4);
	my $token = pin($primary, 'note:4');
	wait_for_replay($primary, $r1);
	is(route($r1, 'note:4')->{reason}, 'not_primary', 'a standby decides nothing');
	is(is_pinned($r1, 'note:4'), 1, 'there everything is pinned');

	$primary->stop;
	$r1->promote;
	is(stale_decisions($r1, 'note:4', 4, $c2), 0, 'no stale decision of the new primary');
	ok(poll_until(sub { names(route($r1, 'note:4')) eq 'c2' }), 'names the one that has replayed');
	is(replica_state($r1, 'c1')->{state}, 'other_timeline', 'the other is before the promotion');
	is(is_pinned($r1, 'note:4'), 1, 'pinned');

	# It knows of the promotion as soon as it replays.
	resume_replay($c1);
	lets_go($r1, 'note:4', $c1, $c2);
	lets_go($r1, 'never seen', $c1, $c2);
	is(has_note($c1, 4), 1, 'and it is there');
};

done_testing();
