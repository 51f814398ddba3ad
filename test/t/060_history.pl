# The history checker of test/history, in short: many clients on a primary and
# three replicas, while one crashes, and while commits wait for another one. No
# read is stale; and every control shows what it is there for, so the checker sees
# it.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use RpinHistory;
use RpinTest;
use Test::More;

my ($primary, $r1, $r2, $r3) = history_cluster();

# --- reads that must not be stale ---------------------------------------------------

{
	my $run = start_run($primary, 'direct', 6, expect => [ 'r2 crashes', 'r2 is back' ]);
	wait_for_reads($run, 200);
	order($run, 'mark r2 crashes');
	$r2->stop('immediate');
	wait_for_reads($run, 200);
	$r2->start;
	wait_for_samples($primary, $r2);
	order($run, 'mark r2 is back');
	my $report = is_clean($run, 'direct, while a replica crashes');
	is(scalar @{ $report->{marks} }, 2, '... and what it was told stands in the report');
}

{
	my $report = is_clean(start_run($primary, 'require', 6), 'behind require(), through PgBouncer and not');
	cmp_ok($report->{counts}{reads_pooled}, '>', 0, '... through it too');
	cmp_ok($report->{counts}{reads_fresh}, '>', 0, '... and over new connections');
}

{
	my $report = is_clean(start_run($primary, 'token', 4), 'by a carried token');
	cmp_ok($report->{counts}{hops}, '>', 0, '... from replica to replica');
}

# A commit shows on r1 before its writer has the answer, and before it shows on
# the primary: the pin has to be there even then.
configure($primary, synchronous_standby_names => 'r1');
poll_until(sub { ask($primary, q{SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'}) == 1 })
  or die 'commits do not wait for r1';
for my $mode (qw(direct token))
{
	my $report = is_clean(start_run($primary, $mode, 4), "$mode, with synchronous replication");
	cmp_ok($report->{counts}{ahead}, '>', 0, '... with reads of what was not acknowledged yet');
}
configure($primary, synchronous_standby_names => '');

# --- controls ------------------------------------------------------------------------

# What must come, by mode.
my %shown = (
	'control-none' => [qw(stale lost_pin monotonic)],
	'control-delayed' => [qw(stale lost_pin monotonic)],
	'control-one' => [qw(stale lost_pin)],
	'control-inside' => [qw(stale lost_pin)],
	'control-elsewhere' => [qw(stale lost_pin)],
	'control-last' => [qw(stale lost_pin)],
	'control-window' => [qw(false_pin)]);

for my $control (sort keys %shown)
{
	my ($ok, $report) = finish_run(start_run($primary, $control, 3));
	is($report->{verdict}, 'ok', "$control shows what it should");
	for my $kind (@{ $shown{$control} })
	{
		cmp_ok(at_first_sight($report, $kind), '>', 0, "... $kind: " . at_first_sight($report, $kind)
			  . " of $report->{counts}{reads} reads");
	}
}
{
	my $report = is_clean(start_run($primary, 'control-right', 3), 'the same with the right position');
	is(at_first_sight($report, 'stale'), 0, '... at first sight too');
}

# A run that sees nothing has no verdict.
{
	my $run = start_run($primary, 'direct', 60, expect => ['something that does not happen']);
	order($run, 'stop');
	my ($ok, $report) = finish_run($run);
	is($report->{verdict}, 'unknown', 'a run that shows too little says nothing');
	ok(!$ok, '... and fails');
}

# Commits that nobody waits for are acknowledged, and lost in a crash: what the
# checker is told nothing of, it finds.
{
	configure($primary, synchronous_commit => 'off', wal_writer_delay => '1s');
	my $run = start_run($primary, 'direct', 4, expect => ['crash']);
	wait_for_commits($run, 200);
	order($run, 'mark crash');
	$primary->stop('immediate');
	$primary->start;
	wait_for_samples($primary, $r1, $r2, $r3);
	order($run, 'stop');
	my ($ok, $report) = finish_run($run);
	is($report->{verdict}, 'lost_commit', 'commits that are lost without a failover');
	cmp_ok($report->{lost_commits}, '>', 0, "... $report->{lost_commits} of them");
	ok(!$ok, '... are a failure');
}

done_testing();
