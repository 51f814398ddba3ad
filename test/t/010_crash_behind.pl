# A replica that crashes may reopen behind where it was: positions that it had
# shown to the sampler and to readers are gone again until it has replayed them
# once more. The crash drops every connection, so an old connection proves that
# its server is still the one that was asked; a new one has to ask by require().
#
# How a replica is made to reopen behind. It opens for reads at its consistency
# point, the last position that was forced to its disk: here that of its base
# backup, because nothing is ever flushed afterwards (no background writer, no
# restartpoint, buffers for everything). Everything later it has to replay again.
# That would be over too soon to be looked at; with recovery_min_apply_delay, set
# after it has replayed the write and before it crashes, the next life waits at
# the first commit behind the consistency point, like a replica with hours of
# WAL to go through.

use strict;
use warnings;

use RpinMore qw(value sqlstate);
use RpinTest;
use Test::More;

my $lifetime = 1000;
my ($primary, @replicas) = cluster(
	replicas => 2,
	conf => <<"END");
replica_pin.sample_lifetime = $lifetime
replica_pin.sample_interval = 250
checkpoint_timeout = 1h
bgwriter_lru_maxpages = 0
shared_buffers = 32MB
restart_after_crash = on
END
my $asked = RpinMore->connect($primary);
my @names = map { $_->name } @replicas;
my $rounds = 10;    # with two replicas each

# The ways to crash. The last one leaves the postmaster as it is, start time and
# all: it restarts its children.
my @crashes = (
	sub { $_[0]->stop('immediate'); $_[0]->start },
	sub {
		my ($replica) = @_;
		$replica->kill9;
		poll_until(sub {
			# its children must be gone first; a failed start takes the dead
			# postmaster, until it is reaped, for one that runs
			$replica->{_pid} = undef;
			return $replica->start(fail_ok => 1);
		}) or die 'does not start';
	},
	sub { kill KILL => value(RpinMore->connect($_[0])->query('SELECT pg_backend_pid()')) });

sub safe_set { return value($asked->call('SELECT array_to_string(replicas, \' \') FROM replica_pin.route($1)', $_[0])) }

sub set_delay
{
	my ($delay) = @_;
	for my $replica (@replicas)
	{
		my $client = RpinMore->connect_soon($replica);
		$client->query("ALTER SYSTEM SET recovery_min_apply_delay = '$delay'");
		$client->query('SELECT pg_reload_conf()');
		poll_until(sub { value($client->query('SHOW recovery_min_apply_delay')) eq $delay })
		  or die 'the delay is not in force';
	}
	return;
}

# Has this connection been open for longer than the lifetime of a sample?
sub is_old
{
	my $age = $_[0]->query(<<"END");
SELECT clock_timestamp() - backend_start > '$lifetime ms'
FROM pg_stat_activity WHERE pid = pg_backend_pid()
END
	return (value($age) // 'lost') eq 't';
}

sub all_sampled
{
	return value($asked->query('SELECT bool_and(eligible) FROM replica_pin.replicas')) eq 't';
}

my %stale = ('without require' => 0, 'behind require' => 0, 'over an old connection' => 0, 'named' => 0);
my %seen = ('behind require' => 0, 'over an old connection' => 0);
my $refused = 0;
my @connections = map { RpinMore->connect($_) } @replicas;

for my $round (1 .. $rounds)
{
	my $key = "note:$round";
	my $read = "SELECT count(*) FROM note WHERE id = $round";

	add_note($primary, $round);
	my $token = value($asked->call('SELECT replica_pin.pin($1)', $key));
	my $behind_require = "BEGIN; CALL replica_pin.require('$token'); $read; COMMIT";
	poll_until(sub { !grep { !is_old($_) } @connections }) or die 'a connection does not get old';

	# This decision is the one that the readers go by.
	poll_until(sub { safe_set($key) eq "@names" }) or die 'the replicas do not catch up';
	$seen{'over an old connection'} += value($_->query($read)) for @connections;

	set_delay('1h');
	for my $i (0 .. $#replicas)
	{
		my $crash = $crashes[ ($round + $i) % @crashes ];
		$crash->($replicas[$i]);

		# Until it breaks, whatever is read over it is from the life before.
		poll_until(sub {
			my $answer = $connections[$i]->query($read);
			return 1 if $answer->{status} eq '';
			$stale{'over an old connection'}++ if value($answer) == 0;
			return 0;
		}) or die 'the connection survives';

		my $fresh = RpinMore->connect_soon($replicas[$i]);
		$stale{'without require'}++ if value($fresh->query($read)) == 0;

		my $answer = $fresh->query($behind_require);
		$stale{'behind require'}++ if !$answer->{error} && value($answer) == 0;
		$refused++ if sqlstate($answer) eq 'RP001';
		$fresh->query('ROLLBACK');
		$connections[$i] = $fresh;
	}

	# The sample of the life before is not believed any more, and that of the
	# new one is not high enough.
	poll_until(sub { safe_set($key) eq '' }) or die 'a sample of the life before is still believed';
	poll_until(\&all_sampled) or die 'the replicas are not sampled again';
	for (1 .. 20)
	{
		$stale{named}++ if safe_set($key) ne '';
	}

	set_delay('0');
	for my $connection (@connections)
	{
		my $answer;
		poll_until(sub {
			$answer = $connection->query($behind_require);
			$connection->query('ROLLBACK') if $answer->{error};
			return !$answer->{error};
		}) or die 'require does not pass again';
		$stale{'behind require'}++ if value($answer) == 0;
		$seen{'behind require'} += value($answer);
	}
}

my $reads = $rounds * @replicas;
cmp_ok($stale{'without require'}, '>=', 1, "control: stale reads without require on fresh connections: $stale{'without require'} of $reads");
is($stale{'over an old connection'}, 0, 'no stale read over an old connection');
is($seen{'over an old connection'}, $reads, '... which had seen the row before the crash');
is($stale{'behind require'}, 0, 'no stale read behind require');
is($refused, $stale{'without require'}, '... which refuses a replica that is behind');
is($seen{'behind require'}, $reads, '... and passes, and sees the row, when it has replayed');
is($stale{named}, 0, 'no decision names a replica that reopened behind');
ok(poll_until(sub { safe_set("note:$rounds") eq "@names" }), 'and all are named again in the end');

# What is known of a replica ends with the connection over which it was told, and
# not with sample_lifetime alone: with a long one, a replica that comes back behind
# before it is asked again would be named by what it had in the life before.
{
	my ($replica) = @replicas;
	configure($primary, 'replica_pin.sample_lifetime' => '10min');
	poll_until(sub { value($asked->query('SHOW replica_pin.sample_lifetime')) eq '10min' })
	  or die 'the lifetime is not in force';
	wait_for_samples($primary, @replicas);
	add_note($primary, $rounds + 1);
	my $token = value($asked->call('SELECT replica_pin.pin($1)', 'last'));
	poll_until(sub { safe_set('last') eq "@names" }) or die 'the replicas do not catch up';
	set_delay('1h');
	$replica->stop('immediate');
	ok(poll_until(sub { safe_set('last') eq $names[1] }), 'a replica that is gone is named no more, however long samples live');
	$replica->start;
	my $fresh = RpinMore->connect_soon($replica);
	is(sqlstate($fresh->query("CALL replica_pin.require('$token')")), 'RP001', 'it comes back behind');
	is(safe_set('last'), $names[1], '... and is not named');
	wait_for_samples($primary, $replica);
	is(safe_set('last'), $names[1], '... when it is sampled either');
}

done_testing();
