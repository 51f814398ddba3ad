# The history checker of test/history, in short: many clients on a primary and
# three replicas, one of them cascading, while one crashes, and across a failover.
# No read is stale; and every control shows stale reads, so the checker sees them.
#
# A run goes on until it has seen enough, however busy the machine is.

use strict;
use warnings;

use FindBin;
use IPC::Run ();
use JSON::PP ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use POSIX qw(mkfifo);
use RpinTest;
use Test::More;
use Time::HiRes qw(time);

my $place = PostgreSQL::Test::Utils::tempdir_short();
my $patience = 300;

# --- the cluster ----------------------------------------------------------------

# r3 follows r1, so that it needs nothing when r1 is promoted. The delays see to
# it that there is always a replica that is short.
my $primary = new_primary('primary', <<'END');
max_connections = 200
replica_pin.sample_lifetime = '1s'
replica_pin.sample_interval = '100ms'
replica_pin.sample_timeout = '500ms'
replica_pin.log_decisions = none
END
my ($r1, $r2) = new_replicas($primary, 'r1', 'r2');
my ($r3) = new_replicas($r1, 'r3');
my @replicas = ($r1, $r2, $r3);
configure($r2, recovery_min_apply_delay => '5ms');
configure($r3, recovery_min_apply_delay => '15ms');
configure($_, 'replica_pin.replicas' => replica_list(@replicas)) for @replicas;
watch($primary, @replicas);

my $pooler_port = PostgreSQL::Test::Cluster::get_free_port();
my $pooler = start_pooler();

END
{
	my $status = $?;
	$pooler->kill_kill(grace => 5) if $pooler;
	$? = $status;
}

sub start_pooler
{
	append_to_file("$place/pgbouncer.ini", "[databases]\n"
		  . join('', map { $_->name . ' = ' . address($_) . "\n" } @replicas) . <<"END");
[pgbouncer]
listen_port = $pooler_port
unix_socket_dir = $place
auth_type = any
pool_mode = transaction
default_pool_size = 4
END
	local $ENV{PATH} = "$ENV{PATH}:/usr/sbin";
	return IPC::Run::start([ 'pgbouncer', "$place/pgbouncer.ini" ],
		'<', \undef, '>', "$place/pgbouncer.log", '2>&1');
}

sub address
{
	my ($node) = @_;
	return 'host=' . $node->host . ' port=' . $node->port . ' dbname=postgres user=' . getpwuid($>);
}

sub pooler_address
{
	my ($node) = @_;
	return "host=$place port=$pooler_port dbname=" . $node->name . ' user=' . getpwuid($>);
}

# --- the checker -----------------------------------------------------------------

run_command([ qw(make -s -C), "$FindBin::RealBin/../history", "BUILD=$place" ]);
ok(-x "$place/history", 'the checker compiles') or BAIL_OUT('no checker');

# A run that goes on; finish() ends it.
sub start_run
{
	my ($mode, $seconds, %more) = @_;
	my %spare = map { $_->name => 1 } @{ $more{spare} // [] };
	my $fifo = "$place/control";
	unlink $fifo;
	mkfifo($fifo, 0600) or die "no FIFO: $!";
	my @command = ("$place/history", '--mode', $mode, '--primary', address($primary),
		(map { ($spare{ $_->name } ? '--spare' : '--replica', $_->name . '=' . address($_)) } @replicas),
		(map { ('--pooler', $_->name . '=' . pooler_address($_)) } @replicas),
		'--seconds', $seconds, '--patience', $patience, '--sample-lifetime', 1000, '--near', 100,
		'--seed', $$, '--report', "$place/$mode.json", '--control', $fifo, '--verbose',
		map { ('--expect', "$_=1") } @{ $more{expect} // [] });
	my %run = (mode => $mode, fifo => $fifo, log => "$place/$mode.log");
	$run{process} = IPC::Run::start(\@command, '<', \undef, '>', $run{log}, '2>&1');
	return \%run;
}

# (did it succeed, its report)
sub finish
{
	my ($run) = @_;
	my $ok = $run->{process}->finish;
	note(slurp_file($run->{log}));
	my $report = JSON::PP::decode_json(slurp_file("$place/$run->{mode}.json"));
	return ($ok, $report);
}

# When it has begun, it listens. Opened for reading too, or this would wait for a
# checker that has ended.
sub order
{
	my ($run, $line) = @_;
	poll_until(sub { -s $run->{log} }) or die 'the checker does not begin';
	open(my $fifo, '+<', $run->{fifo}) or die "no FIFO: $!";
	print $fifo "$line\n";
	close $fifo;
	return;
}

# So many more reads on replicas than now.
sub wait_for_reads
{
	my ($run, $more) = @_;
	my $reads = sub { (slurp_file($run->{log}) =~ /(\d+) reads on replicas/g)[-1] // 0 };
	my $begin = $reads->();
	poll_until(sub { $reads->() >= $begin + $more }) or die 'there are no reads';
	return;
}

sub stale { return $_[0]{violations}{stale}{at_first_sight} }

sub is_clean
{
	my ($run, $what) = @_;
	my ($ok, $report) = finish($run);
	is($report->{verdict}, 'ok', "$what: no read is stale, and enough was seen")
	  or diag(slurp_file($run->{log}));
	ok($ok, '... which the exit status says');
	cmp_ok($report->{counts}{reads_replica}, '>', 0, '... of '
		  . "$report->{counts}{reads_replica} reads on replicas");
	return $report;
}

# --- reads that must not be stale ---------------------------------------------------

{
	my $run = start_run('direct', 6, expect => [ 'r2 crashes', 'r2 is back' ]);
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
	my $report = is_clean(start_run('require', 6), 'behind require(), through PgBouncer and not');
	cmp_ok($report->{counts}{reads_pooled}, '>', 0, '... through it too');
	cmp_ok($report->{counts}{reads_fresh}, '>', 0, '... and over new connections');
}

{
	my $report = is_clean(start_run('token', 4), 'by a carried token');
	cmp_ok($report->{counts}{hops}, '>', 0, '... from replica to replica');
}

# --- controls ------------------------------------------------------------------------

for my $control (qw(none delayed one inside elsewhere last))
{
	my ($ok, $report) = finish(start_run("control-$control", 3));
	is($report->{verdict}, 'ok', "control-$control shows what it should");
	cmp_ok(stale($report), '>', 0, '... stale reads: '
		  . stale($report) . " of $report->{counts}{reads_replica}");
}
{
	my $report = is_clean(start_run('control-right', 3), 'the same with the right position');
	is(stale($report), 0, '... at first sight too');
}

# A run that sees nothing has no verdict.
{
	my $run = start_run('direct', 60, expect => ['something that does not happen']);
	order($run, 'stop');
	my ($ok, $report) = finish($run);
	is($report->{verdict}, 'unknown', 'a run that shows too little says nothing');
	ok(!$ok, '... and fails');
}

# --- a failover ----------------------------------------------------------------------

{
	my $run = start_run('direct', 8, spare => [$r1], expect => ['failover']);
	wait_for_reads($run, 500);
	order($run, 'mark failover');
	$primary->stop('immediate');
	$r1->promote;
	configure($r2, primary_conninfo => address($r1) . ' application_name=r2');
	order($run, 'primary ' . address($r1));
	my $report = is_clean($run, 'direct, across a failover');
	is($report->{counts}{failovers}, 1, '... which it was told');
	note("lost: $report->{lost_commits}; stale at first sight: " . stale($report));
}

done_testing();
