# The history checker of test/history across failovers: one that loses nothing,
# and one that loses acknowledged commits, which one replica has for ever. No
# decision names that one; and who reads there without a decision sees them, so
# the checker would.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use RpinHistory;
use RpinTest;
use Test::More;

my ($primary, $r1, $r2, $r3) = history_cluster();

# The run does not end before it has read with the new primary: it is told only then
# what it waits for.
sub order_primary
{
	my ($run, $node) = @_;
	order($run, 'primary ' . history_address($node));
	poll_until(sub { slurp_file($run->{log}) =~ /there is a new primary/ }) or die 'it is not told';
	wait_for_reads($run, 300);
	order($run, 'mark new primary');
	return;
}

# --- the replica that is promoted has everything ----------------------------------

{
	configure($primary, synchronous_standby_names => 'r1');
	poll_until(sub { ask($primary, q{SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'}) == 1 })
	  or die 'commits do not wait for r1';
	my $run = start_run($primary, 'direct', 8, spare => [$r1], expect => ['new primary']);
	wait_for_reads($run, 500);
	order($run, 'mark failover');
	$primary->stop('immediate');
	$r1->promote;
	configure($r2, primary_conninfo => history_address($r1) . ' application_name=r2');
	order_primary($run, $r1);
	my $report = is_clean($run, 'direct, across a failover');
	is($report->{counts}{failovers}, 1, '... which it was told');
	is($report->{lost_commits}, 0, '... and the standby that commits waited for lost none');
}

# --- it lacks some ------------------------------------------------------------------

# The heir gets no more WAL, and who follows it; the other one gets all of it,
# until the primary dies.
sub lossy_failover
{
	my ($old, $heir, $run) = @_;
	wait_for_reads($run, 300);
	configure($heir, primary_conninfo => '');
	poll_until(sub { ask($heir, 'SELECT count(*) FROM pg_stat_wal_receiver') == 0 })
	  or die 'the heir still streams';
	wait_for_reads($run, 300);
	order($run, 'mark failover');
	$old->stop('immediate');
	$heir->promote;
	order_primary($run, $heir);
	return;
}

{
	configure($r3, recovery_min_apply_delay => undef);
	my ($r4) = new_replicas($r3, 'r4');
	configure($_, 'replica_pin.replicas' => replica_list($r2, $r3, $r4)) for $r1, $r3;
	wait_for_samples($r1, $r2, $r3, $r4);
	history_replicas($r2, $r3, $r4);
	my $run = start_run($r1, 'direct', 8, spare => [ $r2, $r3 ], expect => ['new primary']);
	lossy_failover($r1, $r3, $run);
	my $report = is_clean($run, 'direct, across a failover that loses commits');
	cmp_ok($report->{lost_commits}, '>', 0, "... $report->{lost_commits} of them");
	is(at_first_sight($report, 'divergent'), 0, '... of which no decision shows any');
}

{
	my ($r5, $r6) = new_replicas($r3, 'r5', 'r6');
	watch($r3, $r5, $r6);
	history_replicas($r5, $r6);
	my $run = start_run($r3, 'control-none', 8, expect => ['new primary']);
	lossy_failover($r3, $r6, $run);
	my ($ok, $report) = finish_run($run);
	cmp_ok(surviving($report, 'divergent'), '>', 0,
		'without decisions they are read: ' . surviving($report, 'divergent') . ' times');
	cmp_ok(surviving($report, 'stale'), '>', 0, '... and there are stale reads');
	cmp_ok(surviving($report, 'stale'), '<', at_first_sight($report, 'stale'),
		'... fewer than at first sight: some of what they lack did not survive');
}

done_testing();
