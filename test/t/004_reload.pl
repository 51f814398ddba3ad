# Settings change while the server runs: what is new counts at once, what did
# not change is not disturbed, and what is wrong changes nothing.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use RpinTest;
use Test::More;

my $primary = new_primary('primary', <<'END');
replica_pin.max_replicas = 4
replica_pin.sample_timeout = 5s
replica_pin.sample_lifetime = 20s
listen_addresses = '127.0.0.1'
END
my ($r1, $r2, $r3) = new_replicas($primary, qw(r1 r2 r3));
my $asked = session($primary);

watch($primary, $r1, $r2);

# The sampler's backends on a replica: "pid" each.
sub samplers
{
	my ($replica, $application) = @_;
	$application //= 'replica_pin sampler';
	return ask($replica, "SELECT pid FROM pg_stat_activity WHERE application_name = '$application'");
}

sub listed
{
	return join ' ', map { "$_->{name}=$_->{host}:$_->{port}" }
	  rows($asked, 'SELECT name, host, port FROM replica_pin.replicas');
}

sub as_listed { return replica_list(@_) =~ s/,//gr; }

sub reload_list
{
	my ($list) = @_;
	return reload_log($primary, 'replica_pin.replicas' => $list);
}

# How the list is read off the board: the sampler has it a moment later.
sub becomes
{
	my ($expected, $test) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(poll_until(sub { listed() eq $expected }), $test) || diag('is ' . listed());
}

sub all_named
{
	my ($expected, $test) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(poll_until(sub { my $d = route($asked, 'k'); $d->{reason} eq 'in_sync' && names($d) eq $expected }),
		$test);
}

my $pid = samplers($r1);
like($pid, qr/^\d+$/, 'one sampler is connected to r1');
my $since = replica_state($asked, 'r1')->{connected_since};

subtest 'the list changes' => sub {
	watch($primary, $r1, $r2, $r3);
	all_named('r1 r2 r3', 'one was added');
	reload_list(replica_list($r3, $r1, $r2));
	all_named('r3 r1 r2', 'the order changed');
	reload_list(replica_list($r1, $r3));
	becomes(as_listed($r1, $r3), 'one was removed');
	all_named('r1 r3', 'and is not waited for');
	ok(poll_until(sub { samplers($r2) eq '' }), 'nor asked any more');
	is(samplers($r1), $pid, 'r1 kept its connection through all of it');
	my $moved = ask($asked, "SELECT abs(extract(epoch FROM connected_since - '$since'))"
		  . " FROM replica_pin.replicas WHERE name = 'r1'");
	cmp_ok($moved, '<', 0.1, 'and the view says so');

	reload_list(replica_list($r1) =~ s/r1/alpha/r . ', ' . replica_list($r3));
	all_named('alpha r3', 'one was renamed');
	is(replica_state($asked, 'r1'), undef, 'the old name is gone');
	isnt(samplers($r1), $pid, 'a new name is a new replica');

	reload_list('r1=127.0.0.1:' . $r1->port);
	becomes('r1=127.0.0.1:' . $r1->port, 'the host changed');
	all_named('r1', 'it is sampled there');
	is(ask($r1, "SELECT client_addr FROM pg_stat_activity WHERE application_name = 'replica_pin sampler'"),
		'127.0.0.1', 'over the new address');
	reload_list($r2->host . ':' . $r2->port);
	all_named($r2->host . ':' . $r2->port, 'without a name it has that of its address');
};

subtest 'a new replica counts from the moment it is in the list' => sub {
	watch($primary, $r1);
	all_named('r1', 'in sync with one');
	pause_replay($r2);
	add_note($asked, 1);
	pin($asked, 'k');
	all_named('r1', 'the one has replayed a write');

	# r3 is in the list and does not answer, r2 answers and is behind.
	$r3->stop;
	configure($primary, 'replica_pin.replicas' => replica_list($r1, $r2, $r3));
	becomes(as_listed($r1, $r2, $r3), 'two more are listed');
	is(is_pinned($asked, 'k'), 1, 'at once the key is pinned');
	my $decision = route($asked, 'k');
	is(names($decision), 'r1', 'only the first is named');
	is($decision->{reason}, 'replica_caught_up', 'not in sync');
	ok(wait_for_state($asked, 'r2', 'sampled'), 'one answers');
	is(names(route($asked, 'k')), 'r1', 'and is behind');
	resume_replay($r2);
	ok(poll_until(sub { names(route($asked, 'k')) eq 'r1 r2' }), 'until it has replayed');
	is(is_pinned($asked, 'k'), 1, 'the other one keeps it pinned');
	$r3->start;
	all_named('r1 r2 r3', 'until it answers');
};

subtest 'a list that cannot be read' => sub {
	watch($primary, $r1, $r2);
	all_named('r1 r2', 'a good list');
	my $list = listed();
	my $setting = ask($asked, 'SHOW replica_pin.replicas');
	my %pid = map { $_->name => samplers($_) } $r1, $r2;

	my $port = qr/the port must be a number from 1 to 65535/;
	my $characters = qr/may have only printable ASCII characters/;
	my @wrong = (
		[ 'a=h1,, b=h2', 2, 6, qr/the entry is empty/ ],
		[ 'a=h1, ', 2, 7, qr/the entry is empty/ ],
		[ ',', 1, 1, qr/the entry is empty/ ],
		[ 'a=', 1, 1, qr/the host is empty/ ],
		[ 'a=h1, b=:5432', 2, 7, qr/the host is empty/ ],
		[ '[]:5432', 1, 1, qr/the host is empty/ ],
		[ '=h1', 1, 1, qr/the name before the equal sign is empty/ ],
		[ 'a=h1:0', 1, 1, $port ],
		[ 'a=h1:65536', 1, 1, $port ],
		[ 'a=h1:', 1, 1, $port ],
		[ 'a=h1:54x', 1, 1, $port ],
		[ 'a=h1:-1', 1, 1, $port ],
		[ 'a=h1:99999999999999999999', 1, 1, $port ],
		[ 'a=h1, a=h2', 2, 7, qr/the name is used twice/ ],
		[ 'h1:5432, h1:5432', 2, 10, qr/the name is used twice/ ],
		[ 'a=h1 h2', 1, 1, $characters ],
		[ 'a b=h1', 1, 1, $characters ],
		[ "a=h'1", 1, 1, $characters ],
		[ 'a=h"1', 1, 1, $characters ],
		[ 'a="h1"', 1, 1, $characters ],
		[ 'a=b=h1', 1, 1, $characters ],
		[ "a=h\xc3\xb6st", 1, 1, $characters ],
		[ 'a=h1;b=h2', 1, 1, $characters ],
		[ 'a=fe80::1', 1, 1, qr/an IPv6 address must stand in brackets/ ],
		[ 'a=[fe80::1', 1, 1, qr/the bracket of an IPv6 address is not closed/ ],
		[ 'a=[fe80::1]5432', 1, 1, qr/only a port may follow the bracket/ ],
		[ 'a=' . 'h' x 256, 1, 1, qr/the host is longer than 255 bytes/ ],
		[ 'a' x 128 . '=h1', 1, 1, qr/the name is longer than 127 bytes/ ],
		[ 'a=1, b=2, c=3, d=4, e=5', 5, 21, qr/more replicas than replica_pin.max_replicas allows/ ]);

	for my $wrong (@wrong)
	{
		my ($text, $entry, $character, $reason) = @$wrong;
		my $log = reload_list($text);
		my $short = length $text > 40 ? substr($text, 0, 37) . '...' : $text;
		like($log, qr/invalid value for parameter "replica_pin\.replicas"/, "refused: $short");
		like($log, qr/DETAIL:  Entry $entry, at character $character: [^\n]*$reason/, 'the log names the place');
		is(ask($asked, 'SHOW replica_pin.replicas'), $setting, 'the old list stays');
	}
	is(listed(), $list, 'it is the one that is watched');
	is(samplers($_), $pid{ $_->name }, $_->name . ' kept its connection') for $r1, $r2;
	all_named('r1 r2', 'it decides');

	like(error_of($primary, q(ALTER SYSTEM SET replica_pin.replicas = 'a=h1, b=h2:0')),
		qr/^22023: invalid value for parameter "replica_pin\.replicas"/, 'refused by ALTER SYSTEM');
	like(error_of($primary, q(SET replica_pin.replicas = 'a=h1')), qr/^55P02: /, 'not for a session');
	all_named('r1 r2', 'still');
};

subtest 'connection options' => sub {
	watch($primary, $r1);
	my $pid = samplers($r1);
	my $secret = 'Tr0ub4dor';
	my $offset = -s $primary->logfile;
	my $ours = qr/is not (allowed|one that)/;

	for my $wrong (
		[ "password=$secret", qr/Option "password" would put a secret into a setting/ ],
		[ "dbname=postgres sslpassword=$secret", qr/Option "sslpassword" would put a secret/ ],
		[ "postgresql://u:$secret\@h/d", qr/Option "\w+" / ],
		[ "postgresql:///d?password=$secret", qr/Option "password" would put a secret/ ],
		[ "host=$secret", qr/Option "host" $ours/ ],
		[ 'hostaddr=127.0.0.1', qr/Option "hostaddr" $ours/ ],
		[ 'port=1', qr/Option "port" $ours/ ],
		[ "options='-c x.y=$secret'", qr/Option "options" $ours/ ],
		[ 'service=x', qr/Option "service" $ours|not a valid libpq connection string/ ],
		[ 'replication=database', qr/Option "replication" $ours/ ],
		[ 'target_session_attrs=any', qr/Option "target_session_attrs" $ours/ ],
		[ 'connect_timeout=1', qr/Option "connect_timeout" $ours/ ],
		[ 'client_encoding=UTF8', qr/Option "client_encoding" $ours/ ],
		[ "colour=$secret", qr/not a valid libpq connection string/ ],
		[ "garbage $secret", qr/not a valid libpq connection string/ ],
		[ "user=x password='$secret", qr/not a valid libpq connection string/ ],
		[ "password = $secret $secret", qr/not a valid libpq connection string/ ])
	{
		my ($conninfo, $detail) = @$wrong;
		my $log = reload_log($primary, 'replica_pin.conninfo' => $conninfo);
		like($log, qr/invalid value for parameter "replica_pin\.conninfo"/, "refused: $conninfo");
		like($log, qr/DETAIL:  [^\n]*$detail/, 'the log says why');
		is(ask($asked, 'SHOW replica_pin.conninfo'), 'dbname=postgres', 'the old one stays');
	}
	is(samplers($r1), $pid, 'the connection was kept');
	unlike(slurp_file($primary->logfile, $offset), qr/$secret/, 'the log has no secret');

	# The server logs the statement of an error; that much it says by itself.
	my $error = error_of($primary,
		"SET log_min_error_statement = panic; ALTER SYSTEM SET replica_pin.conninfo = 'password=$secret'");
	is($error, '22023: invalid value for parameter "replica_pin.conninfo"', 'refused by ALTER SYSTEM');
	unlike(slurp_file($primary->logfile, $offset), qr/$secret/, 'without its value');

	configure($primary, 'replica_pin.conninfo' => 'dbname=postgres application_name=other');
	ok(poll_until(sub { samplers($r1, 'other') }), 'a good one makes a new connection');
	ok(poll_until(sub { samplers($r1) eq '' }), 'and ends the old one');
	all_named('r1', 'it is sampled over that');
	reload_log($primary, 'replica_pin.conninfo' => undef);
	ok(poll_until(sub { samplers($r1) }), 'taking the setting out makes it the default');
};

# There is no old value at a start: then the default stands, and the server runs.
subtest 'a start with what cannot be read' => sub {
	my $secret = 'C0rrect';
	my $offset = -s $primary->logfile;
	$primary->adjust_conf('postgresql.conf', 'replica_pin\.\w+', undef);
	$primary->append_conf('postgresql.conf', "replica_pin.replicas = 'a=h1, b=:1'");
	$primary->append_conf('postgresql.conf', "replica_pin.conninfo = 'password=$secret'");
	$primary->restart;
	my $log = slurp_file($primary->logfile, $offset);
	like($log, qr/DETAIL:  Entry 2, at character 7: [^\n]*the host is empty/, 'the log names the place');
	like($log, qr/DETAIL:  [^\n]*Option "password"/, 'and what is wrong with the options');
	$primary->reload;
	$asked = session($primary);
	is(ask($asked, 'SHOW replica_pin.replicas'), '', 'no list');
	is(ask($asked, 'SHOW replica_pin.conninfo'), 'dbname=postgres', 'no options');
	ok(poll_until(sub { route($asked, 'k')->{reason} eq 'no_replicas' }), 'no replicas');

	configure($primary, 'replica_pin.conninfo' => undef, 'replica_pin.replicas' => replica_list($r1));
	all_named('r1', 'a good list needs no restart');
	unlike(slurp_file($primary->logfile, $offset), qr/$secret/, 'the log has no secret');
};

done_testing();
