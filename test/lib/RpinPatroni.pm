# A cluster of Patroni on this machine, made of the files in examples/patroni: each
# member has a loopback address of its own, and they share their ports. One etcd
# stands for those that would agree who leads.

package RpinPatroni;

use strict;
use warnings;

use Exporter qw(import);
use FindBin;
use HTTP::Tiny;
use JSON::PP ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RpinProcess;
use RpinTest;
use Test::More;

our @EXPORT = qw(start_members patronictl apply_example member_state leader sampler_passfile);

my $examples = "$FindBin::RealBin/../../examples/patroni";
# of this machine; no proxy stands between
my $http = HTTP::Tiny->new(timeout => 5, http_proxy => undef, proxy => undef);
my ($place, $bin, %port, $etcd, @members);

# 127.0.1.10 and so on; what else runs here has other ports.
sub find_place
{
	$place = PostgreSQL::Test::Utils::tempdir_short();
	$port{$_} = PostgreSQL::Test::Cluster::get_free_port() for 5432, 8008, 2379, 2380;
	($bin) = run_command([ 'pg_config', '--bindir' ]);
	return;
}

sub sampler_passfile { return "$place/sampler.pass" }

# An example as it is for a member here.
sub example
{
	my ($file, $number) = @_;
	my $folder = "$place/db$number";
	my $text = slurp_file("$examples/$file");

	$text =~ s!\bdb0$!db$number!m;
	$text =~ s!10\.0\.0\.10(:\d+)$!10.0.0.1$number$1!mg;
	$text =~ s!10\.0\.0\.0/24!127.0.0.0/8!g;
	$text =~ s!10\.0\.0\.(\d+):(\d+)!127.0.1.$1:$port{$2}!g;
	$text =~ s!/usr/lib/postgresql/15/bin!$bin!;
	# what takes half a minute in production, in ten seconds
	$text =~ s/ttl: 30/ttl: 10/;
	$text =~ s/loop_wait: 10/loop_wait: 1/;
	$text =~ s/retry_timeout: 10/retry_timeout: 3/;
	$text =~ s/^  parameters:\n/$&    fsync: "off"\n/m if $file eq 'db0.yml';
	$text =~ s!/var/lib/postgresql/15/notes!$folder/data!;
	$text =~ s!/var/run/postgresql!$folder!;
	$text =~ s!/var/lib/patroni!$folder!g;
	$text =~ s!/etc/postgresql/sampler\.pass!sampler_passfile()!e;
	return $text;
}

# --- members ----------------------------------------------------------------------

sub start_etcd
{
	my ($clients, $peers) = map { "http://127.0.1.20:$port{$_}" } 2379, 2380;
	$etcd = start_process("$PostgreSQL::Test::Utils::log_path/patroni_etcd.log",
		qw(etcd --name etcd --data-dir), "$place/etcd",
		'--listen-client-urls', $clients, '--advertise-client-urls', $clients,
		'--listen-peer-urls', $peers, '--initial-advertise-peer-urls', $peers,
		'--initial-cluster', "etcd=$peers", '--unsafe-no-fsync');
	poll_until(sub { $http->get("$clients/health")->{success} }) or die 'etcd does not run';
	return;
}

# Three that run, the leader first.
sub start_members
{
	find_place();
	start_etcd();
	for my $number (0 .. 2)
	{
		my $folder = "$place/db$number";
		mkdir $folder;
		my $member = bless { name => "db$number", number => $number, folder => $folder }, 'RpinPatroni::Member';
		append_to_file($member->file, example('db0.yml', $number));
		push @members, $member;
	}
	$_->start for @members;
	for my $member (@members)
	{
		poll_until(sub { $member->state->{state} eq 'running' }, 120) or die $member->name . ' does not run';
	}
	my $leader = leader();
	return ($leader, grep { $_ != $leader } @members);
}

sub leader
{
	my ($leader) = grep { $_->http('leader') } @members;
	return $leader;
}

# What patronictl says.
sub patronictl
{
	my (@arguments) = @_;
	my ($output, $errors) = run_command([ 'patronictl', '-c', $members[0]->file, @arguments ]);
	note("patronictl @arguments: $output $errors");
	return $output;
}

# The settings, as the example says, but for a member that is left out.
sub apply_example
{
	my ($without) = @_;
	my $text = example('replica_pin.yml', 0);
	$text =~ s/\b$without=[^,\n]*(?:, |$)//m if $without;
	$text =~ s/, *$//mg;
	unlink "$place/replica_pin.yml";
	append_to_file("$place/replica_pin.yml", $text);
	return patronictl(qw(edit-config notes --force --apply), "$place/replica_pin.yml");
}

END
{
	my $status = $?;
	my @running = grep { $_->{pid} } @members;
	kill 'TERM', map { $_->{pid} } @running;
	end_process($_->{pid}, 'TERM', 30) for @running;
	end_process($etcd, 'TERM') if $etcd;
	$? = $status;
}

package RpinPatroni::Member;

use PostgreSQL::Test::Utils;

sub name { return $_[0]{name} }
sub host { return $_[0]{folder} }
sub port { return $port{5432} }
sub file { return "$_[0]{folder}/patroni.yml" }
sub logfile { return "$PostgreSQL::Test::Utils::log_path/patroni_$_[0]{name}.log" }

sub start
{
	my ($self) = @_;
	$self->{pid} = RpinProcess::start_process($self->logfile, 'patroni', $self->file);
	return;
}

# Patroni first, which would say good bye; and the server, in no order.
sub crash
{
	my ($self) = @_;
	my ($postmaster) = slurp_file("$self->{folder}/data/postmaster.pid") =~ /^(\d+)/;
	RpinProcess::end_process(delete $self->{pid}, 'KILL');
	kill 'QUIT', $postmaster;
	return;
}

# The answer to a question to Patroni, if it is yes.
sub http
{
	my ($self, $path) = @_;
	my $answer = $http->get("http://127.0.1.1$self->{number}:$port{8008}/$path");
	return $answer->{success} ? $answer->{content} : undef;
}

sub state
{
	my ($self) = @_;
	my $answer = $self->http('patroni');
	return $answer ? JSON::PP::decode_json($answer) : { state => 'down', role => '' };
}

sub safe_psql
{
	my ($self, $database, $sql) = @_;
	my ($output, $errors) = run_command([ qw(psql -XAtq -v ON_ERROR_STOP=1), '-h', $self->host, '-p', $self->port, '-d', $database, '-c', $sql ]);
	die "$sql: $errors" if $errors =~ /ERROR|FATAL|error:/;
	return $output;
}

1;
