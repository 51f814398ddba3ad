# examples/monitoring with the real programs: what prometheus-postgres-exporter
# makes of the queries, against a primary with a replica that lags and one that
# nobody can reach; and what a Prometheus that scrapes it makes of the
# dashboard's expressions and of the alert rules.

use strict;
use warnings;

use FindBin;
use HTTP::Tiny;
use IPC::Run ();
use JSON::PP ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RpinTest;
use Test::More;

my $examples = "$FindBin::RealBin/../../examples/monitoring";
my $place = PostgreSQL::Test::Utils::tempdir();
# of this machine; no proxy stands between
my $http = HTTP::Tiny->new(timeout => 20, http_proxy => undef, proxy => undef);

my ($primary, $r1, $r2) = cluster(
	replicas => 2,
	conf => "replica_pin.sample_lifetime = 2s\nreplica_pin.log_decisions = none\n");
my $asked = session($primary);

# nobody listens on port 1
configure($primary, 'replica_pin.replicas' => replica_list($r1, $r2, $primary) . ', gone=127.0.0.1:1');
wait_for_state($asked, 'primary', 'self');
wait_for_state($asked, 'gone', 'unreachable');
wait_for_samples($asked, $r1, $r2);
ask($asked, 'CREATE ROLE monitor LOGIN; GRANT pg_monitor TO monitor');

# --- programs -------------------------------------------------------------------

my @programs;

# A program on a port of its own; its address.
sub start_program
{
	my ($program, @arguments) = @_;
	my $address = '127.0.0.1:' . PostgreSQL::Test::Cluster::get_free_port();
	push @programs, IPC::Run::start(
		[ $program, "--web.listen-address=$address", @arguments ],
		'<', \undef, '>', "$place/$program.log", '2>&1');
	return $address;
}

END
{
	my $status = $?;
	$_->kill_kill(grace => 5) for @programs;
	$? = $status;
}

my $exporter;
{
	local $ENV{DATA_SOURCE_NAME} = sprintf q{host=%s port=%s user=monitor dbname=postgres sslmode=disable},
	  $primary->host, $primary->port;
	$exporter = start_program('prometheus-postgres-exporter',
		"--extend.query-path=$examples/queries.yaml");
}

# --- a scrape -------------------------------------------------------------------

# 'name{label="value",...}' => value, without the exporter's own label.
sub scrape
{
	my $answer = $http->get("http://$exporter/metrics");
	return unless $answer->{success};
	my %metrics;
	for (split /\n/, $answer->{content})
	{
		my ($name, $labels, $value) = /^(\w+)(?:\{(.*)\})? (\S+)$/ or next;
		my $kept = join ',', grep { !/^server=/ } split /,/, $labels // '';
		$metrics{ $kept eq '' ? $name : "$name\{$kept}" } = $value;
	}
	return \%metrics;
}

# The metrics of a replica, by the name without the prefix.
sub replica_metrics
{
	my ($metrics, $name) = @_;
	return map { $_->[0] => $_->[1] }
	  map { /^replica_pin_replica_(\w+)\{.*\bname="$name"/ && $1 ne 'state_info' ? [ $1, $metrics->{$_} ] : () }
	  grep { !/_state_/ } keys %$metrics;
}

ok(poll_until(sub { scrape() }), 'the exporter is up');

pause_replay($r2);
ask($asked, <<'END');
SELECT replica_pin.reset_stats();
SET replica_pin.session_key = 'user:1';
INSERT INTO note VALUES (1);
RESET replica_pin.session_key;
INSERT INTO note VALUES (2), (3);
END
wait_for_replay($asked, $r1);
poll_until(sub { route($asked, 'user:1')->{reason} eq 'replica_caught_up' }) or die 'r1 is not there';
ask($asked, 'SELECT replica_pin.reset_stats()');
ask($asked, <<'END');
SELECT count((replica_pin.route('user:1')).reason) FROM generate_series(1, 3);
SELECT replica_pin.is_pinned('');
SET replica_pin.enforce_percent = 0;
SELECT count((replica_pin.route('user:1')).reason) FROM generate_series(1, 2);
RESET replica_pin.enforce_percent;
INSERT INTO note VALUES (4);
END

# The lag in time grows from zero.
my $metrics;
poll_until(sub { $metrics = scrape(); my %r2 = replica_metrics($metrics, 'r2'); $r2{lag_seconds} > 0.5 });
my ($status) = rows($asked, 'SELECT * FROM replica_pin.status');
my %r1 = replica_metrics($metrics, 'r1');
my %r2 = replica_metrics($metrics, 'r2');
my %gone = replica_metrics($metrics, 'gone');

is_deeply([ @r1{qw(eligible replay_paused)} ], [ 1, 0 ], 'r1 is eligible');
is_deeply([ @r2{qw(eligible replay_paused)} ], [ 1, 1 ], 'r2 is eligible, and its replay is paused');
is_deeply([ @gone{qw(eligible lag_seconds lag_bytes)} ], [ 0, 'NaN', 'NaN' ],
	'one that nobody can reach is not eligible, and its lag is not known');
cmp_ok($r2{lag_seconds}, '>', 0.5, "r2 lags by $r2{lag_seconds} s");
cmp_ok($r2{lag_bytes}, '>', 0, "... and $r2{lag_bytes} bytes");
cmp_ok($r2{lag_bytes}, '>', $r1{lag_bytes}, '... more than r1');
cmp_ok($r1{lag_seconds}, '<', $r2{lag_seconds}, '... also in time');
cmp_ok($_->{sample_age_seconds}, '<', 2, 'a sample that is believed is young') for \%r1, \%r2;
cmp_ok($r1{samples_total}, '>', 0, 'r1 has answered');
cmp_ok($gone{failures_total}, '>', 0, 'failures are counted');
is_deeply({ replica_metrics($metrics, 'primary') }, {}, 'the server itself is no replica');

my %state = map { /^replica_pin_replica_state_info\{(.*)\}/ ? ($1 => $metrics->{$_}) : () } keys %$metrics;
is_deeply(
	\%state,
	{
		'name="r1",state="sampled"' => 1,
		'name="r2",state="sampled"' => 1,
		'name="primary",state="self"' => 1,
		'name="gone",state="unreachable"' => 1
	},
	'the state of each entry');

my %known = map { /^replica_pin_status_(\w+)$/ ? ($1 => $metrics->{$_}) : () } keys %$metrics;
cmp_ok(delete $known{sampler_heartbeat_age_seconds}, '<', 2, 'the sampler goes round');
is_deeply(
	{ map { $_ => 0 + $known{$_} } keys %known },
	{
		in_recovery => 0,
		sampler_running => 1,
		sample_lifetime_seconds => 2,
		enforce_percent => 100,
		clamped_settings => 0,
		replicas => 4,
		session_keys => $status->{session_keys},
		session_key_slots => $status->{session_key_slots},
		pending_keys => 0,
		evictions_total => 0,
		unkeyed_commits_total => 1,
		shared_memory_bytes => $status->{shared_memory_bytes}
	},
	'the status');
is($status->{session_keys}, 1, '... with the key of the commit');

my %counted = map { /^replica_pin_decisions_total\{(.*)\}/ && $metrics->{$_} > 0 ? ($1 => $metrics->{$_}) : () } keys %$metrics;
is_deeply(
	\%counted,
	{
		'enforced="true",reason="replica_caught_up"' => 3,
		'enforced="true",reason="no_session_key"' => 1,
		'enforced="false",reason="replica_caught_up"' => 2
	},
	'the decisions');
is(scalar(grep { /^replica_pin_decisions_total/ } keys %$metrics),
	2 * ask($asked, 'SELECT count(*) FROM replica_pin.stat_decisions'), 'of every reason, also what never was');
my %findings = map { /^replica_pin_setup_findings\{severity="(\w+)"\}/ ? ($1 => 0 + $metrics->{$_}) : () } keys %$metrics;
my %found = (error => 0, warning => 0, notice => 0);
$found{ $_->{severity} }++ for rows($asked, 'SELECT severity FROM replica_pin.check_setup()');
is_deeply(\%findings, \%found, 'what check_setup() finds');
cmp_ok($findings{error}, '>', 0, '... the replica that nobody can reach');
cmp_ok($findings{warning}, '>', 0, '... and the replay that is paused');
my ($node) = rows($asked, 'SELECT library_version FROM replica_pin.node_status()');
is($metrics->{qq(replica_pin_library_info{version="$node->{library_version}"})}, 1, 'the version of the library');
is($metrics->{pg_exporter_last_scrape_error}, 0, 'a member of pg_monitor may read all of it');
is(ask($r1, 'SELECT count(*) FROM replica_pin.replicas'), 0, 'on a standby there is nothing to alarm about');

# --- the files ------------------------------------------------------------------

my $dashboard = JSON::PP::decode_json(slurp_file("$examples/dashboard.json"));
my @panels = @{ $dashboard->{panels} };
my %scraped = map { /^(\w+)/ => 1 } keys %$metrics;

# [ title, expression ] of the dashboard; of the rules
my @drawn = map { my $panel = $_; map { [ $panel->{title}, $_->{expr} ] } @{ $panel->{targets} } } @panels;
my @ruled = map { [ 'a rule', $_ ] } slurp_file("$examples/rules.yml") =~ /^\s+expr: (.*)$/mg;

sub metric_names { return $_[0] =~ /\b(replica_pin_\w+)/g; }

cmp_ok(scalar @drawn, '>', 15, scalar(@drawn) . ' expressions in the dashboard');
cmp_ok(scalar @ruled, '>=', 5, scalar(@ruled) . ' rules');
my @missing = grep { !$scraped{$_} } map { metric_names($_->[1]) } @drawn, @ruled,
  map { [ $_->{name}, ref $_->{query} ? $_->{query}{query} : '' ] } @{ $dashboard->{templating}{list} };
is_deeply(\@missing, [], 'they use only what is scraped');
is_deeply([ grep { !metric_names($_->[1]) } @drawn, @ruled ], [], '... and each something of ours');

my %cell;
for my $panel (@panels)
{
	my $grid = $panel->{gridPos};
	for my $x ($grid->{x} .. $grid->{x} + $grid->{w} - 1)
	{
		$cell{ $x . ' ' . $_ }++ for $grid->{y} .. $grid->{y} + $grid->{h} - 1;
		$cell{outside}++ if $x > 23;
	}
}
is_deeply([ grep { $_ eq 'outside' || $cell{$_} > 1 } keys %cell ], [], 'no panel covers another');
is_deeply([ sort { $a <=> $b } map { $_->{id} } @panels ], [ 1 .. @panels ], 'each has a number of its own');

my ($output, $errors) = run_command([ 'promtool', 'check', 'rules', "$examples/rules.yml" ]);
like($output . $errors, qr/SUCCESS: @{[ scalar @ruled ]} rules found/, 'promtool accepts the rules');

# --- Prometheus -----------------------------------------------------------------

append_to_file("$place/prometheus.yml", <<"END");
global: { scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms }
rule_files: [ '$examples/rules.yml' ]
scrape_configs: [ { job_name: postgres, static_configs: [ { targets: [ '$exporter' ] } ] } ]
END
my $prometheus = start_program('prometheus', "--config.file=$place/prometheus.yml",
	"--storage.tsdb.path=$place/data", '--log.level=warn');

# The number of series that an expression has; undefined if it is refused.
sub series
{
	my ($expression) = @_;
	my $answer = $http->post_form("http://$prometheus/api/v1/query", { query => $expression });
	return unless $answer->{status} =~ /^(?:200|4\d\d)$/;
	my $result = JSON::PP::decode_json($answer->{content});
	diag("$expression: $result->{error}") if $result->{status} ne 'success';
	return $result->{status} eq 'success' ? scalar @{ $result->{data}{result} } : undef;
}

# Was an alert raised, if only as pending, at any time? A busy machine may do that
# for a moment, so the opposite is: it is not raised now, or soon.
sub raised
{
	my ($alert, $labels) = @_;
	return poll_until(
		sub { series(sprintf 'count_over_time(ALERTS{alertname="%s"%s}[10m])', $alert, $labels // '') });
}

sub not_raised
{
	my ($alert, $labels) = @_;
	my $expression = sprintf 'ALERTS{alertname="%s"%s}', $alert, $labels // '';
	return poll_until(sub { my $count = series($expression); defined $count && $count == 0 });
}

ok(poll_until(sub { series('replica_pin_status_in_recovery') }), 'a Prometheus has scraped it');
for my $drawn (@drawn)
{
	my ($title, $expression) = @$drawn;
	$expression =~ s/\$instance/.*/g;
	$expression =~ s/\$__rate_interval/5s/g;
	ok( poll_until(
			sub {
				ask($asked, "SELECT replica_pin.is_pinned('')");
				return series($expression);
			},
			20),
		"drawn: $title");
}

ok(raised('ReplicaPinReplicaNotEligible', ',name="gone"'), 'alarm: the replica that is not eligible');
ok(not_raised('ReplicaPinReplicaNotEligible', ',name!="gone"'), '... and no other');
ok(raised('ReplicaPinSetup'), 'alarm: the set-up has errors');
ok(raised('ReplicaPinReplicaLag', ',name="r2"'), 'alarm: the replica that lags');
ok(not_raised('ReplicaPinReplicaLag', ',name!="r2"'), '... and no other');

ok(not_raised($_), "no alarm: $_") for qw(ReplicaPinSamplerStuck ReplicaPinSamplerNotRunning ReplicaPinNoMetrics);
my $sampler = sampler_pid($asked);
freeze($sampler);
ok(raised('ReplicaPinSamplerStuck'), 'alarm: the sampler that stands still');
thaw($sampler);

# It is started again a second later.
my $absent = 'count_over_time(ALERTS{alertname="ReplicaPinSamplerNotRunning"}[10m])';
ok( poll_until(
		sub {
			my $pid = sampler_pid($asked);
			kill 'TERM', $pid if $pid;
			return series($absent);
		}),
	'alarm: the sampler that is gone');
$programs[0]->kill_kill(grace => 5);
ok(poll_until(sub { (series('ALERTS{alertname="ReplicaPinNoMetrics"}') // 0) > 0 }), 'alarm: nothing to look at');

done_testing();
