# The history checker of test/history, on a primary and three replicas, one of
# them cascading, each behind a PgBouncer too.
#
# A run goes on until it has seen enough, however busy the machine is.

package RpinHistory;

use strict;
use warnings;

use Exporter qw(import);
use FindBin;
use IPC::Run ();
use JSON::PP ();
use POSIX qw(mkfifo);
use PostgreSQL::Test::Utils;
use RpinPooler;
use RpinTest;
use Test::More;

our @EXPORT = qw(
  history_cluster history_replicas history_address
  start_run finish_run order wait_for_reads wait_for_commits is_clean at_first_sight surviving);

my $place = PostgreSQL::Test::Utils::tempdir_short();
my $patience = 300;
my (@replicas, $pooler_port);

# --- the cluster ----------------------------------------------------------------

# (primary, r1, r2, r3): r3 follows r1, so that it needs nothing when r1 is
# promoted. The delays see to it that there is always a replica that is short.
sub history_cluster
{
	my $primary = new_primary('primary', <<'END');
max_connections = 200
replica_pin.sample_lifetime = '1s'
replica_pin.sample_interval = '100ms'
replica_pin.sample_timeout = '500ms'
replica_pin.log_decisions = none
END
	my ($r1, $r2) = new_replicas($primary, 'r1', 'r2');
	my ($r3) = new_replicas($r1, 'r3');
	configure($r2, recovery_min_apply_delay => '5ms');
	configure($r3, recovery_min_apply_delay => '15ms');
	configure($_, 'replica_pin.replicas' => replica_list($r1, $r2, $r3)) for $r1, $r2, $r3;
	watch($primary, $r1, $r2, $r3);
	history_replicas($r1, $r2, $r3);
	$pooler_port = start_pooler(
		$place,
		[ map { $_->name . ' = ' . history_address($_) } @replicas ],
		pool_mode => 'transaction',
		default_pool_size => 4);
	compile();
	return ($primary, $r1, $r2, $r3);
}

# Those that runs from now on know.
sub history_replicas
{
	(@replicas) = @_;
	return;
}

sub compile
{
	run_command([ qw(make -s -C), "$FindBin::RealBin/../history", "BUILD=$place" ]);
	ok(-x "$place/history", 'the checker compiles') or BAIL_OUT('no checker');
	return;
}

sub history_address
{
	my ($node) = @_;
	return 'host=' . $node->host . ' port=' . $node->port . ' dbname=postgres user=' . getpwuid($>);
}

sub pooler_address
{
	my ($node) = @_;
	return "host=$place port=$pooler_port dbname=" . $node->name . ' user=' . getpwuid($>);
}

# --- a run -----------------------------------------------------------------------

# Begins a run; finish_run() ends it.
#	spare => [nodes], need not serve; expect => [marks]
sub start_run
{
	my ($primary, $mode, $seconds, %more) = @_;
	my %spare = map { $_->name => 1 } @{ $more{spare} // [] };
	my $fifo = "$place/control";
	unlink $fifo;
	mkfifo($fifo, 0600) or die "no FIFO: $!";
	my @command = ("$place/history", '--mode', $mode, '--primary', history_address($primary),
		(map { ($spare{ $_->name } ? '--spare' : '--replica', $_->name . '=' . history_address($_)) } @replicas),
		(map { ('--pooler', $_->name . '=' . pooler_address($_)) } @replicas),
		'--seconds', $seconds, '--patience', $patience, '--sample-lifetime', 1000, '--near', 100,
		'--seed', $$, '--report', "$place/$mode.json", '--control', $fifo, '--verbose',
		map { ('--expect', "$_=1") } @{ $more{expect} // [] });
	my %run = (mode => $mode, fifo => $fifo, log => "$place/$mode.log");
	unlink $run{log}, "$place/$mode.json";
	$run{process} = IPC::Run::start(\@command, '<', \undef, '>', $run{log}, '2>&1');
	return \%run;
}

# (did it succeed, its report)
sub finish_run
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

# So many more reads on replicas than now, or commits.
sub wait_for_reads { my ($run, $more) = @_; return wait_for_more($run, $more, 'reads on replicas'); }
sub wait_for_commits { my ($run, $more) = @_; return wait_for_more($run, $more, 'commits'); }

sub wait_for_more
{
	my ($run, $more, $what) = @_;
	my $count = sub { (slurp_file($run->{log}) =~ /(\d+) $what/g)[-1] // 0 };
	my $begin = $count->();
	poll_until(sub { $count->() >= $begin + $more }) or die "there are no $what";
	return;
}

sub is_clean
{
	my ($run, $what) = @_;
	my ($ok, $report) = finish_run($run);
	is($report->{verdict}, 'ok', "$what: no read is stale, and enough was seen")
	  or diag(slurp_file($run->{log}));
	ok($ok, '... which the exit status says');
	cmp_ok($report->{counts}{reads_replica}, '>', 0, '... of '
		  . "$report->{counts}{reads_replica} reads on replicas");
	return $report;
}

# Violations of a kind; those that stand against what survived.
sub at_first_sight { return $_[0]{violations}{ $_[1] }{at_first_sight}; }
sub surviving { return $_[0]{violations}{ $_[1] }{surviving}; }

1;
