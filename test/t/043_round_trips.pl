# What read-your-writes costs in round trips, counted by a proxy; and thousands of
# pairs of a write and a read in token mode, against replicas that lag at random:
# none stale, and reads go on without the primary.

use strict;
use warnings;

use FindBin;
use IPC::Run ();
use PostgreSQL::Test::Utils;
use RpinTest;
use Test::More;

my $pairs = $ENV{RPIN_TOKEN_PAIRS} // 20000;
my $programs = "$FindBin::RealBin/../programs";
my $python = '/usr/bin/python3';
my $place = PostgreSQL::Test::Utils::tempdir_short();
my ($primary, $r1, $r2) = cluster(replicas => 2);
my @running;

END
{
	my $status = $?;
	$_->kill_kill(grace => 5) for @running;
	$? = $status;
}

# --- round trips -------------------------------------------------------------------

# A role whose commits report their token: no statement for it at run time.
ask($primary, <<'END');
CREATE ROLE pushed LOGIN;
GRANT ALL ON note TO pushed;
ALTER ROLE pushed SET replica_pin.report_commit_token = on;
END

sub start_proxy
{
	my ($node) = @_;
	my $name = $node->name;
	mkdir "$place/$name";
	my $output = '';
	push @running, IPC::Run::start(
		[ $python, "$programs/token_proxy.py", "$place/$name/.s.PGSQL." . $node->port,
			$node->host . '/.s.PGSQL.' . $node->port, "$place/$name.counts" ],
		'<', \undef, '>', \$output, '2>', "$place/$name.errors");
	poll_until(sub { $running[-1]->pump_nb; $output =~ /listening/ }) or die 'the proxy does not start';
	return;
}

# The round trips of the connection to a node that has just ended, as message types.
sub round_trips
{
	my ($node) = @_;
	my $file = "$place/" . $node->name . '.counts';
	poll_until(sub { -e $file && slurp_file($file) =~ /^end$/m }) or die 'the proxy sees no end';
	my @lines = grep { $_ ne 'end' } split /\n/, slurp_file($file);
	unlink $file;
	return @lines;
}

sub count_way
{
	my ($way) = @_;
	my $note = -1 - int(ask($primary, 'SELECT count(*) FROM note'));
	my $user = $way eq 'pushed' ? 'pushed' : getpwuid($>);
	my ($found, $errors) = run_command(
		[ $python, "$programs/token_round_trips.py", $way,
			map({ "host=$place/" . $_->name . ' port=' . $_->port . " dbname=postgres user=$user" } $primary, $r1),
			$note ]);
	is($errors, '', "$way: runs");
	is($found, 1, "$way: the row is there") unless $way eq 'plain' || $way eq 'route';

	my @to_primary = round_trips($primary);
	my @to_replica = round_trips($r1);
	note("$way: primary @to_primary, replica @to_replica");
	return [ scalar @to_primary, scalar @to_replica ];
}

start_proxy($_) for $primary, $r1;
my %trips = map { $_ => count_way($_) } qw(plain route require pushed);
is_deeply($trips{plain}, [ 1, 1 ], 'a plain write and a plain read: one round trip each');
is_deeply($trips{route}, [ 2, 1 ], 'route on the primary adds one, to the primary');
is_deeply($trips{require}, [ 2, 1 ], 'asking for the token adds one, require none: it travels with the read');
is_deeply($trips{pushed}, $trips{plain}, 'the pushed token and require add none');

# --- pairs ---------------------------------------------------------------------------

my ($input, $output, $errors) = ('', '', '');
my $process = IPC::Run::start(
	[ $python, "$programs/token_pairs.py", $pairs, map { $_->connstr('postgres') } $primary, $r1, $r2 ],
	'<', \$input, '>', \$output, '2>', \$errors);
push @running, $process;

sub counts
{
	my ($line) = @_;
	return { $line =~ /(\w+)=(\d+)/g };
}

poll_until(sub { $process->pump_nb; $output =~ /^written$/m || $errors }, 600)
  or die 'the pairs do not end';
is($errors, '', 'the pairs run');
my ($with) = split /\n/, $output;
note("with a primary: $with");
my $count = counts($with);
is($count->{pairs}, $pairs, 'every pair was read');
is($count->{stale}, 0, 'none is stale');
cmp_ok($count->{naive}, '>', $count->{control} / 20, 'control: reads without a token are');
cmp_ok($count->{$_}, '>', 0, "served: $_") for qw(at_once waited other primary);
is($count->{at_once} + $count->{waited} + $count->{other} + $count->{primary}, $pairs, '... and the counts add up');

wait_for_replay($primary, $r1, $r2);
$primary->stop('fast');
$input = "read\n";
$process->finish;
is($errors, '', 'the reads run without a primary');
my ($without) = reverse split /\n/, $output;
note("without a primary: $without");
$count = counts($without);
is($count->{pairs}, $pairs, 'with the primary stopped, every read goes on');
is($count->{none} + $count->{stale}, 0, '... on a replica, none stale');

done_testing();
