# One message, three clusters: each decides on its own location, and pins only
# itself.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use RpinTest;
use Test::More;

my @names = qw(main ci sec);
my (%primary, %replica, %asked);

for my $name (@names)
{
	$primary{$name} = new_primary("p_$name",
		"replica_pin.location_names = '$name'\nreplica_pin.sample_lifetime = 60s\nshared_buffers = 16MB\n");
	($replica{$name}) = new_replicas($primary{$name}, "r_$name");
	watch($primary{$name}, $replica{$name});
	$asked{$name} = session($primary{$name});
}

# The decision of a cluster on a message.
sub decide
{
	my ($name, $message) = @_;
	return row($asked{$name}, "SELECT * FROM replica_pin.route_envelope('$message')");
}

# A row in each cluster, and a message that carries the position of all three.
my $note = 0;

sub publish
{
	my $message = '{"note": ' . ++$note . '}';
	for my $name (@names)
	{
		add_note($asked{$name}, $note);
		$message = ask($asked{$name}, "SELECT replica_pin.stamp('$message')");
	}
	return $message;
}

# Every set of replicas that are behind.
for my $set (0 .. 7)
{
	my @behind = map { $names[$_] } grep { $set & 1 << $_ } 0 .. 2;
	my @others = map { $names[$_] } grep { !($set & 1 << $_) } 0 .. 2;
	my $title = @behind ? "behind: @behind" : 'none is behind';

	pause_replay(map { $replica{$_} } @behind);
	my $message = publish();
	is((() = $message =~ /[0-9A-F]{16}-0/g), 3, "$title: three positions");
	ok(poll_until(sub { decide($_, $message)->{reason} eq 'in_sync' }), "$title; $_ reads from its replica")
	  for @others;
	for my $name (@behind)
	{
		my $decision = decide($name, $message);
		is($decision->{reason}, 'replicas_behind', "$title; $name does not");
		is($decision->{replica}, undef, "$title; $name reads from the primary");
		is(has_note($replica{$name}, $note), 0, "$title; control: $name lacks the row");
	}
	is(has_note($replica{$_}, $note), 1, "$title; $_ has the row") for @others;
	resume_replay(map { $replica{$_} } @behind);
	ok(poll_until(sub { decide($_, $message)->{reason} eq 'in_sync' }), "$title; $_ lets go") for @behind;
}

# --- passed on ------------------------------------------------------------------------

# A consumer on a replica that is behind stamps the message for the next one.
pause_replay($replica{main});
my $message = publish();
my $relay = session($replica{main});
my $stamped = sub { ask($relay, "SELECT replica_pin.stamp('$_[0]') #>> '{wal_locations,main}'") };
my ($position) = $message =~ /"main": "([^"]*)"/;
my $lsn_of = sub { ask($relay, "SELECT replica_pin.token_lsn('$_[0]')") };
my $bare = $lsn_of->($position);

is($stamped->($message), $position, 'a later position of the message stays');
is($stamped->(lc $message), lc $position, 'in lower case, too');
is($stamped->(qq({"wal_locations": {"main": "$bare"}})), $bare, 'and a bare one');
my $passed_on = ask($relay, "SELECT replica_pin.stamp('$message')");
is(decide('main', $passed_on)->{reason}, 'replicas_behind', 'so the next one is not sent to a replica that lacks the row');
my $own = $stamped->('{}');
cmp_ok($own, 'lt', $position, 'control: the replica itself has less');
is($stamped->(qq({"wal_locations": {"main": "$_"}})), $own, "replaced: $_")
  for '0/1', 'soon', $own =~ s/-[0-9A-F]{16}$/-0000000000000001/r, $position =~ s/^................/FFFFFFFFFFFFFFFF/r;
resume_replay($replica{main});
wait_for_replay($asked{main}, $replica{main});
cmp_ok($stamped->($message), 'ge', $position, 'once replayed, the position of the replica covers it');

# --- positions that are not ours -----------------------------------------------------

my %token = map { $_ => ask($asked{$_}, 'SELECT replica_pin.current_token()') } @names;

sub location
{
	my ($name, $value) = @_;
	return qq({"wal_locations": {"$name": "$value"}});
}

for my $name (@names)
{
	my ($other) = grep { $_ ne $name } @names;
	my $wrong = decide($name, location($name, $token{$other}));
	is($wrong->{reason}, 'wrong_cluster', "$name: the token of $other under its own name");
	is($wrong->{required}, undef, "$name: which is not to be carried on");
	is(decide($name, location($other, $token{$other}))->{reason}, 'wal_locations_absent', "$name: only what $other wrote");
	ok(poll_until(sub { decide($name, location($name, $token{$name}))->{reason} eq 'in_sync' }), "$name: its own token");
}

# Bare LSNs have no cluster: each takes them for its own.
my $lsn = ask($asked{main}, "SELECT replica_pin.token_lsn('$token{main}')");
is(decide('main', location('main', $lsn))->{required}, $token{main}, 'a bare LSN is of the cluster that is asked');
is(decide('ci', location('ci', '0/1'))->{reason}, 'in_sync', 'also of another');

# Beyond the end of WAL, as token and bare. Both are made in the statement that
# asks, so that nothing can be written in between.
for my $bytes (0, 1, 2**40)
{
	my $end = "(pg_current_wal_flush_lsn() - '0/0')::bigint + $bytes";
	my %form = (
		token => "left('$token{main}', 26) || upper(lpad(to_hex($end), 16, '0'))",
		bare => "'0/0'::pg_lsn + ($end)");
	my $expected = $bytes ? 'position_in_future' : 'in_sync';
	ask($asked{main}, 'CHECKPOINT');
	wait_for_replay($asked{main}, $replica{main});
	for my $form (sort keys %form)
	{
		my $question = "SELECT reason FROM replica_pin.route_envelope(format('{\"wal_locations\": {\"main\": \"%s\"}}', $form{$form}))";
		ok(poll_until(sub { ask($asked{main}, $question) eq $expected }), "$bytes bytes beyond the end, $form: $expected");
	}
}

done_testing();
