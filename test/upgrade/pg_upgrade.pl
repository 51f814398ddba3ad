# pg_upgrade of a cluster that uses the extension and preloads its library: what
# is in the catalogs comes along, no position does, and the new cluster works.

use strict;
use warnings;

use File::Basename qw(dirname);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RpinCatalog;
use RpinTest;
use Test::More;

my $preload = "shared_preload_libraries = 'replica_pin'";
my @initdb = ('--encoding', 'UTF8', '--no-locale', '--data-checksums');

sub cluster_of
{
	my ($name, @options) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name, @options);
	$node->init(allows_streaming => 1, extra => \@initdb);
	$node->append_conf('postgresql.conf', $preload);
	return $node;
}

# Between versions, view definitions differ in form and owners in what they may.
sub comparable
{
	return described(@_) =~ s/\b\w+_rows?\.(?=\w+[,\n]| AS)//gr =~ s/=arwdDxtm?\//=all\//gr;
}

# --- the old cluster ------------------------------------------------------------

my $old = cluster_of('old', install_path => dirname($ENV{RPIN_OLD_BIN}));
$old->start;
$old->safe_psql('postgres', <<'EOF');
CREATE EXTENSION replica_pin;
CREATE TABLE note (id integer PRIMARY KEY, body text NOT NULL DEFAULT '');
CREATE TRIGGER pin AFTER INSERT OR UPDATE OR DELETE ON note FOR EACH ROW
  EXECUTE FUNCTION replica_pin.pin_row('note', 'id');
CREATE VIEW behind AS SELECT name FROM replica_pin.replicas WHERE NOT eligible;
CREATE ROLE app LOGIN;
ALTER ROLE app SET replica_pin.report_commit_token = on;
ALTER DATABASE postgres SET replica_pin.session_key = 'everything';
REVOKE EXECUTE ON FUNCTION replica_pin.pin(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION replica_pin.pin(text) TO app;
INSERT INTO note VALUES (1);
EOF
my $before = comparable($old, 'postgres');
my $token = ask($old, 'SELECT replica_pin.current_token()');
like(ask($old, 'SHOW server_version_num'), qr/^15/, 'from PostgreSQL 15') if $ENV{RPIN_OLD_BIN} =~ m!/15/!;
$old->stop;

# --- the upgrade ------------------------------------------------------------------

my $new = cluster_of('new');
my @upgrade = ('pg_upgrade', '--no-sync',
	'--old-datadir', $old->data_dir, '--new-datadir', $new->data_dir,
	'--old-bindir', $ENV{RPIN_OLD_BIN}, '--new-bindir', $new->config_data('--bindir'),
	'--socketdir', $new->host, '--old-port', $old->port, '--new-port', $new->port);

chdir PostgreSQL::Test::Utils::tempdir() or die;
$new->command_ok([ @upgrade, '--check' ], 'pg_upgrade finds nothing that is in its way');
$new->command_ok(\@upgrade, 'pg_upgrade');
$new->start;

# --- what came along ----------------------------------------------------------------

isnt(ask($new, 'SHOW server_version_num') =~ s/....$//r, '15', 'the server is another version');
is(comparable($new, 'postgres'), $before, 'the same functions, views, privileges and comments');
is(ask($new, 'SELECT count(*) FROM behind'), 0, 'a view of the user');
is($new->safe_psql('postgres', 'SHOW replica_pin.report_commit_token', extra_params => [ '-U', 'app' ]),
	'on', 'a setting of a role');
is(ask($new, 'SHOW replica_pin.session_key'), 'everything', 'a setting of a database');
is(route_token($new, $token)->{reason}, 'wrong_cluster', 'a token of the old cluster means nothing here');

# --- and it works -------------------------------------------------------------------

my ($replica) = new_replicas($new, 'r1');
watch($new, $replica);
pause_replay($replica);
add_note($new, 2);
is_deeply([ map { is_pinned($new, $_) } qw(note:2 everything) ], [ 1, 1 ], 'a write pins its row and its setting');
resume_replay($replica);
ok(poll_until(sub { route($new, 'note:2')->{reason} eq 'in_sync' }), 'and lets go when it is replayed');
is(has_note($replica, 2), 1, 'where the row is');

done_testing();
