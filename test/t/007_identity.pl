# A position has an identity. After a restore, a failover or a mix-up, a number
# that merely compares well is not an answer.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use RpinTest;
use Test::More;

my $primary = new_primary('primary', <<'END');
replica_pin.sample_interval = 100ms
replica_pin.sample_timeout = 5s
replica_pin.sample_lifetime = 20s
END
my ($r1, $r2) = new_replicas($primary, qw(r1 r2));

sub token
{
	my ($system, $timeline, $lsn) = @_;
	return sprintf '%s-%08X-%016X', $system, $timeline, $lsn;
}

# (system identifier, timeline, LSN)
sub parts
{
	my ($system, $timeline, $lsn) = split /-/, shift;
	return ($system, hex $timeline, hex $lsn);
}

sub follow
{
	my ($node, $source) = @_;
	configure($node, primary_conninfo => $source->connstr . ' application_name=' . $node->name);
	return;
}

sub state_of { return (replica_state(@_) // { state => 'not listed' })->{state}; }

# Waits until a replica has been asked once more, whatever it said.
sub sampled_again
{
	my ($where, $name) = @_;
	my $from = replica_state($where, $name)->{samples};
	return poll_until(sub { replica_state($where, $name)->{samples} > $from });
}

# Terminates the sampler, waits for the next one.
sub restart_sampler
{
	my ($where) = @_;
	my $pid = sampler_pid($where);
	kill 'TERM', $pid;
	poll_until(sub { my $now = sampler_pid($where); $now && $now != $pid }) or die 'the sampler does not come back';
	return;
}

# A replica that followed another history stays ahead, also when the WAL of this
# server has grown past the place where its numbers would look right.
sub stays_ahead
{
	my ($where, $name, $replica) = @_;
	my $alone = sub {
		my ($when) = @_;
		is(state_of($where, $name), 'ahead', "ahead $when");
		unlike(names(route($where, 'k')), qr/\b$name\b/, 'and not named');
		is(is_pinned($where, 'k'), 1, 'pinned');
	};

	ok(wait_for_state($where, $name, 'ahead'), "$name is ahead");
	$alone->('at first');
	my $replayed = ask($replica, 'SELECT pg_last_wal_replay_lsn()');
	ask($where, "DO \$\$ BEGIN WHILE pg_current_wal_insert_lsn() <= pg_lsn '$replayed' + 1000000 LOOP"
		  . " PERFORM pg_logical_emit_message(false, '', repeat('x', 100000)); END LOOP; END \$\$");

	# Control: by the numbers alone it would be believed now. What it follows may
	# write a little by itself, but not that much.
	$replayed = ask($replica, 'SELECT pg_last_wal_replay_lsn()');
	is(ask($where, "SELECT pg_current_wal_insert_lsn() > '$replayed'"), 't', 'control: by its number it is behind');

	ok(sampled_again($where, $name), 'it is asked again');
	$alone->('after our WAL has grown past it');
	restart_sampler($where);
	ok(poll_until(sub { defined replica_state($where, $name)->{age} }), 'a new sampler asks it');
	$alone->('for the next sampler too');
	return;
}

subtest 'one list on all nodes' => sub {
	my @all = ($primary, $r1, $r2);
	configure($_, 'replica_pin.replicas' => replica_list(@all)) for @all;
	ok(wait_for_state($primary, 'primary', 'self'), 'the primary finds itself');
	ok(poll_until(sub { names(route($primary, 'k')) eq 'r1 r2' }), 'and leaves itself out');
	is(route($primary, 'k')->{reason}, 'in_sync', 'in sync with the others');
	is(is_pinned($primary, 'k'), 0, 'not pinned');
	is(route($r1, 'k')->{reason}, 'not_primary', 'a replica decides nothing');

	# The address of r2 leads here, for the sampler at least.
	my ($here) = replica_list($primary) =~ /=(.*)/;
	configure($primary, 'replica_pin.replicas' => replica_list($primary, $r1) . ", r2=$here");
	ok(wait_for_state($primary, 'r2', 'self'), 'two entries lead to the primary');
	ok(poll_until(sub { names(route($primary, 'k')) eq 'r1' }), 'route names the replica that is one');
	is(route($primary, 'k')->{reason}, 'replica_caught_up', '... not as if it were all');
	is(is_pinned($primary, 'k'), 1, 'pinned: who reads through one endpoint may come to the other');
	is_deeply([ sort map { $_->{subject} } grep { $_->{problem} eq 'self_twice' } rows($primary, 'SELECT * FROM replica_pin.check_setup()') ],
		[ 'primary', 'r2' ], 'check_setup() says so');
	configure($primary, 'replica_pin.replicas' => replica_list(@all));
	ok(poll_until(sub { !is_pinned($primary, 'k') }), 'free again with the right list');
	is(ask($r1, 'SELECT count(*) FROM replica_pin.replicas'), 0, 'and samples nobody');
};

my $restored;

subtest 'a primary that was restored from a snapshot' => sub {
	$primary->stop;
	$primary->backup_fs_cold('snapshot');
	$primary->start;

	$restored = PostgreSQL::Test::Cluster->new('restored');
	$restored->init_from_backup($primary, 'snapshot');
	$restored->start;
	my ($lost) = new_replicas($primary, 'lost');
	configure($restored, 'replica_pin.replicas' => replica_list($lost));
	my $asked = session($restored);

	# The original goes on, and its replica with it.
	ask($primary, "INSERT INTO note SELECT i FROM generate_series(1, 1000) i");
	ask($restored, "INSERT INTO note SELECT i FROM generate_series(2001, 2010) i");
	wait_for_replay($primary, $lost);
	stays_ahead($asked, 'lost', $lost);

	# Nor does it help that it follows the restored one from now on.
	follow($lost, $restored);
	$restored->wait_for_log(qr/START_REPLICATION/);
	ok(sampled_again($asked, 'lost'), 'it is asked again');
	is(state_of($asked, 'lost'), 'ahead', 'and still ahead');
	is(has_note($lost, 2001), 0, 'it lacks what was written there');

	# Another definition is another replica; this server cannot know better then.
	configure($restored, 'replica_pin.replicas' => replica_list($lost) =~ s/lost/fresh/r);
	ok(wait_for_state($asked, 'fresh', 'sampled'), 'under a new name it is new');
	$lost->stop('immediate');
};

my $before;

subtest 'failover' => sub {
	ok(poll_until(sub { names(route($primary, 'k')) eq 'r1 r2' }), 'one primary, two replicas');
	add_note($primary, 5001);
	$before = pin($primary, 'note:5001');
	wait_for_replay($primary, $r1, $r2);
	$primary->stop;
	$r1->promote;
	my $asked = session($r1);

	ok(wait_for_state($asked, 'r1', 'self'), 'the new primary finds itself');
	ok(wait_for_state($asked, 'primary', 'unreachable'), 'the old one is gone');
	ok(wait_for_state($asked, 'r2', 'other_timeline'), 'the other replica is not with us yet');
	is(route($asked, 'note:5001')->{reason}, 'samples_stale', 'the primary alone');
	follow($r2, $r1);
	ok(poll_until(sub { names(route($asked, 'note:5001')) eq 'r2' }), 'it follows, and is named');
	is(is_pinned($asked, 'note:5001'), 1, 'pinned while one that is listed is gone');

	$primary->append_conf('postgresql.conf', "primary_conninfo = '" . $r1->connstr . "'");
	$primary->set_standby_mode;
	$primary->start;
	ok(poll_until(sub { names(route($asked, 'note:5001')) eq 'primary r2' }), 'the old primary is a replica now');
	is(is_pinned($asked, 'note:5001'), 0, 'lets go');
	add_note($asked, 5002);
	pin($asked, 'note:5002');
	ok(poll_until(sub { !is_pinned($asked, 'note:5002') }), 'and does so for new writes');
};

# The restored server becomes a standby on a timeline of the same number, which
# began elsewhere.
subtest 'another timeline of the same number' => sub {
	my $asked = session($r1);
	$restored->stop;
	$restored->set_standby_mode;
	$restored->start;
	$restored->promote;
	$restored->stop;
	$restored->set_standby_mode;
	$restored->start;
	my $its = row($restored, 'SELECT system_identifier, timeline, in_recovery FROM replica_pin.node_status()');
	my $ours = row($r1, 'SELECT system_identifier, timeline, true AS in_recovery FROM replica_pin.node_status()');
	is_deeply($its, $ours, 'a replica with the same identifier and timeline');

	my $list = replica_list($r2);
	configure($r1, 'replica_pin.replicas' => "$list, " . replica_list($restored));
	ok(wait_for_state($asked, 'restored', 'other_timeline'), 'is known by where its timeline began');
	is(names(route($asked, 'never seen')), 'r2', 'and not named');
	configure($r1, 'replica_pin.replicas' => $list);
	ok(poll_until(sub { route($asked, 'never seen')->{reason} eq 'in_sync' }), 'without it, in sync');
	$restored->stop;
};

subtest 'tokens after the failover' => sub {
	my $asked = session($r1);
	my $now = ask($asked, 'SELECT replica_pin.current_token()');
	my ($system, $timeline, $end) = parts($now);
	is($timeline, 2, 'a new timeline');
	my $switch = ask($asked, "SELECT (timeline_begin - '0/0')::bigint FROM replica_pin.node_status()");
	my (undef, undef, $written) = parts($before);
	cmp_ok($written, '<=', $switch, 'the old token is from before it');

	my $decision = route_token($asked, $before);
	is($decision->{reason}, 'in_sync', 'such a token is good');
	is($decision->{required}, token($system, 2, $written), 'and renewed: required is on the new timeline');
	is(route_token($asked, token($system, 1, $switch))->{reason}, 'in_sync', 'up to the switch point');
	is(pin($asked, 'old', $before), token($system, 2, $written), 'pinned, it is on the new timeline');

	my $other_system = $system =~ tr/0-9A-F/1-9A-F0/r;
	my %bad = (
		wrong_cluster => [ token($other_system, 2, $written), qr/^22023: .*another cluster/ ],
		position_in_future => [ token($system, 2, $end + 2**30), qr/^22023: .*this server/ ],
		write_lost => [ token($system, 1, $switch + 1), qr/^22023: .*a failover lost/ ],
		unknown_timeline => [ token($system, 7, $written), qr/^22023: .*timeline/ ],
		token_unreadable => [ 'no token', qr/^22P02: .*token/ ]);
	my $pinned = pin($asked, 'k');
	for my $reason (sort keys %bad)
	{
		my ($token, $error) = @{ $bad{$reason} };
		is_deeply(route_token($asked, $token),
			{ replica => undef, reason => $reason, replicas => [], required => undef }, $reason);
		is(route($asked, 'k', $token)->{reason}, $reason, 'whatever the key needs');
		like(error_of($r1, "SELECT replica_pin.pin('k', '$token')"), $error, 'pin refuses it');
		is(route($asked, 'k')->{required}, $pinned, 'which changes nothing');
	}
	like(error_of($r1, "SELECT replica_pin.pin('k', NULL)"), qr/^22004: .*token/, 'nor does pin take NULL');

	# On a replica, which keeps no history.
	is(ask($r2, "SELECT replica_pin.has_replayed('$before')"), 'f', 'a replica does not know an old timeline');
	is(ask($r2, "SELECT replica_pin.has_replayed('$decision->{required}')"), 't', 'but the renewed token');
	like(error_of($r2, "CALL replica_pin.require('$before')"), qr/^RP002: /, 'nor does require');
	is(error_of($r2, "CALL replica_pin.require('$decision->{required}')"), '', 'which require takes');
};

subtest 'two standbys promoted apart' => sub {
	wait_for_replay($r1, $r2, $primary);
	$r1->stop;
	$_->promote for $r2, $primary;
	my ($c1) = new_replicas($r2, 'c1');
	configure($primary, 'replica_pin.replicas' => replica_list($c1));
	my $asked = session($primary);
	my ($mine) = rows($primary, 'SELECT timeline, timeline_begin FROM replica_pin.node_status()');
	my ($its) = rows($c1, 'SELECT timeline, timeline_begin FROM replica_pin.node_status()');
	is_deeply($its, $mine, 'same timeline, same switch point');
	is($mine->{timeline}, 3, 'which is the third');

	ask($r2, "INSERT INTO note SELECT i FROM generate_series(6001, 8000) i");
	wait_for_replay($r2, $c1);
	add_note($asked, 9001);
	stays_ahead($asked, 'c1', $c1);
	is(has_note($c1, 9001), 0, 'it lacks what was written here');
	is(error_of($primary, "SELECT replica_pin.pin('k', '" . ask($c1, 'SELECT replica_pin.current_token()') . "')"),
		'', 'control: its tokens cannot be told from ours any more');
};

done_testing();
