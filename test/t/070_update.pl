# Updates of the extension: from its first version to this one, and through
# versions that are made up here, where the library and the SQL do not agree, in
# a cluster at work.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use RpinCatalog;
use RpinTest;
use Test::More;

my ($primary, $replica) = cluster(replicas => 1);

# --- from version 1.0 ---------------------------------------------------------

$primary->safe_psql('postgres', "CREATE DATABASE $_ TEMPLATE template0") for qw(fresh updated);
$primary->safe_psql('fresh', 'CREATE EXTENSION replica_pin');
$primary->safe_psql('updated', "CREATE EXTENSION replica_pin VERSION '1.0'");
$primary->safe_psql('updated', 'ALTER EXTENSION replica_pin UPDATE');
is(described($primary, 'updated'), described($primary, 'fresh'),
	'version 1.0, updated, is what is created now');

# --- versions that are made up ------------------------------------------------

my ($sharedir) = run_command([ $ENV{RPIN_PG_CONFIG}, '--sharedir' ]);
my $script = slurp_file((glob "$sharedir/extension/replica_pin--?.?.sql")[-1]);
my $version = installed();
my @offered;

sub installed { return ask($primary, "SELECT extversion FROM pg_extension WHERE extname = 'replica_pin'") }

# A step that ALTER EXTENSION can take from now on.
sub offer
{
	my ($from, $to, $sql) = @_;
	my $file = "$sharedir/extension/replica_pin--$from--$to.sql";
	push @offered, $file;
	append_to_file($file, $sql);
	return;
}

END { unlink @offered }

# Another declaration of a function that returns a row.
sub declared_anew
{
	my ($function, $from, $to) = @_;
	my ($sql) = $script =~ /^(CREATE FUNCTION replica_pin\.\Q$function\E\(.*?;)/ms;
	$sql =~ s/$from/$to/ or die "there is no $from in $function";
	return "DROP FUNCTION replica_pin.$function();\n$sql\n";
}

# The sampler's prepared question is void after each step: it asks anew.
sub works_on
{
	my ($title) = @_;
	pin($primary, $title);
	ok(poll_until(sub { route($primary, $title)->{reason} eq 'in_sync' }), "$title: the replica is named")
	  or diag(explain(replica_state($primary, 'r1')));
	return;
}

offer($version, 'later.1',
	q{CREATE FUNCTION replica_pin.later() RETURNS text AS 'MODULE_PATHNAME', 'rpin_later' LANGUAGE C;});
like(error_of($primary, "ALTER EXTENSION replica_pin UPDATE TO 'later.1'"),
	qr/^42883: could not find function "rpin_later" in file ".*replica_pin/,
	'SQL that needs a newer library is refused, and says what is missing');
is(installed(), $version, 'and the version stays');
works_on('refused');

offer($version, 'later.2', declared_anew('node_status', 'OUT node_id text', 'OUT node_id text, OUT later integer'));
ask($primary, "ALTER EXTENSION replica_pin UPDATE TO 'later.2'");
is(installed(), 'later.2', 'SQL with a column more than the library fills');
works_on('a column more');
for my $node ($primary, $replica)
{
	wait_for_replay($primary, $replica);
	is(ask($node, 'SELECT later IS NULL AND node_id IS NOT NULL FROM replica_pin.node_status()'), 't',
		$node->name . ' leaves it NULL');
}

offer('later.2', 'earlier.1', join '', "DROP VIEW replica_pin.status;\n",
	declared_anew('node_status', qr/,\s*OUT started_at timestamp with time zone/, ''),
	declared_anew('status_row', qr/,\s*OUT shared_memory_bytes bigint/, ''),
	'CREATE VIEW replica_pin.status AS SELECT * FROM replica_pin.status_row();');
ask($primary, "ALTER EXTENSION replica_pin UPDATE TO 'earlier.1'");
is(installed(), 'earlier.1', 'SQL with columns less than the library fills');
works_on('columns less');
is(row($primary, 'SELECT * FROM replica_pin.status')->{sampler_pid}, sampler_pid($primary), 'the view has the rest');
wait_for_replay($primary, $replica);
my $row = row($replica, 'SELECT * FROM replica_pin.node_status()');
ok($row->{node_id} && !exists $row->{started_at}, 'and so has the function, on the replica');

unlike(slurp_file($_->logfile), qr/PANIC|terminated by signal/, $_->name . ' has lost no process')
  for $primary, $replica;

done_testing();
