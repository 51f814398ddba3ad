# Monotonic reads: a reader that hops between replicas and carries the greatest
# token of what it has seen never goes back in time; one without goes back. Also
# when it read in the middle of a commit's replay.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use RpinMore qw(value sqlstate);
use RpinTest;
use Test::More;
use Time::HiRes qw(time);

my $reads = 600;
my $reads_per_tick = 40;
my ($primary, $r1, $r2) = cluster(
	replicas => 2,
	conf => "max_locks_per_transaction = 256\n");
my $writer = RpinMore->connect($primary);
my %reader = (r1 => RpinMore->connect($r1), r2 => RpinMore->connect($r2));

ask($primary, 'CREATE TABLE clock AS SELECT 0 AS tick');
wait_for_replay($primary, $r1, $r2);

# Always a little behind.
configure($r2, recovery_min_apply_delay => '150ms');

sub tick { $writer->query('UPDATE clock SET tick = tick + 1'); return }

# --- hopping ---------------------------------------------------------------------

# The recipe. Behind the proof of what was seen before: the read, and then the
# token of this server, which covers it. The other replica if this one is behind.
sub read_onward
{
	my ($state, @names) = @_;
	for my $name (@names)
	{
		my $answer = $reader{$name}->query("CALL replica_pin.require('$state->{token}', 20);"
			  . ' SELECT tick FROM clock; SELECT replica_pin.current_token()');
		if (sqlstate($answer) eq 'RP001')
		{
			$state->{refused}{$name}++;
			next;
		}
		die $answer->{error}{M} if $answer->{error};
		my ($tick, $token) = map { $_->[0] } @{ $answer->{rows} };
		$state->{token} = $token if $token gt $state->{token};
		$state->{served}{$name}++;
		return $tick;
	}
	die 'no replica serves';
}

sub hop
{
	my ($read) = @_;
	my ($back, $highest) = (0, 0);
	for my $n (1 .. $reads)
	{
		tick() if $n % $reads_per_tick == 0;
		my $tick = $read->($n % 2 ? ('r1', 'r2') : ('r2', 'r1'));
		$back++ if $tick < $highest;
		$highest = $tick if $tick > $highest;
	}
	return ($back, $highest);
}

my ($back, $highest) = hop(sub { value($reader{ $_[0] }->query('SELECT tick FROM clock')) });
note("without tokens: $back of $reads reads went back in time");
cmp_ok($back, '>', 5, 'control: without tokens the reader goes back in time');

my %state = (token => value($reader{r1}->query('SELECT replica_pin.current_token()')));
($back, $highest) = hop(sub { read_onward(\%state, @_) });
note("with tokens: $back of $reads; served by " . join(', ', map { "$_ " . ($state{served}{$_} // 0) } 'r1', 'r2')
	  . ', refused by r2 ' . ($state{refused}{r2} // 0));
is($back, 0, 'with the greatest token it never does');
cmp_ok($highest, '>=', 2 * int($reads / $reads_per_tick) - 1, '... and gets on');
cmp_ok($state{served}{r2} // 0, '>', 0, '... while both replicas serve it');
cmp_ok($state{refused}{r2} // 0, '>', 0, '... and the one that is behind refuses');

# The replica that is behind serves again when it is there.
configure($r2, recovery_min_apply_delay => undef);
wait_for_replay($primary, $r2);
is(sqlstate($reader{r2}->query("CALL replica_pin.require('$state{token}')")), '', 'a replica that is there again passes');

# --- inside the replay of a commit -------------------------------------------------

# A commit that drops thousands of tables is visible while its redo still removes
# their files. Who saw its row there must not miss it on the other replica.

my $tables = 3000;
my ($dropped, $note) = (0, 0);

sub make_tables
{
	my $last = $dropped + $tables;
	while ($dropped < $last)
	{
		my $to = $dropped + 500;
		$writer->query("DO 'BEGIN FOR i IN @{[ $dropped + 1 ]}..$to LOOP EXECUTE format(''CREATE TABLE d%s ()'', i); END LOOP; END'");
		$dropped = $to;
	}
	wait_for_replay($primary, $r1, $r2);
	return;
}

# Reads on r1 until the row is seen: the first such read, and what followed it.
sub first_sight
{
	my $first = $dropped - $tables + 1;
	my $id = ++$note;
	my $sql = "SELECT (SELECT count(*) FROM note WHERE id = $id), pg_last_wal_replay_lsn()";
	$writer->send_query("BEGIN; DO 'BEGIN FOR i IN $first..$dropped LOOP EXECUTE format(''DROP TABLE d%s'', i); END LOOP; END';"
		  . "INSERT INTO note VALUES ($id); COMMIT");
	my $answer;
	poll_until(sub {
		for (1 .. 500)
		{
			$answer = $reader{r1}->query($sql);
			return 1 if value($answer);
		}
		return 0;
	}) or die 'the row does not come';
	my $covering = value($reader{r1}->query('SELECT replica_pin.current_token()'));
	my $hint = value($reader{r1}->query("SELECT replica_pin.has_replayed('$covering')"));
	my $begin = time;
	my $proof = sqlstate($reader{r1}->query("CALL replica_pin.require('$covering', 30000)"));
	my $waited = time - $begin;
	$writer->answer;
	return ($answer->{rows}[0][1], $covering, $hint, $proof, $waited);
}

my ($replayed, $covering, $hint, $proof, $waited);
my $inside = 0;
for my $try (1 .. 4)
{
	resume_replay($r2) if $try > 1;
	make_tables();
	pause_replay($r2);
	($replayed, $covering, $hint, $proof, $waited) = first_sight();
	$inside = value($writer->query("SELECT '$replayed'::pg_lsn < replica_pin.token_lsn('$covering')")) eq 't' && $hint eq 'f';
	last if $inside;
}
note(sprintf 'seen with replay at %s, the token is %s; has_replayed %s; require waited %.0f ms',
	$replayed, $covering, $hint, 1000 * $waited);
is($inside ? 1 : 0, 1, 'a row was seen inside the replay of its commit: its token is not replayed yet on the same replica');
is($proof, '', '... and is, when the redo is over');

my $other = "CALL replica_pin.require('$covering', %d); SELECT count(*) FROM note WHERE id = $note";
is(sqlstate($reader{r2}->query(sprintf $other, 0)), 'RP001', 'the other replica refuses the token as long as it lacks the row');
is(value($reader{r2}->query("SELECT count(*) FROM note WHERE id = $note")), 0, '... which it does');
$reader{r2}->send_query(sprintf $other, 60000);
resume_replay($r2);
is(value($reader{r2}->answer), 1, '... and has it as soon as it passes');

done_testing();
