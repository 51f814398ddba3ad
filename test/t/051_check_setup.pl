# check_setup(): each thing that it finds, provoked on a real cluster, and
# nothing on a good one. What it finds in settings of roles and databases, and
# unkeyed commits, is in sql/55_diagnosis.

use strict;
use warnings;

use JSON::PP;
use PostgreSQL::Test::Utils;
use RpinFake qw(fake_postgres dead_port);
use RpinTest;
use Test::More;

my $passfile = PostgreSQL::Test::Utils::tempdir . '/sampler.pass';
append_to_file($passfile, "*:*:*:sampler:none\n");
chmod 0600, $passfile;
my $conninfo = "user=sampler dbname=postgres passfile='$passfile'";

# Short times, so that a state is reached soon.
my $primary = new_primary('primary', <<"END");
listen_addresses = '127.0.0.1'
replica_pin.sample_interval = 50ms
replica_pin.sample_timeout = 500ms
replica_pin.sample_lifetime = 2s
replica_pin.max_session_keys = 300
replica_pin.conninfo = '${\($conninfo =~ s/'/''/gr)}'
END
$primary->safe_psql('postgres', 'CREATE ROLE sampler LOGIN');
$primary->safe_psql('template1', 'CREATE DATABASE bare');
my ($r1, $r2) = new_replicas($primary, 'r1', 'r2');
watch($primary, $r1, $r2);
my $asked = session($primary);
my $good_list = replica_list($r1, $r2);

# { "problem subject" => row }
sub findings
{
	my ($where) = @_;
	return map { ("$_->{problem} $_->{subject}" => $_) } rows($where // $asked, 'SELECT * FROM replica_pin.check_setup()');
}

# Waits for a finding, and holds against it what it says.
sub finds
{
	my ($what, $severity, $detail, $hint, $where) = @_;
	my %findings;
	my $found = poll_until(
		sub {
			%findings = findings($where);
			return $findings{$what} && $findings{$what}{detail} =~ $detail;
		});
	ok($found, "finds: $what") or return diag(JSON::PP->new->canonical->encode(\%findings));
	is($findings{$what}{severity}, $severity, "$what: severity");
	like($findings{$what}{hint}, $hint, "$what: hint");
	return;
}

sub is_good
{
	my ($when) = @_;
	my %findings;
	ok(poll_until(sub { %findings = findings(); return !%findings }), "nothing is found: $when")
	  or diag(JSON::PP->new->canonical->encode(\%findings));
	return;
}

# Applies settings, looks, and takes them back.
sub with_settings
{
	my ($settings, @expected) = @_;
	configure($primary, %$settings);
	finds(@$_) for @expected;
	configure($primary,
		'replica_pin.replicas' => $good_list,
		'replica_pin.conninfo' => $conninfo,
		'replica_pin.sample_timeout' => '500ms');
	is_good("after $expected[0][0]");
	return;
}

is_good('a primary with two replicas');

# --- replicas -----------------------------------------------------------------------

my $other = new_primary('other', "listen_addresses = '127.0.0.1'");
$other->safe_psql('postgres', 'CREATE ROLE sampler LOGIN');
my @answer = (1, undef, 't', 'f', 1, undef, '0/3000000');
my $dead = dead_port();
my $mute = fake_postgres();
my $older = fake_postgres(answer => RpinFake::result(8, [ @answer, '0.9' ]));
my $garbage = fake_postgres(answer => RpinFake::result(1, ['x']));
my $starting = fake_postgres(greeting => RpinFake::error('57P03', 'the database system is not accepting connections'));
my $full = fake_postgres(greeting => RpinFake::error('53300', 'sorry, too many clients already'));
my $broken = fake_postgres(answer => RpinFake::error('XX000', 'it broke') . RpinFake::ready());
my $other_port = $other->port;

with_settings(
	{
		'replica_pin.replicas' => "$good_list, dead=127.0.0.1:$dead, mute=127.0.0.1:$mute, older=127.0.0.1:$older,"
		  . " garbage=127.0.0.1:$garbage, starting=127.0.0.1:$starting, full=127.0.0.1:$full,"
		  . " broken=127.0.0.1:$broken, other=127.0.0.1:$other_port, named=localhost:$dead"
	},
	[ 'unreachable dead', 'error', qr/Connection refused/, qr/firewall/ ],
	[ 'timed_out mute', 'error', qr/no answer to the question within 500 ms/, qr/sample_timeout/ ],
	[ 'other_cluster older', 'error', qr/system identifier/, qr/rebuild/ ],
	[ 'library_version older', 'warning', qr/^its library is version 0\.9, that of this server 1\.0$/, qr/same version/ ],
	[ 'nonsense garbage', 'error', qr/could not be understood/, qr/nothing but a PostgreSQL server/ ],
	[ 'starting_up starting', 'error', qr/not accepting connections/, qr/hot_standby = on/ ],
	[ 'refused full', 'error', qr/too many clients/, qr/max_connections/ ],
	[ 'query_failed broken', 'error', qr/it broke/, qr/log of that server/ ],
	[ 'other_cluster other', 'error', qr/system identifier/, qr/rebuild/ ],
	[ 'host_is_a_name named', 'warning', qr/"localhost" has to be resolved/, qr/Write an address/ ]);

with_settings({ 'replica_pin.conninfo' => $conninfo =~ s/=postgres/=bare/r },
	map { [ "extension_missing $_", 'error', qr/./, qr/CREATE EXTENSION replica_pin on the primary/ ] } 'r1', 'r2');
with_settings({ 'replica_pin.conninfo' => $conninfo =~ s/=sampler/=nobody/r },
	[ 'authentication r1', 'error', qr/role "nobody" does not exist/, qr/pg_hba\.conf.*the log there/ ],
	[ 'role_missing nobody', 'error', qr/does not exist/, qr/CREATE ROLE/ ]);
$primary->safe_psql('postgres', 'REVOKE EXECUTE ON FUNCTION replica_pin.node_status() FROM PUBLIC');
finds('no_privilege r1', 'error', qr/may not call node_status/, qr/GRANT USAGE/);
$primary->safe_psql('postgres', 'GRANT EXECUTE ON FUNCTION replica_pin.node_status() TO PUBLIC');
is_good('after no_privilege');

$r1->append_conf('postgresql.conf', 'hot_standby = off');
$r1->stop;
PostgreSQL::Test::Utils::system_log('pg_ctl', '-W', '-D', $r1->data_dir, '-l', $r1->logfile, 'start');
finds('starting_up r1', 'error', qr/not accepting connections/, qr/hot_standby = on/);
PostgreSQL::Test::Utils::system_log('pg_ctl', '-D', $r1->data_dir, '-m', 'fast', 'stop');
$r1->adjust_conf('postgresql.conf', 'hot_standby', undef);
$r1->{_pid} = undef;
$r1->start;
is_good('after hot_standby = off');

# --- replay, and a table that is too small for its lag ------------------------------------

pause_replay($r1);
finds('replay_paused r1', 'warning', qr/replay is paused/, qr/pg_wal_replay_resume/);
add_note($primary, 1);
ask($asked, q{SELECT count(replica_pin.pin('key:' || g)) FROM generate_series(1, 3000) g});
finds('table_too_small replica_pin.max_session_keys', 'warning', qr/^\d+\.\d % of the table/, qr/four times/);
resume_replay($r1);
is_good('after replay went on');

# --- the sampler ------------------------------------------------------------------------

with_settings({ 'replica_pin.sample_timeout' => '60s' },
	[ 'setting_clamped replica_pin.sample_timeout', 'warning', qr/lower value/, qr/raise replica_pin\.sample_lifetime/ ]);
my $sampler = sampler_pid($asked);
freeze($sampler);
finds('sampler_stuck replica_pin sampler', 'error', qr/^process $sampler /, qr/name to be resolved/);
finds('sample_too_old r1', 'error', qr/older than replica_pin\.sample_lifetime/, qr/sampler_heartbeat_age/);
thaw($sampler);
is_good('after the sampler stood still');

# --- its role and its password file -----------------------------------------------------------

sub with_role
{
	my ($change, $back, @expected) = @_;
	$primary->safe_psql('postgres', $change);
	finds(@expected);
	$primary->safe_psql('postgres', $back);
	is_good("after $expected[0]");
	return;
}

with_role('ALTER ROLE sampler SUPERUSER', 'ALTER ROLE sampler NOSUPERUSER',
	'role_is_superuser sampler', 'notice', qr/is a superuser/, qr/LOGIN is all/);
with_role('ALTER ROLE sampler NOLOGIN', 'ALTER ROLE sampler LOGIN',
	'role_cannot_login sampler', 'error', qr/may not log in/, qr/ALTER ROLE/);
with_settings({ 'replica_pin.conninfo' => "dbname=postgres" },
	[ 'no_sampler_role replica_pin.conninfo', 'notice', qr/usually a superuser/, qr/user=sampler/ ]);
with_settings({ 'replica_pin.conninfo' => "user=sampler passfile=/nowhere/pass" },
	[ 'passfile_missing /nowhere/pass', 'warning', qr/No such file/, qr/0600/ ]);
chmod 0640, $passfile;
finds("passfile_open $passfile", 'error', qr/others may read/, qr/chmod 0600/);
chmod 0200, $passfile;
finds("passfile_unreadable $passfile", 'error', qr/Permission denied/, qr/chown/);
chmod 0600, $passfile;
is_good('after the password file was mended');

# --- the server ---------------------------------------------------------------------------------

is_deeply([ grep { $_ !~ /^no_replicas / } keys %{ { findings($r1) } } ], [], 'a replica with the settings of its primary');
with_settings({ 'replica_pin.replicas' => '' },
	[ 'no_replicas replica_pin.replicas', 'error', qr/every decision is the primary/, qr/every replica that readers use/ ]);

with_settings({ 'replica_pin.replicas' => replica_list($r1) },
	[ 'standby_not_listed replica_pin.replicas', 'notice', qr/2 standbys .* the list has 1:/, qr/pg_stat_replication/ ]);

with_settings({ 'replica_pin.replicas' => 'me=127.0.0.1:' . $primary->port },
	[ 'no_replicas replica_pin.replicas', 'error', qr/only this server/, qr/every replica that readers use/ ]);

# A restart for each of these.
sub restarted_with
{
	my ($name, $value, @expected) = @_;
	configure($primary, $name => $value);
	$primary->restart;
	finds(@expected, $primary);
	return;
}
restarted_with('max_worker_processes', 0, 'sampler_not_running replica_pin sampler',
	'error', qr/no sampler is running/, qr/max_worker_processes/);
restarted_with('shared_preload_libraries', '', 'not_preloaded shared_preload_libraries',
	'error', qr/not preloaded/, qr/restart/);

done_testing();
