# What the tests on real clusters share: a primary that watches streaming
# replicas, questions to it, and waiting with a deadline.
#
# A question goes to a node, or to a session of session(), which keeps its
# connection and spares a psql for each question.

package RpinTest;

use strict;
use warnings;

use Exporter qw(import);
use JSON::PP ();
use PostgreSQL::Test::BackgroundPsql;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test2::API ();
use Test::More;
use Time::HiRes qw(time);

our @EXPORT = qw(
  new_primary new_replicas cluster replica_list watch configure reload_log postmaster_pid
  session ask row rows error_of
  pin route route_token route_all is_pinned names
  replica_state wait_for_state wait_for_samples sampler_pid require_wait_event
  freeze thaw
  add_note has_note pause_replay resume_replay wait_for_replay flushed_lsn
  poll_until);

# Seconds after which a wait has failed. Nothing waits that long unless it is
# broken.
our $patience = 60;

# Who only asks whether a test fails, as script/mutants does, need not wait for what
# follows: each deadline that a fault makes it miss is a minute.
Test2::API::test2_stack()->top->listen(
	sub {
		my $assert = $_[1]->facet_data->{assert};
		die "enough\n" if $assert && !$assert->{pass};
	})
  if $ENV{RPIN_FIRST_FAILURE};

my @sessions;
my %frozen;

# --- clusters ----------------------------------------------------------------

# A running primary with the extension and a table note. Its settings can be
# replaced and added to: the last line of a setting counts.
sub new_primary
{
	my ($name, $conf, %init) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(allows_streaming => 1, %init);
	$node->append_conf('postgresql.conf', <<"END");
shared_preload_libraries = 'replica_pin'
autovacuum = off
log_statement = none
max_connections = 50
max_wal_senders = 10
wal_receiver_status_interval = 1s
END
	$node->append_conf('postgresql.conf', $conf) if defined $conf;
	$node->start;
	$node->safe_psql('postgres', <<'END');
CREATE EXTENSION replica_pin;
CREATE TABLE note (id integer PRIMARY KEY, body text NOT NULL DEFAULT '');
END
	return $node;
}

# Running replicas of a running server, which may be a replica itself.
sub new_replicas
{
	my ($source, @names) = @_;
	my $backup = 'of_' . join('_', @names);
	my @replicas;

	$source->backup($backup);
	for my $name (@names)
	{
		my $replica = PostgreSQL::Test::Cluster->new($name);
		$replica->init_from_backup($source, $backup, has_streaming => 1);
		$replica->start;
		push @replicas, $replica;
	}
	return @replicas;
}

# (primary, replicas r1, r2, ...), all of them sampled.
#
#	replicas => 3, conf => 'settings of the primary', more lines of them
sub cluster
{
	my (%options) = @_;
	my $primary = new_primary('primary', $options{conf});
	my @replicas = new_replicas($primary, map { "r$_" } 1 .. ($options{replicas} // 3));

	watch($primary, @replicas);
	return ($primary, @replicas);
}

# The setting replica_pin.replicas for these nodes, by their names and sockets.
sub replica_list
{
	return join ', ', map { $_->name . '=' . $_->host . ':' . $_->port } @_;
}

# Writes the list of these replicas, reloads, waits until each is sampled.
sub watch
{
	my ($node, @replicas) = @_;
	configure($node, 'replica_pin.replicas' => replica_list(@replicas));
	wait_for_samples($node, @replicas);
	return;
}

# Replaces settings in postgresql.conf and reloads. Undefined takes one out.
sub configure
{
	my ($node, %settings) = @_;
	for my $name (sort keys %settings)
	{
		my $value = $settings{$name};
		$node->adjust_conf('postgresql.conf', quotemeta $name, undef);
		next unless defined $value;
		$value =~ s/'/''/g;
		$node->append_conf('postgresql.conf', "$name = '$value'");
	}
	kill 'HUP', postmaster_pid($node);
	return;
}

sub postmaster_pid
{
	my ($node) = @_;
	my ($pid) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
	return $pid;
}

# The same, and what the server logged meanwhile. When this returns, the server
# has taken the settings or refused them; the sampler has them a moment later.
sub reload_log
{
	my ($node, %settings) = @_;
	my $offset = -s $node->logfile;
	configure($node, %settings);
	poll_until(sub { slurp_file($node->logfile, $offset) =~ /received SIGHUP, reloading/ })
	  or die 'the server does not reload';

	# The server says so before it reads them, and answers nobody until it has:
	# here the question whether it encrypts.
	my $socket = $node->raw_connect;
	$socket->send(pack 'NN', 8, 80877103);
	$socket->recv(my $answer, 1);
	return slurp_file($node->logfile, $offset);
}

# --- questions ---------------------------------------------------------------

sub session
{
	my ($node, $database) = @_;
	my $session = $node->background_psql($database // 'postgres');

	# its time is for a question, not for the whole test
	$session->set_query_timer_restart;
	push @sessions, $session;
	return $session;
}

END
{
	my $status = $?;
	thaw(keys %frozen);
	eval { $_->quit } for @sessions;
	$? = $status;
}

# The output of a statement that must succeed.
sub ask
{
	my ($where, $sql) = @_;
	return $where->query_safe($sql) if $where->isa('PostgreSQL::Test::BackgroundPsql');
	return $where->safe_psql('postgres', $sql);
}

# The rows of a query as hashes: NULL is undef, an array a reference, a boolean
# 1 or 0.
sub rows
{
	my ($where, $query) = @_;
	my $json = ask($where, "SELECT coalesce(json_agg(q), '[]')::jsonb FROM ($query) q");
	return map { plain($_) } @{ JSON::PP::decode_json($json) };
}

sub row
{
	my ($row) = rows(@_);
	return $row;
}

sub plain
{
	my ($row) = @_;
	for my $value (values %$row)
	{
		$value = $value ? 1 : 0 if JSON::PP::is_bool($value);
	}
	return $row;
}

# "SQLSTATE: message" of a statement that must fail, '' if it does not.
sub error_of
{
	my ($node, $sql) = @_;
	my ($status, $output, $error) = $node->psql('postgres', $sql,
		extra_params => [ '--set', 'VERBOSITY=verbose' ]);
	my ($message) = ($error // '') =~ /ERROR:  (\w{5}: .*)/;
	return $message // '';
}

sub quoted
{
	my ($value) = @_;
	return 'NULL' unless defined $value;
	$value =~ s/'/''/g;
	return "'$value'";
}

# The token that pin() answers.
sub pin
{
	my ($where, $key, @token) = @_;
	return ask($where, 'SELECT replica_pin.pin(' . join(', ', map { quoted($_) } $key, @token) . ')');
}

# { replica, reason, replicas, required }
sub route
{
	my ($where, $key, $token) = @_;
	return row($where,
		'SELECT * FROM replica_pin.route(' . quoted($key) . ', ' . quoted($token) . ')');
}

sub route_token
{
	my ($where, $token) = @_;
	return route($where, undef, $token);
}

sub route_all
{
	my ($where, $keys, $token) = @_;
	my $list = join ', ', map { quoted($_) } @$keys;
	return row($where,
		"SELECT * FROM replica_pin.route_all(ARRAY[$list]::text[], " . quoted($token) . ')');
}

# 1 or 0
sub is_pinned
{
	my ($where, $key) = @_;
	return ask($where, 'SELECT replica_pin.is_pinned(' . quoted($key) . ')') eq 't' ? 1 : 0;
}

# The safe set of a decision, to compare: 'r1 r3'.
sub names
{
	my ($decision) = @_;
	return join ' ', @{ $decision->{replicas} };
}

# --- the sampler -------------------------------------------------------------

# The row of the view replicas; the ages as seconds.
sub replica_state
{
	my ($where, $name) = @_;
	return row($where,
		'SELECT *, extract(epoch FROM sample_age) AS age, extract(epoch FROM lag) AS lag_seconds'
		  . ' FROM replica_pin.replicas WHERE name = ' . quoted($name));
}

# Waits for a row of replica_pin.replicas of which $done is true; answers whether
# it came, and what was there last.
sub wait_for_row
{
	my ($where, $name, $done, $deadline) = @_;
	my $row;
	my $reached = poll_until(
		sub {
			$row = replica_state($where, $name);
			return $row && $done->($row);
		},
		$deadline);
	return ($reached, $row ? "$row->{state}: " . ($row->{last_error} // '') : 'not in the list');
}

# Waits for a state of a replica; false after the deadline.
sub wait_for_state
{
	my ($where, $name, $state, $deadline) = @_;
	my ($reached, $seen) = wait_for_row($where, $name, sub { $_[0]{state} eq $state }, $deadline);
	diag("replica $name: waited for $state, is $seen") unless $reached;
	return $reached;
}

# Waits until each of these is eligible, and dies if that fails.
sub wait_for_samples
{
	my ($where, @replicas) = @_;
	for my $replica (@replicas)
	{
		my ($reached, $seen) = wait_for_row($where, $replica->name, sub { $_[0]{eligible} });
		die 'replica ' . $replica->name . " is not sampled, but $seen" unless $reached;
	}
	return;
}

# 0 while no sampler runs.
sub sampler_pid
{
	my ($where) = @_;
	return ask($where, 'SELECT coalesce(sampler_pid, 0) FROM replica_pin.status');
}

# What pg_stat_activity calls the wait of require(): it has a name from PostgreSQL 17.
sub require_wait_event { return $_[0]->pg_version >= 17 ? 'ReplicaPinRequire' : 'Extension' }

# --- processes ---------------------------------------------------------------

# Processes of our nodes stand still until thaw(), or the end of the test.
sub freeze
{
	my (@pids) = @_;
	$frozen{$_} = 1 for @pids;
	kill 'STOP', @pids;
	return;
}

sub thaw
{
	my (@pids) = @_;
	delete @frozen{@pids};
	kill 'CONT', @pids;
	return;
}

# --- rows and replay ---------------------------------------------------------

sub add_note
{
	my ($where, $id) = @_;
	ask($where, "INSERT INTO note VALUES ($id)");
	return;
}

# 1 or 0
sub has_note
{
	my ($where, $id) = @_;
	return ask($where, "SELECT count(*) FROM note WHERE id = $id");
}

# Replay stands still when this returns.
sub pause_replay
{
	for my $replica (@_)
	{
		ask($replica, 'SELECT pg_wal_replay_pause()');
		poll_until(sub { ask($replica, 'SELECT pg_get_wal_replay_pause_state()') eq 'paused' })
		  or die 'replay does not pause';
	}
	return;
}

sub resume_replay
{
	ask($_, 'SELECT pg_wal_replay_resume()') for @_;
	return;
}

# The end of WAL, once it is flushed: every replica can reach it, and what a
# token named before is not beyond it.
sub flushed_lsn
{
	my ($where) = @_;
	my $lsn = ask($where, 'SELECT replica_pin.token_lsn(replica_pin.current_token())');
	poll_until(sub { ask($where, "SELECT pg_current_wal_flush_lsn() >= '$lsn'") eq 't' })
	  or die 'the WAL is not flushed';
	return $lsn;
}

# Waits until these have replayed what is flushed now. Asks them, not us.
sub wait_for_replay
{
	my ($where, @replicas) = @_;
	my $lsn = flushed_lsn($where);
	for my $replica (@replicas)
	{
		poll_until(sub { ask($replica, "SELECT pg_last_wal_replay_lsn() >= '$lsn'") eq 't' })
		  or die 'a replica does not replay';
	}
	return;
}

# --- waiting -----------------------------------------------------------------

# Calls a function until it answers something true, and answers that; false
# after so many seconds.
sub poll_until
{
	my ($question, $seconds) = @_;
	my $deadline = time + ($seconds // $patience);

	while (1)
	{
		my $answer = $question->();
		return $answer if $answer;
		return 0 if time > $deadline;
		select(undef, undef, undef, 0.01);
	}
}

1;
