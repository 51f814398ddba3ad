# Real clients: after a COMMIT each has the token of exactly that commit, in the
# COMMIT's own round trip, directly and through PgBouncer; and the token gets the
# right answer, at once and later. The clients are those of examples/commit-token
# and, for the other shapes that a commit can have, those of test/clients.
#
# "Exactly" is asked of the WAL: pg_walinspect has the end of the commit record
# of the transaction that wrote a row.

use strict;
use warnings;

use FindBin;
use PostgreSQL::Test::Utils;
use RpinPooler;
use RpinTest;
use Test::More;

my $examples = "$FindBin::Bin/../../examples/commit-token";
my $clients = "$FindBin::Bin/../clients";
my $python = '/usr/bin/python3';
my $place = PostgreSQL::Test::Utils::tempdir_short();
my $next_note = 1;

# The setting is on for app and crowd, by ALTER ROLE; the examples, as plain, set
# it themselves, for their transaction.
my ($primary, $r1, $r2) = cluster(replicas => 2);
my $asked = session($primary);
my $begin = flushed_lsn($asked);
ask($asked, <<'END');
CREATE EXTENSION pg_walinspect;
CREATE ROLE app LOGIN;
CREATE ROLE crowd LOGIN;
CREATE ROLE plain LOGIN;
CREATE ROLE late LOGIN;
GRANT ALL ON note TO app, crowd, plain, late;
ALTER ROLE app SET replica_pin.report_commit_token = on;
ALTER ROLE crowd SET replica_pin.report_commit_token = on;
END

# Text is text to psycopg 3 only if its encoding is known.
$ENV{PGCLIENTENCODING} = 'UTF8';
# What this machine trusts, besides what node-postgres' installer brings along.
$ENV{NODE_EXTRA_CA_CERTS} //= '/etc/ssl/certs/ca-certificates.crt';

# --- PgBouncer ------------------------------------------------------------------

# One database under two names, one for each way of pooling.
my $server = 'host=' . $primary->host . ' port=' . $primary->port . ' dbname=postgres';
my $pooler_port = start_pooler(
	$place,
	[ "transaction = $server pool_mode=transaction pool_size=2", "session = $server pool_mode=session" ],
	trusted($place, qw(app crowd plain late)));

# Each way of a client to the primary, as its environment.
my %direct = (PGHOST => $primary->host, PGPORT => $primary->port, PGDATABASE => 'postgres');
my %pooled = (PGHOST => $place, PGPORT => $pooler_port);
my @ways = (
	[ 'directly', %direct ],
	[ 'PgBouncer, session mode', %pooled, PGDATABASE => 'session' ],
	[ 'PgBouncer, transaction mode', %pooled, PGDATABASE => 'transaction' ]);
my %transaction_mode = (%pooled, PGDATABASE => 'transaction');

# --- the clients ----------------------------------------------------------------

# What a client prints.
sub run_client
{
	my ($environment, @command) = @_;
	local %ENV = (%ENV, %$environment);
	my ($output, $errors) = run_command(\@command);
	note("$command[0] $command[1]: $errors") if $errors;
	return $output;
}

# The token of one commit, or "none"; nothing if the client fails.
sub pushed
{
	my ($user, $environment, $shape) = @_;
	my $output = run_client({ %$environment, PGUSER => $user },
		$python, "$clients/shapes.py", $next_note++, $shape);
	return (split ' ', $output)[2];
}

sub compile_example
{
	my ($include, $library) = map { (run_command([ 'pg_config', $_ ]))[0] } '--includedir', '--libdir';
	my ($output, $errors) = run_command([ qw(gcc -Wall -Wextra -Werror -o), "$place/libpq",
			"$examples/libpq.c", "-I$include", "-L$library", '-lpq' ]);
	is($errors, '', 'the C example compiles');
	return [ 'libpq', "$place/libpq" ];
}

# Into a folder with a package.json, so that npm looks no further up.
sub install_node_postgres
{
	mkdir "$place/node";
	append_to_file("$place/node/package.json", '{}');
	my ($output, $errors) = run_command(
		[ qw(npm install --no-audit --no-fund --ignore-scripts --prefix), "$place/node", 'pg@8' ]);
	$ENV{NODE_PATH} = "$place/node/node_modules";
	ok(-d "$ENV{NODE_PATH}/pg", 'npm installs the package pg')
	  or diag("the examples for node-postgres fail: $output$errors");
	return [ 'node-postgres', 'node', "$examples/node_postgres.js" ];
}

my @examples = (
	compile_example(),
	[ 'psycopg2', $python, "$examples/psycopg2_example.py" ],
	[ 'psycopg 3', $python, "$examples/psycopg3_example.py" ],
	install_node_postgres());

# --- what is true ---------------------------------------------------------------

# The token of the commit that wrote each note, by its id.
sub commit_tokens
{
	my (@notes) = @_;
	my $end = flushed_lsn($asked);
	my $notes = join ', ', @notes;
	my $prefix = substr ask($asked, 'SELECT replica_pin.current_token()'), 0, 26;
	my @commits = rows($asked, <<"END");
SELECT id, end_lsn
FROM note JOIN pg_get_wal_records_info('$begin', '$end') ON xid = xmin
WHERE id IN ($notes) AND resource_manager = 'Transaction' AND record_type LIKE 'COMMIT%'
END
	return map { $_->{id} => $prefix . sprintf('%08X%08X', map { hex } split m!/!, $_->{end_lsn}) } @commits;
}

sub insert_lsn { return ask($asked, 'SELECT pg_current_wal_insert_lsn()') }

sub answer_becomes
{
	my ($token, $reason, $names, $name) = @_;
	my $decision;
	poll_until(sub { $decision = route_token($asked, $token); $decision->{reason} eq $reason }, 10);
	is_deeply([ @$decision{qw(reason required)}, names($decision) ], [ $reason, $token, $names ], $name);
	return;
}

# --- the examples ---------------------------------------------------------------

my %token;    # by the name of its test

ok(poll_until(sub { pushed('app', \%transaction_mode, 'nothing') }), 'PgBouncer is up');

pause_replay($r1);
for my $example (@examples)
{
	for my $way (@ways)
	{
		my ($path, %environment) = @$way;
		my ($client, @command) = @$example;
		run_example("$client, $path", \%environment, @command);
	}
}

sub run_example
{
	my ($name, $environment, @command) = @_;
	my $id = $next_note++;
	my $before = insert_lsn();
	my $output = run_client({ %$environment, PGUSER => 'plain' }, @command, $id);
	my $after = insert_lsn();
	my ($token, $first, $carried) =
	  $output =~ /^token (\S{42})\nread on (.*)\nno new token, carry (\S+)$/;

	$token //= "none: $output";
	is($token, {commit_tokens($id)}->{$id}, "$name: the token is that of the commit");
	is(ask($asked, "SELECT lsn > '$before' AND lsn <= '$after' FROM replica_pin.token_lsn('$token') lsn"),
		't', "$name: it lies between before and after");
	like($first // '', qr/^(r2, replica_caught_up|primary, replicas_behind)$/,
		"$name: the answer at once is not the replica that is behind");
	is($carried, $token, "$name: a commit that wrote nothing leaves it");
	$token{$name} = $token;
	return;
}

answer_becomes($token{$_}, 'replica_caught_up', 'r2', "$_: the replica that has caught up") for sort keys %token;
resume_replay($r1);
answer_becomes($token{$_}, 'in_sync', 'r1 r2', "$_: in sync later") for sort keys %token;

# --- the shapes of a commit -----------------------------------------------------

my @shapes = qw(simple statements block chain extended pipeline pipeline_block copy procedure);

for my $way (@ways)
{
	my ($path, %environment) = @$way;
	# PgBouncer of Debian 12 cannot carry a prepared statement to another server.
	my @prepared = $environment{PGDATABASE} eq 'transaction' ? () : ('prepared') x 2;
	my @tried = (@shapes, @prepared);
	my %shape = map { $next_note++ => $_ } @tried;
	my @notes = sort { $a <=> $b } keys %shape;
	my $output = run_client({ %environment, PGUSER => 'app' },
		$python, "$clients/shapes.py", $notes[0], @tried, qw(nothing rolled_back simple));
	my $last = $next_note + 2;
	my %pushed = map { (split)[ 1, 2 ] } split /\n/, $output;
	my %true = commit_tokens(@notes, $last);

	is($pushed{$_}, $true{$_}, "$shape{$_}, $path: the token is that of the commit") for @notes;
	is($pushed{ $next_note++ }, 'none', "wrote nothing, $path: no token");
	is($pushed{ $next_note++ }, 'none', "rolled back, $path: no token");
	is($pushed{ $next_note++ }, $true{$last}, "$path: the next commit has its own");
}

# --- many clients on two server connections -------------------------------------

{
	my ($many, $rounds) = (8, 60);
	my $first = $next_note;
	$next_note += $many * $rounds;
	my $output = run_client({ %transaction_mode, PGUSER => 'crowd' },
		$python, "$clients/storm.py", $first, $many, $rounds);
	my %true = commit_tokens($first .. $next_note - 1);
	my @lines = split /\n/, $output;
	my %pushed = map { split } grep { !/unasked/ } @lines;

	is(scalar keys %true, $many * $rounds, 'every client wrote its rows');
	is_deeply(\%pushed, \%true, 'each had the token of its own commit, and no other');
	is(scalar(grep { /unasked/ } @lines), 0, 'none came to who wrote nothing');
	is(ask($asked, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'crowd'"), 2,
		'through two server connections');
}

# --- where the setting may come from --------------------------------------------

is(pushed('plain', \%direct, 'simple'), 'none', 'without the setting: no token');
is(pushed('late', \%transaction_mode, 'simple'), 'none', 'nor through the pooler');
ask($asked, 'ALTER DATABASE postgres SET replica_pin.report_commit_token = on');
is(pushed('late', \%transaction_mode, 'simple'), 'none', 'ALTER DATABASE: not on server connections of before');
ask($asked, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = 'late'");
like(pushed('late', \%transaction_mode, 'simple'), qr/^\S{42}$/, '... but on new ones');

done_testing();
