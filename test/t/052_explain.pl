# explain(): what route() would answer, part by part, with replicas in each of
# the conditions that they can be in.

use strict;
use warnings;

use RpinFake qw(dead_port);
use RpinTest;
use Test::More;

my ($primary, $r1, $r2) = cluster(replicas => 2, conf => "replica_pin.sample_lifetime = 2s\nlisten_addresses = '127.0.0.1'\n");
my $asked = session($primary);
configure($primary, 'replica_pin.replicas' => replica_list($r1, $r2, $primary) . ', dead=127.0.0.1:' . dead_port());
ok(wait_for_state($asked, 'dead', 'unreachable'), 'a dead entry');
ok(wait_for_state($asked, 'primary', 'self'), 'the server itself');

# [ item or replica, verdict ] of each row
sub parts
{
	my (@arguments) = @_;
	my $list = join ', ', map { defined $_ ? "'$_'" : 'NULL' } @arguments;
	return map { [ $_->{replica} // $_->{item}, $_->{verdict} ] } all_parts($list);
}

sub all_parts
{
	my ($list) = @_;
	return rows($asked, "SELECT * FROM replica_pin.explain($list)");
}

sub waits_for
{
	my ($name, $arguments, @expected) = @_;
	my @seen;
	ok(poll_until(sub { @seen = parts(@$arguments); return "@{[map { @$_ } @seen]}" eq "@{[map { @$_ } @expected]}" }), $name)
	  or is_deeply(\@seen, \@expected, $name);
	return;
}

my @others = ([ 'primary', 'self' ], [ 'dead', 'unreachable' ]);
my $token = pin($asked, 'k');
waits_for('all have it', ['k'],
	[qw(session_key recorded)], [qw(r1 caught_up)], [qw(r2 caught_up)], @others, [qw(decision replica_caught_up)]);

pause_replay($r1);
add_note($primary, 1);
$token = pin($asked, 'k');
waits_for('one is behind', [ 'k', $token ],
	[qw(session_key recorded)], [qw(token comparable)],
	[qw(r1 behind)], [qw(r2 caught_up)], @others, [qw(decision replica_caught_up)]);
my ($behind) = grep { ($_->{replica} // '') eq 'r1' } all_parts("'k'");
my $its = replica_state($asked, 'r1');
is($behind->{lsn}, $its->{replay_lsn}, 'its position');
is($behind->{behind_bytes},
	ask($asked, "SELECT pg_wal_lsn_diff(replica_pin.token_lsn('$token'), '$its->{replay_lsn}')"), 'how far it is behind');
like($behind->{detail}, qr/replay is paused/, 'why');
my ($self) = grep { ($_->{replica} // '') eq 'primary' } all_parts("'k'");
is_deeply([ @$self{qw(lsn behind_bytes)} ], [ undef, undef ], 'without a position nothing is behind');
is(route($asked, 'k')->{reason}, 'replica_caught_up', 'route says the same');

waits_for('what the read must see is not known', [ 'k', 'no token' ],
	[qw(session_key recorded)], [qw(token token_unreadable)],
	[qw(r1 eligible)], [qw(r2 eligible)], @others, [qw(decision token_unreadable)]);
waits_for('nothing is asked for', [undef], [qw(r1 eligible)], [qw(r2 eligible)], @others, [qw(decision no_session_key)]);
waits_for('a key that was never pinned counts as written at the floor', ['never'],
	[qw(session_key floor)], [qw(r1 caught_up)], [qw(r2 caught_up)], @others, [qw(decision replica_caught_up)]);

ask($asked, 'SET replica_pin.enforce_percent = 0');
my ($decision) = grep { $_->{item} eq 'decision' } all_parts("'k'");
is($decision->{verdict}, 'not_enforced', 'not enforced');
like($decision->{detail}, qr/if it were enforced, replica_caught_up/, 'what it would be');
ask($asked, 'RESET replica_pin.enforce_percent');

pause_replay($r2);
add_note($primary, 2);
pin($asked, 'k');
waits_for('all are behind', ['k'],
	[qw(session_key recorded)], [qw(r1 behind)], [qw(r2 behind)], @others, [qw(decision replicas_behind)]);
my $sampler = sampler_pid($asked);
freeze($sampler);
waits_for('samples are too old', ['k'],
	[qw(session_key recorded)], [qw(r1 sample_too_old)], [qw(r2 sample_too_old)], @others, [qw(decision samples_stale)]);
thaw($sampler);
resume_replay($r1, $r2);
waits_for('it lets go', ['k'],
	[qw(session_key recorded)], [qw(r1 caught_up)], [qw(r2 caught_up)], @others, [qw(decision replica_caught_up)]);

# A commit that waits for a synchronous standby.
configure($primary, synchronous_standby_names => 'nobody');
poll_until(sub { ask($primary, 'SHOW synchronous_standby_names') eq 'nobody' }) or die 'the reload is not over';
my $writer = session($primary);
$writer->query_until(qr/begun/, "\\echo begun\nSET replica_pin.session_key = 'k'; INSERT INTO note VALUES (3);\n");
waits_for('a commit is under way', ['k'],
	[qw(session_key commit_pending)], [qw(r1 eligible)], [qw(r2 eligible)], @others, [qw(decision commit_pending)]);
configure($primary, synchronous_standby_names => '');
waits_for('and over', ['k'],
	[qw(session_key recorded)], [qw(r1 caught_up)], [qw(r2 caught_up)], @others, [qw(decision replica_caught_up)]);

# On a replica.
is_deeply([ map { "$_->{item} $_->{verdict}" } rows($r1, "SELECT * FROM replica_pin.explain('k', '$token')") ],
	[ 'session_key not_primary', 'token not_primary', 'decision not_primary' ], 'asked on a replica');
done_testing();
