# The examples of token mode, each on real servers: a replica that has the write,
# one that is behind, none that has it; and across a real promotion, where the old
# token is renewed once and good from then on.

use strict;
use warnings;

use FindBin;
use PostgreSQL::Test::Utils;
use RpinTest;
use Test::More;

my $examples = "$FindBin::RealBin/../../examples/token-mode";
my $place = PostgreSQL::Test::Utils::tempdir_short();
my $next_note = 1;

# r2 follows r1, so that a promotion of r1 leaves a primary and a replica.
my $primary = new_primary('primary', "listen_addresses = '127.0.0.1'\n");
my ($r1) = new_replicas($primary, 'r1');
my ($r2, $r3) = new_replicas($r1, 'r2', 'r3');

$ENV{PGCLIENTENCODING} = 'UTF8';
$ENV{PGUSER} = getpwuid($>);
$ENV{PYTHONDONTWRITEBYTECODE} = 1;
# What this machine trusts, besides what node-postgres' installer brings along.
$ENV{NODE_EXTRA_CA_CERTS} //= '/etc/ssl/certs/ca-certificates.crt';

# --- the clients -----------------------------------------------------------------

sub libpq_address { return 'host=' . $_[0]->host . ' port=' . $_[0]->port . ' dbname=postgres' }
sub node_address { return $_[0]->host . ' ' . $_[0]->port }

sub jdbc_address
{
	return 'jdbc:postgresql://127.0.0.1:' . $_[0]->port . "/postgres?user=$ENV{PGUSER}";
}

# The test fails, and says what is missing, if a tool is not there.
sub build
{
	my ($what, $product, @command) = @_;
	my ($output, $errors) = eval { run_command([@command]) };
	ok(-e $product, $what) or diag("@command: " . ($@ || "$output$errors"));
	return $product;
}

sub compile_libpq
{
	my ($include, $library) = map { (run_command([ 'pg_config', $_ ]))[0] } '--includedir', '--libdir';
	return build('the C example compiles', "$place/libpq", qw(gcc -Wall -Wextra -Werror -o), "$place/libpq",
		"$examples/libpq.c", "-I$include", "-L$library", '-lpq');
}

# Debian's Go libraries are sources in GOPATH.
sub compile_pgx
{
	local @ENV{qw(GO111MODULE GOPATH GOCACHE)} = ('off', '/usr/share/gocode', "$place/go");
	return build('the Go example compiles (golang-go, golang-github-jackc-pgx-v4-dev)', "$place/pgx",
		qw(go build -o), "$place/pgx", "$examples/pgx_example.go");
}

# Into a folder with a package.json, so that npm looks no further up.
sub install_node_postgres
{
	mkdir "$place/node";
	append_to_file("$place/node/package.json", '{}');
	$ENV{NODE_PATH} = "$place/node/node_modules";
	build('npm installs the package pg', "$ENV{NODE_PATH}/pg",
		qw(npm install --no-audit --no-fund --ignore-scripts --prefix), "$place/node", 'pg@8');
	return "$examples/node_postgres.js";
}

my $jdbc = '/usr/share/java/postgresql.jar';
ok(-e $jdbc, "pgjdbc is there (libpostgresql-jdbc-java, default-jdk-headless)");
my $node = install_node_postgres();

# name, how it writes an address, the command, what reading is called
my @clients = (
	[ 'libpq', \&libpq_address, [ compile_libpq() ] ],
	[ 'psycopg 3', \&libpq_address, [ '/usr/bin/python3', "$examples/psycopg3_example.py" ] ],
	[ 'psycopg2', \&libpq_address, [ '/usr/bin/python3', "$examples/psycopg2_example.py" ] ],
	[ 'node-postgres', \&node_address, [ 'node', $node ] ],
	[ 'node-postgres, with parameters', \&node_address, [ 'node', $node ], 'read_parameters' ],
	[ 'pgjdbc', \&jdbc_address, [ 'java', '-XX:TieredStopAtLevel=1', '-cp', $jdbc, "$examples/TokenMode.java" ] ],
	[ 'pgx', \&libpq_address, [ compile_pgx() ] ]);

sub output_of
{
	my (@command) = @_;
	my ($output, $errors) = eval { run_command([@command]) };
	diag("@command: " . ($@ || $errors)) if !defined $output || $output eq '';
	return $output // '';
}

# The token of a new note.
sub write_note
{
	my ($client, $where) = @_;
	return output_of(@{ $client->[2] }, 'write', $client->[1]->($where), $next_note++);
}

# "where rows token"
sub read_note
{
	my ($client, $token, $note, @nodes) = @_;
	return output_of(@{ $client->[2] }, $client->[3] // 'read', $token, $note,
		map { $client->[1]->($_) } @nodes);
}

# --- a failover ahead ---------------------------------------------------------------

my $token_format = qr/^[0-9A-F]{16}-00000001-[0-9A-F]{16}$/;
my %kept;

for my $client (@clients)
{
	my $name = $client->[0];
	my $token = write_note($client, $primary);
	my $note = $next_note - 1;
	like($token, $token_format, "$name: the write has a token");
	wait_for_replay($primary, $r1, $r2, $r3);
	is(read_note($client, $token, $note, $primary, $r2, $r3), "r1 1 $token", '... which a replica that has it serves');

	pause_replay($r2);
	$token = write_note($client, $primary);
	wait_for_replay($primary, $r1, $r3);
	is(read_note($client, $token, ++$note, $primary, $r2, $r3), "r2 1 $token", '... a replica that is behind passes on to the next');
	is(read_note($client, $token, $note, $primary, $r2), "primary 1 $token", '... and then to the primary; the token stays');
	resume_replay($r2);
	wait_for_replay($primary, $r2);
	$kept{$name} = [ $token, $note ];
}

# --- and behind -----------------------------------------------------------------------

# One write that no replica receives.
configure($r1, primary_conninfo => '');
poll_until(sub { ask($primary, 'SELECT count(*) FROM pg_stat_replication') == 0 }) or die 'r1 still follows';
my $lost = write_note($clients[0], $primary);
$primary->stop('immediate');
is(read_note($clients[0], @{ $kept{libpq} }, $primary, $r2), "r1 1 $kept{libpq}[0]", 'with the primary gone, reads go on');

$r1->promote;
watch($r1, $r2, $r3);
poll_until(sub { route_token($r1, $kept{libpq}[0])->{reason} eq 'in_sync' }) or die 'the new primary does not know its replicas';

for my $client (@clients)
{
	my $name = $client->[0];
	my ($token, $note) = @{ $kept{$name} };
	like(error_of($r2, "CALL replica_pin.require('$token')"), qr/^RP002/, "$name: its old token is RP002 on a replica");

	my $answer = read_note($client, $token, $note, $r1, $r2, $r3);
	like($answer, qr/^r1 1 [0-9A-F]{16}-00000002-[0-9A-F]{16}$/, '... renewed by the new primary, the replica serves it');
	my $renewed = (split ' ', $answer)[2] // '';
	is(substr($renewed, 26), substr($token, 26), '... at the same position');

	my $asked = ask($r1, 'SELECT sum(enforced) FROM replica_pin.stat_decisions');
	is(read_note($client, $renewed, $note, $r1, $r2, $r3), "r1 1 $renewed", '... it is good from then on');
	is(ask($r1, 'SELECT sum(enforced) FROM replica_pin.stat_decisions'), $asked, '... without asking the primary');

	$answer = read_note($client, $lost, $note, $r1, $r2, $r3);
	like($answer, qr/^(r\d|primary) 1 [0-9A-F]{16}-00000002-[0-9A-F]{16}$/, '... and a token of a write that was lost begins anew');
}

# --- another cluster -------------------------------------------------------------------

# A cluster with a system identifier of its own, and a note of the same id.
{
	my $other = new_primary('other', "listen_addresses = '127.0.0.1'\n");
	my ($of_other) = new_replicas($other, 'of_other');
	watch($other, $of_other);
	ask($other, 'INSERT INTO note VALUES (1)');
	my $token = $kept{libpq}[0];
	like(error_of($of_other, "CALL replica_pin.require('$token')"), qr/^RP002/, 'a token of another cluster is RP002');
	is(route_token($other, $token)->{reason}, 'wrong_cluster', '... nobody there can ever have it');
	my $answer = read_note($clients[0], $token, 1, $other, $of_other);
	my $identifier = ask($other, 'SELECT upper(lpad(to_hex(system_identifier), 16, $$0$$)) FROM pg_control_system()');
	like($answer, qr/^(r1|primary) 1 $identifier-/, '... the client begins anew with a token of this one');
}

done_testing();
