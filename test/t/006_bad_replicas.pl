# Whatever may stand at an address of the list: it gets its own state and text,
# it disturbs nobody else, and it costs no connection, descriptor or secret.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RpinFake;
use RpinTest;
use Test::More;
use Time::HiRes qw(time);

my $right = 'Right-Horse-Battery';
my $wrong = 'Wrong-Horse-Staple';
my $passfile = PostgreSQL::Test::Utils::tempdir() . '/passwords';

my $settings = <<"END";
listen_addresses = '127.0.0.1'
max_files_per_process = 200
replica_pin.max_replicas = 64
replica_pin.sample_interval = 50ms
replica_pin.conninfo = 'dbname=postgres user=sampler passfile=$passfile'
END
my $sampler_role = "CREATE ROLE sampler LOGIN PASSWORD '$right'";

# Over TCP the sampler's role needs its password.
sub demand_password
{
	my ($node) = @_;
	my $file = $node->data_dir . '/pg_hba.conf';
	my $rules = slurp_file($file);
	unlink $file;
	append_to_file($file, "host all sampler 127.0.0.1/32 scram-sha-256\n$rules");
	$node->reload;
	return;
}

my $primary = new_primary('primary', $settings);
$primary->safe_psql('postgres', $sampler_role);
demand_password($primary);
my ($good, $bare, $frozen, $promoted) = new_replicas($primary, qw(good bare frozen promoted));
$promoted->promote;
$bare->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$bare->append_conf('postgresql.conf', "replica_pin.sample_interval = 1min    # means nothing here");
$bare->restart;
my $other = new_primary('other', "listen_addresses = '127.0.0.1'");
$other->safe_psql('postgres', $sampler_role);
my @nodes = ($primary, $good, $bare, $frozen, $promoted, $other);

my $wrong_port = fake_proxy($frozen->port);
append_to_file($passfile, "127.0.0.1:$wrong_port:*:sampler:$wrong\n*:*:*:sampler:$right\n");
chmod 0600, $passfile;

my @node_status = (1, undef, 't', 'f', 1, undef, '0/3000000', '1.0');
my $answer = RpinFake::result(8, \@node_status);
my $unreachable = 'unreachable';

# name => [port, state, text]
my %bad = (
	refusing => [ dead_port(), $unreachable, qr/Connection refused/ ],
	closing => [ fake_server(sub { }), $unreachable, qr/closed the connection unexpectedly/ ],
	silent => [ fake_server(\&wait_for_end),
		'timed_out', qr/^no answer to the connection attempt within 1000 ms$/ ],
	garbage => [ fake_server(sub { syswrite $_[0], "\xff\0\x01" x 1000; wait_for_end($_[0]) }),
		$unreachable, qr/invalid response to SSL negotiation/ ],
	web => [ fake_server(sub { sysread $_[0], my $request, 1000; syswrite $_[0], "HTTP/1.1 400 Bad Request\r\n\r\n" }),
		$unreachable, qr/invalid response to SSL negotiation: H/ ],
	starting => [ fake_postgres(greeting => RpinFake::error('57P03', 'the database system is starting up')),
		'starting_up', qr/^the database system is starting up$/ ],
	full => [ fake_postgres(greeting => RpinFake::error('53300', 'sorry, too many clients already')),
		'refused', qr/^sorry, too many clients already$/ ],
	wrong_password => [ $wrong_port, 'authentication', qr/^password authentication failed for user "sampler"$/ ],
	slow => [ fake_proxy($frozen->port, 1.5), 'timed_out', qr/^no answer to the question within 1000 ms$/ ],
	mute => [ fake_postgres(), 'timed_out', qr/^no answer to the question within 1000 ms$/ ],
	no_row => [ fake_postgres(answer => RpinFake::result(8)), 'nonsense', qr/answered something else than expected/ ],
	two_rows => [ fake_postgres(answer => RpinFake::result(8, \@node_status, \@node_status)),
		'nonsense', qr/answered something else/ ],
	columns => [ fake_postgres(answer => RpinFake::result(7, [ @node_status[ 0 .. 6 ] ])),
		'nonsense', qr/answered something else/ ],
	nulls => [ fake_postgres(answer => RpinFake::result(8, [ (undef) x 8 ])), 'nonsense', qr/answered something else/ ],
	words => [ fake_postgres(answer => RpinFake::result(8, [qw(one two t f three four five 1.0)])),
		'nonsense', qr/answered something else/ ],
	version => [ fake_postgres(answer => RpinFake::result(8, [ @node_status[ 0 .. 6 ], "1.0\x1b[31m" ])),
		'nonsense', qr/answered something else/ ],
	twice => [ fake_postgres(answer => $answer =~ s/Z....I$//sr . RpinFake::result(8, \@node_status)),
		'nonsense', qr/one question had two answers/ ],
	error => [ fake_postgres(answer => RpinFake::error('XX000', "it broke \xe4\x1b[31m\nhere") . RpinFake::ready()),
		'query_failed', qr/^it broke \?\?\[31m$/ ],
	leaving => [ fake_postgres(answer => RpinFake::error('57P01', 'terminating connection due to administrator command')),
		'connection_lost', qr/./ ],
	noise => [ fake_postgres(answer => "D\0\0\0\1" . 'x' x 100), 'connection_lost', qr/./ ],
	enormous => [ fake_postgres(answer => "D\x7f\xff\xff\xff" . 'x' x 100), 'connection_lost|timed_out', qr/./ ],
	fake => [ fake_postgres(answer => $answer), 'other_cluster', undef ],
	other => [ $other->port, 'other_cluster', undef ],
	promoted => [ $promoted->port, 'not_a_replica', undef ],
	myself => [ $primary->port, 'self', undef ]);

my $asked = session($primary);
my $good_list = join ', ', map { $_->name . '=127.0.0.1:' . $_->port } $good, $bare, $frozen;

sub samplers
{
	my ($replica) = @_;
	return ask($replica, "SELECT pid FROM pg_stat_activity WHERE application_name = 'replica_pin sampler' ORDER BY 1");
}

sub descriptors
{
	my $pid = sampler_pid($asked);
	opendir(my $directory, "/proc/$pid/fd") or die "could not look at process $pid: $!";
	return scalar grep { !/^\./ } readdir $directory;
}

sub watch_good
{
	configure($primary, 'replica_pin.replicas' => $good_list);
	poll_until(sub { names(route($asked, 'k')) eq 'good bare frozen' }) or die 'the good ones are not sampled';
	return;
}

subtest 'all of them at once' => sub {
	watch_good();
	my %pid = map { $_->name => samplers($_) } $good, $bare;
	my $samples = replica_state($asked, 'good')->{samples};
	my $begin = time;
	my $list = join ', ', $good_list, map { "$_=127.0.0.1:$bad{$_}[0]" } sort keys %bad;
	configure($primary, 'replica_pin.replicas' => $list);

	# Until each has its state, and has had it again after being tried again.
	my (%missing, @age, %seen);
	my $disturbed = 0;
	poll_until(
		sub {
			%missing = ();
			for my $row (rows($asked, 'SELECT *, extract(epoch FROM sample_age) AS age FROM replica_pin.replicas'))
			{
				my $name = $row->{name};
				if ($bad{$name})
				{
					my ($port, $state, $text) = @{ $bad{$name} };
					$seen{$name} = join ': ', $row->{state}, $row->{last_error} // '';
					$missing{$name} = $seen{$name}
					  unless $row->{state} =~ /^(?:$state)$/
					  && (defined $text ? ($row->{last_error} // '') =~ $text : !defined $row->{last_error})
					  && ($row->{state} =~ /self|other_cluster|not_a_replica/ ? $row->{samples} : $row->{failures}) >= 2
					  && !$row->{eligible};
				}
				elsif ($pid{$name})
				{
					push @age, $row->{age} // 99;
					$disturbed++ unless $row->{eligible} && $row->{failures} == 0;
				}
			}
			return !%missing && time - $begin > 5;
		});
	for my $name (sort keys %bad)
	{
		ok(!$missing{$name}, "$name: $seen{$name}");
	}
	my $seconds = time - $begin;
	@age = sort { $a <=> $b } @age;
	note sprintf '%.1f s, ages %.3f .. %.3f, 90 %% below %.3f', $seconds, @age[ 0, -1 ], $age[ 0.9 * @age ];
	is($disturbed, 0, 'the good ones were eligible all the time, without a failure');
	cmp_ok($age[ 0.9 * @age ], '<', 0.5, 'their samples were young');
	cmp_ok(replica_state($asked, 'good')->{samples} - $samples, '>', 4 * $seconds, 'they were sampled on');
	is(samplers($good), $pid{good}, 'over the same connection') or diag(samplers($good));
	is(samplers($bare), $pid{bare}, 'also where the library is not preloaded');
	my $decision = route($asked, 'k');
	is(names($decision), 'good bare frozen', 'the good ones are named, and no other');
	is($decision->{reason}, 'replica_caught_up', 'not in sync');
	is(is_pinned($asked, 'k'), 1, 'pinned');
};

subtest 'an answer that is late, but in time' => sub {
	my $port = fake_proxy($good->port, 0.4);
	configure($primary, 'replica_pin.replicas' => "late=127.0.0.1:$port");
	ok(wait_for_state($asked, 'late', 'sampled'), 'is believed');
	my ($youngest, $from) = (99, replica_state($asked, 'late')->{samples});
	poll_until(
		sub {
			my $row = replica_state($asked, 'late');
			$youngest = $row->{age} if $row->{age} < $youngest;
			return $row->{samples} > $from + 3;
		});
	cmp_ok($youngest, '>=', 0.4, 'its age counts from when it was requested');
	is(names(route($asked, 'k')), 'late', 'it is named');
};

subtest 'a replica that stands still' => sub {
	watch_good();
	my $postmaster = postmaster_pid($frozen);
	my $backend = samplers($frozen);
	freeze($postmaster);
	my $from = replica_state($asked, 'frozen')->{samples};
	ok(poll_until(sub { replica_state($asked, 'frozen')->{samples} > $from + 3 }),
		'the open connection of a stopped postmaster goes on');
	freeze($backend);
	ok(wait_for_state($asked, 'frozen', 'timed_out'), 'its backend does not');
	is(replica_state($asked, 'frozen')->{age}, undef, 'its last sample is void');
	is(names(route($asked, 'k')), 'good bare', 'it is not named any more');
	ok(poll_until(sub { replica_state($asked, 'frozen')->{last_error} =~ /connection attempt/ }),
		'it accepts connections and does not answer');
	ok(poll_until(sub { replica_state($asked, 'frozen')->{failures} >= 3 }), 'it is tried again');
	thaw($postmaster, $backend);
	ok(poll_until(sub { names(route($asked, 'k')) eq 'good bare frozen' }), 'it is back by itself');
	is(replica_state($asked, 'frozen')->{last_error}, undef, 'and the error gone');
	ok(poll_until(sub { samplers($frozen) =~ /^\d+$/ }), 'one connection is left');
};

subtest 'a hundred failures leave nothing behind' => sub {
	watch_good();
	my $before = descriptors();
	my @kind = qw(refusing closing garbage web wrong_password starting full mute words);
	my $failures = 0;
	for my $round (1 .. 2)
	{
		my $list = join ', ', $good_list, map { my $kind = $kind[ $_ % @kind ]; "x$round$_=127.0.0.1:$bad{$kind}[0]" } 1 .. 40;
		configure($primary, 'replica_pin.replicas' => $list);
		my $sum;
		ok( poll_until(
				sub {
					return 0 unless replica_state($asked, "x${round}40");
					$sum = ask($asked, 'SELECT sum(failures) FROM replica_pin.replicas');
					return $sum > 60;
				}),
			'many failures') or diag($sum);
		cmp_ok(descriptors(), '<=', $before + 41, 'at most one descriptor for each');
		$failures += $sum;
	}
	configure($primary, 'replica_pin.replicas' => $good_list);
	note "$failures failures";
	cmp_ok($failures, '>', 100, 'more than a hundred in all');
	ok(poll_until(sub { descriptors() == $before }), 'all descriptors are closed') or diag(descriptors() . " != $before");
	ok(poll_until(sub { samplers($_) =~ /^\d+$/ }), $_->name . ' has one connection') for $good, $bare;

	# A third of max_files_per_process is for connections: had each failure kept
	# one, none were left.
	configure($primary, 'replica_pin.replicas' => join ', ', $good_list, map { "y$_=127.0.0.1:" . $good->port } 1 .. 30);
	ok(poll_until(sub { ask($asked, 'SELECT count(*) FROM replica_pin.replicas WHERE eligible') == 33 }),
		'descriptors are not used up');
};

subtest 'without the extension, or the privilege' => sub {
	watch_good();
	my $conninfo = "user=sampler passfile=$passfile";
	configure($primary, 'replica_pin.conninfo' => "dbname=template1 $conninfo");
	ok(wait_for_state($asked, 'good', 'extension_missing'), 'the database lacks the extension');
	like(replica_state($asked, 'good')->{last_error}, qr/schema "replica_pin" does not exist/, 'in the words of the server');
	is(route($asked, 'k')->{reason}, 'samples_stale', 'nobody is named');
	$primary->safe_psql('template1', 'CREATE EXTENSION replica_pin');
	ok(poll_until(sub { route($asked, 'k')->{reason} eq 'in_sync' }), 'until it has been made and replayed');
	$primary->safe_psql('template1', 'DROP EXTENSION replica_pin');
	ok(wait_for_state($asked, 'good', 'extension_missing'), 'dropped under an open connection');

	configure($primary, 'replica_pin.conninfo' => "dbname=postgres $conninfo");
	watch_good();
	for my $privilege ('EXECUTE ON FUNCTION replica_pin.node_status()', 'USAGE ON SCHEMA replica_pin')
	{
		ask($asked, "REVOKE $privilege FROM PUBLIC");
		wait_for_replay($asked, $good);
		# a new connection, where an open one has looked up the name already
		configure($primary, 'replica_pin.conninfo' => "dbname=postgres $conninfo application_name=again");
		ok(wait_for_state($asked, 'good', 'no_privilege'), "no $privilege");
		like(replica_state($asked, 'good')->{last_error}, qr/^permission denied for /, 'in the words of the server');
		ask($asked, "GRANT $privilege TO PUBLIC");
		ok(poll_until(sub { route($asked, 'k')->{reason} eq 'in_sync' }), 'granted again');
		configure($primary, 'replica_pin.conninfo' => "dbname=postgres $conninfo");
		watch_good();
	}
};

subtest 'no secret anywhere' => sub {
	my $secret = 'H[o]rse|B[a]ttery|St[a]ple';    # does not match itself
	unlike(slurp_file($_->logfile), qr/$secret/, 'log of ' . $_->name) for @nodes;
	for my $view (qw(replica_pin.replicas replica_pin.status pg_settings pg_stat_activity pg_file_settings))
	{
		is(ask($asked, "SELECT v::text FROM $view v WHERE v::text ~ '$secret'"), '', "view $view");
	}
	my $pid = sampler_pid($asked);
	unlike(slurp_file("/proc/$pid/cmdline"), qr/$secret/, 'title of the process');
	like(slurp_file("/proc/$pid/cmdline"), qr/replica_pin sampler watching 3 replicas/, 'which tells what it does');
};

done_testing();
