# The process that samples: what is decided while it starts, is gone, hangs, or
# has nothing to do, and that it is back by itself.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use RpinTest;
use Test::More;
use Time::HiRes qw(time);

my ($primary, $r1, $r2) = cluster(replicas => 2, conf => <<'END');
restart_after_crash = on
replica_pin.sample_lifetime = 2s
END
my $asked = session($primary);
my %reader = map { $_->name => session($_) } $r1, $r2;
my $list = replica_list($r1, $r2);

sub reason { return route($asked, 'k')->{reason}; }

# Asks until $done is true of the answer. Answers how often each reason came,
# and dies if a replica was named that lacks the note.
sub reasons_until
{
	my ($done, $note) = @_;
	my %count;
	my $over = poll_until(
		sub {
			my $decision = route($asked, 'k');
			$count{ $decision->{reason} }++;
			for my $name (@{ $decision->{replicas} })
			{
				die "$name is named and lacks note $note" unless has_note($reader{$name}, $note);
			}
			return $done->($decision);
		});
	return $over ? \%count : undef;
}

# Writes what r1 does not replay yet, and pins it.
sub write_without_r1
{
	my ($id) = @_;
	pause_replay($r1);
	add_note($asked, $id);
	pin($asked, 'k');
	wait_for_replay($asked, $r2);
	poll_until(sub { names(route($asked, 'k')) eq 'r2' }) or die 'r2 is not named';
	return;
}

sub lets_go
{
	my ($test) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(poll_until(sub { names(route($asked, 'k')) eq 'r1 r2' && !is_pinned($asked, 'k') }), $test);
}

subtest 'nobody to ask' => sub {
	lets_go('two replicas');
	configure($primary, 'replica_pin.replicas' => '');
	ok(poll_until(sub { reason() eq 'no_replicas' }), 'an empty list');
	is(is_pinned($asked, 'k'), 1, 'pins');
	is(route($asked, 'k')->{replica}, undef, 'means the primary');
	is(ask($asked, 'SELECT count(*) FROM replica_pin.replicas'), 0, 'and an empty view');

	configure($primary, 'replica_pin.replicas' => 'gone=' . $r1->host . ':1');
	ok(poll_until(sub { reason() eq 'samples_stale' }), 'nobody answers');
	is(is_pinned($asked, 'k'), 1, 'pins');
	ok(wait_for_state($asked, 'gone', 'unreachable'), 'and is said why');
	configure($primary, 'replica_pin.replicas' => $list);
	lets_go('the list is back');
};

subtest 'terminated' => sub {
	write_without_r1(1);
	my $pid = sampler_pid($asked);
	kill 'TERM', $pid;
	my $begin = time;
	my $count = reasons_until(sub { $_[0]{reason} eq 'samples_stale' }, 1);
	ok($count, 'while it is gone samples are stale');
	is(is_pinned($asked, 'k'), 1, 'and keys pinned');
	$count = reasons_until(sub { $_[0]{reason} ne 'samples_stale' }, 1);
	ok($count, 'it is back by itself');
	cmp_ok(time - $begin, '<', 10, 'within seconds');
	note explain $count;
	isnt(sampler_pid($asked), $pid, 'as another process');
	ok(wait_for_state($asked, $_, 'sampled'), "$_ is sampled") for qw(r1 r2);
	ok(poll_until(sub { names(route($asked, 'k')) eq 'r2' }), 'the key is not forgotten');
	resume_replay($r1);
	lets_go('and let go');
};

subtest 'killed' => sub {
	write_without_r1(2);
	my $pid = sampler_pid($asked);
	my $floor = ask($asked, 'SELECT floor_lsn FROM replica_pin.status');
	my $pinned = route($asked, 'k')->{required};
	kill 'KILL', $pid;

	# The server restarts all of its processes; shared memory is new.
	ok(poll_until(sub { $primary->psql('postgres', "SELECT 1/(coalesce(sampler_pid, $pid) <> $pid)::int FROM replica_pin.status") == 0 }),
		'the server is back, with a new sampler');
	$asked = session($primary);
	ok(reasons_until(sub { names($_[0]) eq 'r2' }, 2), 'no stale decision until r2 is named');
	is(ask($asked, 'SELECT session_keys FROM replica_pin.status'), 0, 'no key is remembered');
	is(ask($asked, "SELECT floor_lsn > '$floor' AND floor_lsn >= replica_pin.token_lsn('$pinned') FROM replica_pin.status"),
		't', 'the floor is set anew, beyond every write');
	resume_replay($r1);
	lets_go('lets go');
};

subtest 'stopped' => sub {
	my $pid = sampler_pid($asked);
	my $offset = -s $primary->logfile;
	lets_go('in sync before');
	freeze($pid);
	my $begin = time;

	# What it sampled is believed until it is too old, and not longer.
	my $count = reasons_until(sub { $_[0]{reason} eq 'samples_stale' }, 2);
	ok($count, 'samples grow too old');
	cmp_ok(time - $begin, '<', 10, 'within their lifetime');
	my $oldest = ask($asked, 'SELECT min(extract(epoch FROM sample_age)) FROM replica_pin.replicas');
	cmp_ok($oldest, '>=', 2, 'which was over');
	is(ask($asked, 'SELECT count(*) FROM replica_pin.replicas WHERE eligible'), 0, 'nobody is eligible');
	is(ask($asked, "SELECT count(*) FROM replica_pin.replicas WHERE state = 'sampled'"), 2,
		'though nobody has said otherwise');

	# Nobody waits for it: neither who decides nor who pins.
	add_note($asked, 3);
	$begin = time;
	is( ask($asked, <<'END'),
SELECT count(*) FROM generate_series(1, 2000) i
 WHERE replica_pin.pin('k' || i) IS NOT NULL AND replica_pin.is_pinned('k' || i)
   AND (replica_pin.route('k' || i)).reason = 'samples_stale'
END
		2000, 'thousands of pins and decisions');
	cmp_ok(time - $begin, '<', 5, 'do not wait');
	cmp_ok(ask($asked, 'SELECT extract(epoch FROM sampler_heartbeat_age) FROM replica_pin.status'),
		'>=', 2, 'the status tells that it hangs');

	# It may never come back, and nothing may tell: the machine is off, the link is cut.
	my $connections = q{SELECT count(*) FROM pg_stat_activity WHERE application_name = 'replica_pin sampler'};
	ok(poll_until(sub { ask($reader{$_}, $connections) == 0 }), "$_ ends the connection of a sampler that asks nothing")
	  for qw(r1 r2);
	pin($asked, 'k');
	is(reason(), 'samples_stale', 'still');

	thaw($pid);
	ok(reasons_until(sub { names($_[0]) eq 'r1 r2' }, 3), 'no stale decision when it goes on');
	lets_go('it recovers');
	is(sampler_pid($asked), $pid, 'the same process');
	unlike(slurp_file($primary->logfile, $offset), qr/PANIC|FATAL/, 'without any damage');
};

sub context_switches
{
	my ($pid) = @_;
	my ($count) = slurp_file("/proc/$pid/status") =~ /^voluntary_ctxt_switches:\s+(\d+)/m;
	return $count;
}

# A commit pays for waking it, and need not when the key's replicas are waited for
# anyway: their next sample comes as soon as it would come.
subtest 'not woken for nothing' => sub {
	lets_go('in sync before');
	pause_replay($_) for $r1, $r2;
	add_note($asked, 4);
	pin($asked, 'k');
	ok(poll_until(sub { ask($asked, "SELECT min(lag) > '2.5 s' FROM replica_pin.replicas") eq 't' }),
		'both are behind for so long that they are asked as seldom as can be');

	my $pid = sampler_pid($asked);
	my $samples = 'SELECT sum(samples) FROM replica_pin.replicas';
	my ($woken, $asked_for) = (-context_switches($pid), -ask($asked, $samples));
	ask($asked, <<'END');
DO $$
BEGIN
	FOR i IN 1 .. 20000 LOOP
		PERFORM set_config('replica_pin.session_key', 'k', true);
		UPDATE note SET body = i WHERE id = 4;
		COMMIT;
	END LOOP;
END $$;
END
	$woken += context_switches($pid);
	$asked_for += ask($asked, $samples);
	cmp_ok($woken, '<', 10 * $asked_for + 50, 'by twenty thousand commits');
	note("woken $woken times, for $asked_for samples");
	resume_replay($_) for $r1, $r2;
	lets_go('and it lets go');
};

subtest 'databases can be dropped' => sub {
	$primary->safe_psql('postgres', 'CREATE DATABASE other');
	$primary->safe_psql('other', 'CREATE EXTENSION replica_pin');
	wait_for_replay($asked, $r1, $r2);
	configure($primary, 'replica_pin.conninfo' => 'dbname=other');
	ok( poll_until(
			sub {
				ask($r1, "SELECT count(*) FROM pg_stat_activity WHERE datname = 'other' AND application_name = 'replica_pin sampler'");
			}),
		'the sampler is in another database of a replica');
	lets_go('and samples there');
	is($primary->psql('postgres', 'DROP DATABASE other'), 0, 'which can be dropped');
	wait_for_replay($asked, $r1, $r2);
	ok(wait_for_state($asked, 'r1', 'refused'), 'and is gone on the replica');
	like(replica_state($asked, 'r1')->{last_error}, qr/database "other" does not exist/, 'the view says so');
	is(reason(), 'samples_stale', 'nobody is asked');
	configure($primary, 'replica_pin.conninfo' => undef);
	lets_go('until there is a database again');
};

done_testing();
