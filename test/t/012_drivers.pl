# What applications really send: arrays, NULLs, and cookies that hold anything
# but a token, handed to every call that asks, by the drivers that people use.
# Nothing malformed is ever "in sync", and no error comes from replica_pin.

use strict;
use warnings;

use FindBin;
use JSON::PP ();
use PostgreSQL::Test::Utils;
use RpinTest;
use Test::More;

my $primary = new_primary('primary', undef, extra => ['--encoding=UTF8']);
my ($replica) = new_replicas($primary, 'r1');
watch($primary, $replica);

# What each value comes to in each place, per driver; every value is in one line.
#
#	one key			is_pinned, route
#	several keys	is_any_pinned, route_all
#	token			route, route_all, has_replayed, token_lsn
#
#	key			a session key that nobody pinned; any text is one
#	none		demands nothing: no_session_key
#	unreadable	token_unreadable
#	absent		no token
#	token		a token, replayed everywhere
#	client		the driver does not send it
#	SQLSTATE	the server refuses it before replica_pin is called: there is no
#				such function for the type that the driver declares (42883), it is
#				no array (22P02, 22P03, 2202E, 54000), or no text in the encoding of
#				the database (22021)
#
# psycopg 3 and node-postgres send an array as text without a type. Handed to a
# call for one key it is refused as one: nobody would ask for that key again.
my %expected = (
	'psycopg2' => <<'END',
key   | 22P02 | token      : token, token in lower case
key   | 22P02 | unreadable : text None, quotes, backslashes, JSON list, percent, unicode, wide digits, token and newline, two tokens, cut token, bare LSN, long
none  | 22P02 | unreadable : JSON, empty text
none  | key   | unreadable : array literal
none  | none  | unreadable : empty array, array of None
none  | none  | absent     : None
42883 | key   | 42883      : array, nested array
42883 | none  | 42883      : array with None, array with empty text
42883 | 2202E | 42883      : ragged array
42883 | 42883 | 42883      : tuple, array of numbers, number, boolean, not a number, bytes, binary
client | client | client   : dictionary, zero byte, lone surrogate
END
	'psycopg 3' => <<'END',
key   | 22P02 | token      : token, token in lower case
key   | 22P02 | unreadable : text None, quotes, backslashes, JSON list, percent, unicode, wide digits, token and newline, two tokens, cut token, bare LSN, long, tuple
none  | 22P02 | unreadable : JSON, ragged array, empty text
none  | key   | unreadable : array literal, array, nested array
none  | none  | unreadable : empty array, array of None, array with None, array with empty text
none  | none  | absent     : None
42883 | 42883 | 42883      : array of numbers, number, boolean, not a number, bytes, binary
client | client | client   : dictionary, zero byte, lone surrogate
END
	'node-postgres' => <<'END');
key   | 22P02 | token      : token, token in lower case
key   | 54000 | token      : buffer
key   | 22P02 | unreadable : text undefined, quotes, backslashes, JSON list, percent, unicode, wide digits, token and newline, two tokens, cut token, bare LSN, long
key   | 22P02 | unreadable : number, boolean, not a number, date, text of an object, a function, lone surrogate
none  | 22P02 | unreadable : JSON, object, ragged array, empty text
none  | key   | unreadable : array literal, array, nested array, array of numbers
none  | none  | unreadable : empty array, array of null, array with undefined, array with empty text
none  | none  | absent     : null, undefined
22021 | 22P03 | 22021      : binary
22021 | 22021 | 22021      : zero byte
END

# The server's own code that may refuse, never ours.
my %refuses = (
	'42883' => 'parse_func.c', '22P02' => 'arrayfuncs.c', '22P03' => 'arrayfuncs.c',
	'54000' => 'arrayfuncs.c', '2202E' => 'execExprInterp.c', '22021' => 'mbutils.c');

my @calls = (
	[qw(is_pinned route)],
	[qw(is_any_pinned route_all)],
	[ 'route token', 'route_all token', 'has_replayed', 'token_lsn' ]);

# What the calls of one place answer. A demand of nothing in addition to a key
# leaves the key: "free", that nobody pins.
my %answers = (
	key => [qw(false in_sync)],
	pinned => [qw(true replicas_behind)],
	none => [qw(true no_session_key)],
	unreadable => [qw(token_unreadable token_unreadable false null)],
	absent => [qw(no_session_key in_sync false null)],
	token => [ qw(in_sync in_sync true), 'lsn' ]);

sub answers
{
	my ($expected, $count) = @_;
	return ($answers{$expected} ? @{ $answers{$expected} } :
		$refuses{$expected} ? ("error $expected $refuses{$expected}") x $count : ($expected) x $count);
}

# { value => { call => outcome } }
sub run_driver
{
	my ($command, $mode, $token) = @_;
	my ($output, $errors) = run_command([ @$command, $mode, $token ]);
	my %outcome;

	for my $line (split /\n/, $output)
	{
		my ($value, $call, $outcome) = @{ JSON::PP::decode_json($line) };
		$outcome =~ s/^[0-9A-F]+\/[0-9A-F]+$/lsn/;
		$outcome =~ s/^[0-9A-F]{16}-[0-9A-F]{8}-[0-9A-F]{16}$/pinned/;
		$outcome{$value}{$call} = $outcome;
	}
	is($errors, '', 'the driver runs');
	return \%outcome;
}

# value => [one key, several keys, token]
sub expected_places
{
	my ($driver) = @_;
	my %places;
	for my $line (split /\n/, $expected{$driver})
	{
		my ($places, $values) = split /\s*:\s*/, $line, 2;
		$places{$_} = [ split /\s*\|\s*/, $places ] for split /,\s*/, $values;
	}
	return \%places;
}

sub driver_asks
{
	my ($driver, $command, $token) = @_;
	my $outcomes = run_driver($command, 'ask', $token);
	my $places = expected_places($driver);

	is_deeply([ sort keys %$outcomes ], [ sort keys %$places ], 'every value was tried');
	for my $value (sort keys %$places)
	{
		my %wanted;
		for my $place (0 .. $#calls)
		{
			my @names = @{ $calls[$place] };
			@wanted{@names} = answers($places->{$value}[$place], scalar @names);
		}
		is_deeply($outcomes->{$value}, \%wanted, $value);
	}
	return;
}

# What a driver can pin, it finds pinned, while the replica is behind; what asks
# for nothing cannot be pinned.
sub driver_pins
{
	my ($driver, $command, $token) = @_;
	my $outcomes = run_driver($command, 'pin', $token);
	my $places = expected_places($driver);

	for my $value (sort keys %$places)
	{
		for my $place (0, 1)
		{
			my $pin = (qw(pin pin_all))[$place];
			my $expected = $places->{$value}[$place];
			my @found = map { $outcomes->{$value}{$_} } @{ $calls[$place] };
			my $name = "$pin of $value";
			if ($expected eq 'key')
			{
				is_deeply([ $outcomes->{$value}{$pin}, @found ], [ 'pinned', @{ $answers{pinned} } ], $name);
			}
			elsif ($expected eq 'none')
			{
				like($outcomes->{$value}{$pin}, qr/^error (22004|22023) rpin_/, "$name is refused");
				is_deeply(\@found, $answers{none}, '... and asks for nothing');
			}
		}
	}
	is(is_pinned($primary, 'free'), 0, 'a key that nobody pinned is free');
	return;
}

# Into a folder of its own, which has a package.json so that npm looks no further
# up; undefined if that fails.
sub node_modules
{
	my $folder = PostgreSQL::Test::Utils::tempdir();
	append_to_file("$folder/package.json", '{}');
	my ($output, $errors) = run_command(
		[ qw(env -C), $folder, qw(npm install --no-audit --no-fund --ignore-scripts pg@8) ]);
	return "$folder/node_modules" if -d "$folder/node_modules/pg";
	diag("npm cannot install the package pg: $output$errors");
	return;
}

sub is_installed
{
	my (@command) = @_;
	return eval { run_command([@command]); $? == 0 };
}

$ENV{PGHOST} = $primary->host;
$ENV{PGPORT} = $primary->port;
$ENV{PGUSER} = getpwuid($>);
$ENV{PYTHONDONTWRITEBYTECODE} = 1;

my $drivers = "$FindBin::Bin/../drivers";
my %command = (
	'psycopg2' => [ '/usr/bin/python3', "$drivers/ask_psycopg2.py" ],
	'psycopg 3' => [ '/usr/bin/python3', "$drivers/ask_psycopg3.py" ],
	'node-postgres' => [ 'node', "$drivers/ask_node.js" ]);

for my $driver (sort keys %command)
{
	subtest $driver => sub {
		if ($driver eq 'node-postgres')
		{
			plan(skip_all => 'there is no node or no npm')
			  unless is_installed('node', '--version') && is_installed('npm', '--version');
			my $modules = node_modules();
			ok($modules, 'npm installs the package pg') or return;
			$ENV{NODE_PATH} = $modules;
		}
		my $token = ask($primary, 'SELECT replica_pin.current_token()');
		poll_until(sub { route_token($primary, $token)->{reason} eq 'in_sync' }) or die 'the replica does not catch up';
		driver_asks($driver, $command{$driver}, $token);

		pause_replay($replica);
		ask($primary, 'INSERT INTO note SELECT count(*) FROM note');
		driver_pins($driver, $command{$driver}, $token);
		resume_replay($replica);
	};
}

done_testing();
