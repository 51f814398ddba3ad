# On an idle primary whose last record ends a page of WAL, the insert pointer
# stands behind the next page's header: a place that no replica reaches before
# somebody writes again. A pin must not wait for it.

use strict;
use warnings;

use RpinTest;
use Test::More;
use Time::HiRes qw(time);

my $page = 8192;
my $short_header = 24;
my $long_header = 40;

# Far less than the time after which the server would write something by itself
# (15 s: a snapshot of running transactions), far more than an interval.
my $deadline = 5;

my ($primary, $r1) = cluster(replicas => 1, conf => <<'END');
replica_pin.sample_interval = 250ms
checkpoint_timeout = 1h
wal_log_hints = off
END
ask($primary, 'VACUUM');    # or reading would still clean up, and write
my $asked = session($primary);
my $reader = session($r1);

sub insert_pointer { return ask($asked, 'SELECT pg_current_wal_insert_lsn()'); }

# Bytes from 0/0.
sub bytes
{
	my ($high, $low) = map { hex } split m!/!, shift;
	return ($high << 32) + $low;
}

sub write_message
{
	my ($size) = @_;
	ask($asked, "SELECT pg_logical_emit_message(false, '', repeat('x', $size))");
	return;
}

# Writes messages until one ends a page.
sub fill_page
{
	my $before = bytes(insert_pointer());
	write_message(0);
	my $overhead = bytes(insert_pointer()) - $before;

	for (1 .. 100)
	{
		my $at = bytes(insert_pointer()) % $page;
		return if $at == $short_header;

		my $room = $page - $at;
		if ($room > $overhead + 300)
		{
			write_message($room - $overhead - 150);
		}
		else
		{
			write_message($room > $overhead ? $room - $overhead : 0);
		}
	}
	return;
}

# Pins a key when the insert pointer stands at $offset within $unit, and looks
# what becomes of it. Undefined if somebody wrote meanwhile.
sub try_pin
{
	my ($key, $unit, $offset) = @_;
	my %seen = (pointer => insert_pointer());
	return if bytes($seen{pointer}) % $unit != $offset;

	my $token = pin($asked, $key);
	my $begin = time;
	$seen{free} = poll_until(sub { !is_pinned($asked, $key) }, $deadline);
	note sprintf 'free after %.0f ms', 1000 * (time - $begin);

	$seen{reason} = route($asked, $key)->{reason};
	$seen{reason_of_token} = route_token($asked, $token)->{reason};
	$seen{current} = ask($asked, 'SELECT replica_pin.current_token()') eq $token;
	$seen{has_replayed} = ask($reader, "SELECT replica_pin.has_replayed('$token')");
	$seen{flushed} = flushed_lsn($asked);

	# For the control: many samples later, when nothing more is to be replayed.
	my $samples = replica_state($asked, 'r1')->{samples};
	poll_until(sub { replica_state($asked, 'r1')->{samples} > $samples + 3 }) or die 'no samples';
	$seen{replayed} = ask($reader, 'SELECT pg_last_wal_replay_lsn()');
	return insert_pointer() eq $seen{pointer} ? \%seen : undef;
}

# $reach brings the insert pointer there.
sub check_pin
{
	my ($reach, @try) = @_;
	my $seen;
	for (1 .. 5)
	{
		$reach->();
		$seen = try_pin(@try) and last;
		note 'somebody wrote meanwhile';
	}
	ok($seen, 'the insert pointer stands behind a header, and stays there') or return;
	ok($seen->{free}, "the key is free within $deadline s");
	is($seen->{reason}, 'in_sync', 'in sync');
	is($seen->{reason_of_token}, 'in_sync', 'the token of the pin too');
	ok($seen->{current}, 'which is the current one');
	is($seen->{has_replayed}, 't', 'the replica agrees');
	is($seen->{replayed}, $seen->{flushed}, 'all of the WAL is replayed');
	cmp_ok(bytes($seen->{replayed}), '<', bytes($seen->{pointer}),
		'control: the replica does not reach the insert pointer');
	return;
}

subtest 'the last record ends a page' => sub {
	check_pin(\&fill_page, 'page', $page, $short_header);
};

subtest 'after pg_switch_wal()' => sub {
	my $segment = ask($asked, "SELECT setting FROM pg_settings WHERE name = 'wal_segment_size'");
	check_pin(sub { write_message(0); ask($asked, 'SELECT pg_switch_wal()') },
		'segment', $segment, $long_header);
};

done_testing();
