# A replica of a replica: sampled like any other, asked by token like any other,
# and after its own primary was promoted it is of the new timeline.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use RpinTest;
use Test::More;

my ($primary, $middle) = cluster(replicas => 1);
my ($leaf) = new_replicas($middle, 'leaf');
watch($primary, $middle, $leaf);

sub require_error
{
	my ($node, $token, $timeout) = @_;
	return error_of($node, "CALL replica_pin.require('$token', " . ($timeout // 0) . ')');
}

add_note($primary, 1);
my $old = ask($primary, 'SELECT replica_pin.current_token()');
is(require_error($leaf, $old, 10_000), '', 'the leaf proves what it has replayed');
is(has_note($leaf, 1), 1, 'and shows it');
ok(poll_until(sub { names(route_token($primary, $old)) eq 'r1 leaf' }), 'the primary names it');

pause_replay($leaf);
add_note($primary, 2);
my $new = ask($primary, 'SELECT replica_pin.current_token()');
is(require_error($middle, $new, 10_000), '', 'the middle one has replayed');
like(require_error($leaf, $new), qr/^RP001/, 'the leaf is behind');
ok(poll_until(sub { names(route_token($primary, $new)) eq 'r1' }), 'the primary names the middle one only');
resume_replay($leaf);
is(require_error($leaf, $new, 10_000), '', 'the leaf catches up');

# --- the middle one is promoted, and the leaf goes with it ---------------------

$primary->stop('fast');
$middle->promote;
add_note($middle, 3);
my $promoted = ask($middle, 'SELECT replica_pin.current_token()');
ok(poll_until(sub { has_note($leaf, 3) }), 'the leaf follows the promoted server');
is(require_error($leaf, $promoted, 10_000), '', 'a token of the new timeline is proved there');
like(require_error($leaf, $new), qr/^RP002/, 'one of the old timeline is not comparable');
configure($middle, 'replica_pin.replicas' => replica_list($leaf));
wait_for_samples($middle, $leaf);
my $renewed = route_token($middle, $new)->{required};
cmp_ok($renewed, 'gt', $new, 'the new primary renews it');
is(require_error($leaf, $renewed, 10_000), '', 'and it is good from then on');

done_testing();
