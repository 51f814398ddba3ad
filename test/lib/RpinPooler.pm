# PgBouncer in a folder of the test, on a socket there. It ends with the test.

package RpinPooler;

use strict;
use warnings;

use Exporter qw(import);
use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;

our @EXPORT = qw(start_pooler trusted);

my @poolers;

# -> its port; its socket is in $place.
# $databases: the lines of that section.
# %settings: of the section [pgbouncer].
sub start_pooler
{
	my ($place, $databases, %settings) = @_;
	my $port = PostgreSQL::Test::Cluster::get_free_port();
	%settings = (listen_port => $port, unix_socket_dir => $place, auth_type => 'any', %settings);
	append_to_file("$place/pgbouncer.ini", join "\n",
		'[databases]', @$databases, '[pgbouncer]', map({ "$_ = $settings{$_}" } sort keys %settings), '');
	local $ENV{PATH} = "$ENV{PATH}:/usr/sbin";
	push @poolers, IPC::Run::start([ 'pgbouncer', "$place/pgbouncer.ini" ],
		'<', \undef, '>', "$place/pgbouncer.log", '2>&1');
	return $port;
}

# Who may connect, without a password, as themselves: settings of start_pooler().
sub trusted
{
	my ($place, @users) = @_;
	append_to_file("$place/users", qq("$_" ""\n)) for @users;
	return (auth_type => 'trust', auth_file => "$place/users");
}

END
{
	my $status = $?;
	$_->kill_kill(grace => 5) for @poolers;
	$? = $status;
}

1;
