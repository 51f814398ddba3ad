# More than is usual, and what changes under it.

use strict;
use warnings;

use List::Util qw(shuffle);
use PostgreSQL::Test::Utils;
use RpinFaults;
use RpinTest;

my $all = 'first second cascaded';

fault 'ten times as many keys as the table holds' => (
	on => 'keys',
	cause => sub {
		ask(asked(), <<'END');
DO $$ BEGIN
  FOR i IN 1 .. 600 LOOP
    UPDATE note SET body = 'flood' WHERE id = 1;
    PERFORM replica_pin.pin('flood:' || i || ':' || j) FROM generate_series(1, 50) j;
    COMMIT;
  END LOOP;
END $$
END
	},
	must => {
		named => $all,
		reason => 'in_sync',
		also => sub { ask(asked(), 'SELECT evictions > 20000 FROM replica_pin.status') eq 't' ? () : 'nothing was evicted' }
	});

fault 'a transaction with more keys than a commit remembers' => (
	on => 'keys',
	cause => sub {
		ask(asked(), q{BEGIN; UPDATE note SET body = 'many' WHERE id = 1;
			SELECT count(replica_pin.pin('many:' || i)) FROM generate_series(1, 3000) i; COMMIT});
	},
	must => { named => $all, reason => 'in_sync' });

# Sixty clients write under one key, while a replica does not replay.
fault 'one key, sixty writers' => (
	on => 'first keys',
	cause => sub {
		pause_replay(asked('first'));
		my $script = PostgreSQL::Test::Utils::tempdir() . '/hot.sql';
		unlink $script;
		append_to_file($script, <<'END');
BEGIN;
SET LOCAL replica_pin.session_key = 'hot';
INSERT INTO hot VALUES (:client_id);
COMMIT;
END
		my $node = node('primary');
		PostgreSQL::Test::Utils::system_log('pgbench', '-n', '-h', $node->host, '-p', $node->port, '-c', 60,
			'-t', $_[0]{smoke} ? 10 : 100, '-f', $script, 'postgres') == 0
		  or die 'pgbench failed';
	},
	must => {
		key => 'hot',
		named => 'second cascaded',
		reason => 'replica_caught_up',
		also => \&hot_covers_all
	},
	undo => sub { resume_replay(asked('first')) });

# What the key needs is enough to see all that was written under it.
sub hot_covers_all
{
	my $token = route(asked(), 'hot')->{required};
	my $count = 'SELECT count(*) FROM hot';
	my $written = ask(asked(), $count);
	my @seen = map { ask(asked($_), "CALL replica_pin.require('$token', 10000)"); ask(asked($_), $count) } qw(second cascaded);
	return (grep { $_ != $written } @seen) ? "of $written rows replicas have @seen" : ();
}

fault 'synchronous_commit changes at random' => (
	on => "primary keys $all",
	cause => sub {
		my $primary = node('primary');
		configure($primary, synchronous_standby_names => '*');
		for my $level (map { shuffle qw(off local remote_write on remote_apply) } 1 .. ($_[0]{smoke} ? 1 : 4))
		{
			configure($primary, synchronous_commit => $level);
			poll_until(sub { ask(asked(), 'SHOW synchronous_commit') eq $level }) or die 'no reload';
			ask(asked(), q{UPDATE note SET body = 'level' WHERE id = 1});
		}
	},
	must => { named => $all, reason => 'in_sync' },
	undo => sub { configure(node('primary'), synchronous_commit => undef, synchronous_standby_names => undef) });

fault 'commits wait for a standby that is not there' => (
	on => "primary keys $all",
	cause => sub {
		configure(node('primary'), synchronous_standby_names => 'nobody');
		poll_until(sub { ask(asked(), 'SHOW synchronous_standby_names') eq 'nobody' }) or die 'no reload';
		my $node = node('primary');
		in_background('psql', '-X', '-h', $node->host, '-p', $node->port, '-d', 'postgres', '-c',
			q{BEGIN; SET LOCAL replica_pin.session_key = 'waiting'; INSERT INTO hot VALUES (0); COMMIT});
	},
	must => { key => 'waiting', named => '', reason => 'commit_pending' },
	undo => sub { configure(node('primary'), synchronous_standby_names => undef) });

1;
