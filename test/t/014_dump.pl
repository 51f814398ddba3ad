# The extension in the life of a database: dumped and restored, dropped and
# created again under the sampler's eyes, in databases of any encoding, with keys
# of any size.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use RpinCatalog;
use RpinMore qw(value sqlstate);
use RpinTest;
use Test::More;

my ($primary, $replica) = cluster(replicas => 1);

# --- dump and restore -----------------------------------------------------------

$primary->safe_psql('postgres', 'CREATE ROLE app; CREATE ROLE watcher');
$primary->safe_psql('postgres', "CREATE DATABASE $_ TEMPLATE template0") for qw(fresh dumped plain custom);
$primary->safe_psql($_, 'CREATE EXTENSION replica_pin') for qw(fresh dumped);
$primary->safe_psql('dumped', <<'END');
REVOKE EXECUTE ON FUNCTION replica_pin.pin(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION replica_pin.pin(text) TO app;
GRANT EXECUTE ON FUNCTION replica_pin.replica_rows() TO watcher;
GRANT SELECT ON replica_pin.replicas TO watcher;
REVOKE SELECT ON replica_pin.status FROM pg_monitor;
END

my $fresh = described($primary, 'fresh');
my $dumped = described($primary, 'dumped');
like($fresh, qr/^replica_pin schema \{[^}]*=U\/[^}]*\} \S/m, 'everybody may use the schema, and it has a comment');
like($fresh, qr/^replica_pin\.status relation \S+ \{[^}]*pg_monitor=r/m, 'pg_monitor may read the views');
unlike($dumped, qr/^replica_pin\.status relation \S+ \{[^}]*pg_monitor=r/m, 'in the database to dump it may not');

my $file = PostgreSQL::Test::Utils::tempdir() . '/dump';
$primary->command_ok([ 'pg_dump', '--file', "$file.sql", 'dumped' ], 'dump, plain');
$primary->command_ok([ 'pg_dump', '--format', 'custom', '--file', $file, 'dumped' ], 'dump, custom');
$primary->command_ok([ 'psql', '-X', '--quiet', '--set', 'ON_ERROR_STOP=1', '--file', "$file.sql", 'plain' ], 'restore, plain');
$primary->command_ok([ 'pg_restore', '--exit-on-error', '--dbname', 'custom', $file ], 'restore, custom');
for my $name (qw(plain custom))
{
	is(described($primary, $name), $dumped, "$name: the same functions, views, privileges and comments");
	is($primary->safe_psql($name, "SELECT replica_pin.is_pinned('k')"), 'f', "$name: the restored database can ask");
}

# --- DROP and CREATE, while the sampler samples ------------------------------------

# The sampler asks in "postgres"; we ask in "fresh".
my $asked = RpinMore->connect($primary, database => 'fresh');
my $reason = "SELECT reason FROM replica_pin.route('k')";

sub state_of
{
	return value($asked->query('SELECT state FROM replica_pin.replicas')) eq $_[0];
}

for my $round (1, 2)
{
	my $functions = described($primary, 'postgres');
	$primary->safe_psql('postgres', 'DROP EXTENSION replica_pin');
	ok(poll_until(sub { state_of('extension_missing') }), "round $round: dropped, the replica lacks the extension");
	is(value($asked->query($reason)), 'samples_stale', 'and is not believed any more');
	is($primary->safe_psql('postgres', "SELECT count(*) FROM pg_namespace WHERE nspname = 'replica_pin'"), 0,
		'nothing of it is left');

	$primary->safe_psql('postgres', 'CREATE EXTENSION replica_pin');
	ok(poll_until(sub { state_of('sampled') }), 'created again, it is sampled again');
	ok(poll_until(sub { value($asked->query($reason)) eq 'in_sync' }), 'and named');
	is(described($primary, 'postgres'), $functions, 'everything is as before');
}
is(value($asked->query("SELECT last_error IS NULL FROM replica_pin.replicas")), 't', 'no error is left');

# --- encodings ---------------------------------------------------------------------

# Bytes that are text in one encoding and not in another.
my %key = (
	UTF8 => "na\xc3\xafve \xe7\x94\xa8\xe6\x88\xb7",
	LATIN1 => "caf\xe9",
	SQL_ASCII => "\xff\xfe\x80",
	EUC_JP => "\xc6\xfc\xcb\xdc");
my %client;
for my $encoding (sort keys %key)
{
	my $name = 'in_' . lc $encoding;
	$primary->safe_psql('postgres', "CREATE DATABASE $name ENCODING '$encoding' LOCALE 'C' TEMPLATE template0");
	$primary->safe_psql($name, 'CREATE EXTENSION replica_pin');
	$client{$encoding} = RpinMore->connect($primary, database => $name, client_encoding => $encoding);
}

sub array_of { return '{' . join(',', map { s/([\\"])/\\$1/gr =~ s/(.*)/"$1"/sr } @_) . '}' }
sub token_pattern { return qr/^[0-9A-F]{16}-[0-9A-F]{8}-[0-9A-F]{16}$/ }

# What every call says of a key: t or f, reason.
sub verdicts
{
	my ($client, $key) = @_;
	return map { value($_) } (
		$client->call('SELECT replica_pin.is_pinned($1)', $key),
		$client->call('SELECT reason FROM replica_pin.route($1)', $key),
		$client->call('SELECT replica_pin.is_any_pinned($1)', array_of('free', $key)),
		$client->call('SELECT reason FROM replica_pin.route_all($1)', array_of('free', $key)));
}
my @pinned = qw(t replicas_behind t replicas_behind);
my @free = qw(f in_sync f in_sync);

wait_for_replay($primary, $replica);
poll_until(sub { state_of('sampled') }) or die 'the replica is not sampled';
pause_replay($replica);
add_note($primary, 1);

for my $encoding (sort keys %key)
{
	my ($client, $key) = ($client{$encoding}, $key{$encoding});
	my $text = value($client->call('SELECT octet_length($1::text)', $key));

	is($text, length $key, "$encoding: the key is not converted");
	is_deeply([ verdicts($client, $key) ], \@free, "$encoding: a key that nobody pinned is free");
	like(value($client->call('SELECT replica_pin.pin($1)', $key)), token_pattern(), "$encoding: pin");
	is_deeply([ verdicts($client, $key) ], \@pinned, "$encoding: the key is pinned");
	is_deeply([ verdicts($client, "$key$key") ], \@free, "$encoding: its double is not");
	like(value($client->call('SELECT replica_pin.pin_all($1)', array_of("$key$key"))), token_pattern(), "$encoding: pin_all");
	is_deeply([ verdicts($client, "$key$key") ], \@pinned, "$encoding: its double is pinned too");
}

# Keys are of the whole server: the same bytes are the same key in any database.
is_deeply([ verdicts($client{SQL_ASCII}, $key{$_}) ], \@pinned, "the key of $_ is pinned for another database")
  for sort keys %key;

# --- sizes ---------------------------------------------------------------------------

my $client = $client{UTF8};
for my $size (1, 10_000, 1_048_576)
{
	my $key = ('x' x ($size - 1)) . 'a';
	my $like = ('x' x ($size - 1)) . 'b';

	is_deeply([ verdicts($client, $key) ], \@free, "$size bytes: free");
	like(value($client->call('SELECT replica_pin.pin($1)', $key)), token_pattern(), "$size bytes: pin");
	is_deeply([ verdicts($client, $key) ], \@pinned, "$size bytes: pinned");
	is_deeply([ verdicts($client, $like) ], \@free, "$size bytes: another last byte is another key");
	is(sqlstate($client->call('SELECT replica_pin.pin_all($1)', array_of($like, $key))), '', "$size bytes: pin_all");
	is_deeply([ verdicts($client, $like) ], \@pinned, "$size bytes: pinned");
	is(sqlstate($client->call('SELECT replica_pin.pin($1, replica_pin.current_token())', $like)), '', "$size bytes: pin with a token");
}

# A key that is compressed in a table, or stored outside of it, is the same key.
$client->query('CREATE TABLE stored (key text, outside text)');
$client->query('ALTER TABLE stored ALTER outside SET STORAGE EXTERNAL');
$client->query(q{INSERT INTO stored SELECT key, key FROM repeat('toast', 100000) key});
is(value($client->query('SELECT pg_column_size(key) < 100000 AND pg_column_size(outside) = 500000 FROM stored')),
	't', 'one is compressed, one is stored outside');
is_deeply($client->query('SELECT replica_pin.is_pinned(key), replica_pin.is_pinned(outside) FROM stored')->{rows},
	[ [qw(f f)] ], 'stored keys that nobody pinned');
is(sqlstate($client->call('SELECT replica_pin.pin($1)', 'toast' x 100000)), '', 'pinned as a parameter');
is_deeply($client->query('SELECT replica_pin.is_pinned(key), replica_pin.is_pinned(outside) FROM stored')->{rows},
	[ [qw(t t)] ], 'stored keys are pinned');

# No key is no demand, and cannot be pinned.
my $token = value($client->query('SELECT replica_pin.current_token()'));
for (
	[ 'NULL', 'NULL', '22004' ],
	[ 'empty', "''", '22023' ])
{
	my ($name, $sql, $state) = @$_;
	is(value($client->query("SELECT replica_pin.is_pinned($sql)")), 't', "$name: is_pinned");
	is(value($client->query("SELECT reason FROM replica_pin.route($sql)")), 'no_session_key', "$name: route");
	is(value($client->query("SELECT replica_pin.is_any_pinned($_)")), 't', "$name: is_any_pinned($_)")
	  for "ARRAY['x', $sql]", $sql eq 'NULL' ? 'NULL' : "'{}'";
	is(value($client->query("SELECT reason FROM replica_pin.route_all($_)")), 'no_session_key', "$name: route_all($_)")
	  for "ARRAY['x', $sql]", $sql eq 'NULL' ? 'NULL' : "'{}'";
	is(sqlstate($client->query("SELECT replica_pin.$_")), $state, "$name: $_ is refused")
	  for "pin($sql)", "pin($sql, '$token')", "pin_all(ARRAY['new', $sql])";
	is_deeply([ verdicts($client, 'new') ], \@free, "$name: and nothing was pinned");
}

resume_replay($replica);
ok(poll_until(sub { join(' ', verdicts($client, $key{UTF8})) eq "@free" }), 'all lets go');
is_deeply([ verdicts($client{$_}, $key{$_}) ], \@free, "also in $_") for sort keys %key;
done_testing();
