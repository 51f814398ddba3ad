# Packets that are lost. Only the sampler's and the stream's: see RpinFaults.

use strict;
use warnings;

use RpinFaults;
use RpinTest;

my @replicas = qw(first second cascaded);

sub sampling { return sampling_address(node($_[0])); }

sub streaming { return streaming_address(node($_[0])); }

sub both_ways { return map { ("ip daddr $_ drop", "ip saddr $_ drop") } @_; }

my %alone = (
	state => { first => 'timed_out' },
	named => 'second cascaded',
	reason => 'replica_caught_up');

fault 'the link to a replica is down' => (
	on => 'first network',
	cause => sub { packets(both_ways(sampling('first'), streaming('first'))) },
	must => \%alone,
	undo => \&mend);

fault 'questions to a replica are lost' => (
	on => 'first network',
	cause => sub { packets('ip daddr ' . sampling('first') . ' drop') },
	must => \%alone,
	undo => \&mend);

fault 'answers of a replica are lost' => (
	on => 'first network',
	cause => sub { packets('ip saddr ' . sampling('first') . ' drop') },
	must => \%alone,
	undo => \&mend);

fault 'a router says that a replica is unreachable' => (
	on => 'first network',
	cause => sub { packets('ip daddr ' . sampling('first') . ' reject with icmp type host-unreachable') },
	must => { %alone, state => { first => 'unreachable' }, error => { first => '.*No route to host' } },
	undo => \&mend);

fault 'a replica resets its connections' => (
	on => 'first network',
	cause => sub { packets('ip daddr ' . sampling('first') . ' meta l4proto tcp reject with tcp reset') },
	must => { %alone, state => { first => 'unreachable' }, error => { first => '.*Connection refused' } },
	# the replica has heard nothing of it
	undo => sub { mend(); cut_off('first') });

for my $way ([ 'the stream to a replica is cut', 'saddr', 'daddr' ],
	[ 'WAL to a replica is lost', 'saddr' ], [ 'replies of a replica to its primary are lost', 'daddr' ])
{
	my ($name, @directions) = @$way;
	fault $name => (
		on => 'first network',
		cause => sub { packets(map { "ip $_ " . streaming('first') . ' drop' } @directions) },
		# without an acknowledgement WAL stops a little later
		hold => 4,
		must => { state => { first => 'sampled' }, named => 'second cascaded', reason => 'replica_caught_up' },
		undo => \&mend);
}

fault 'the stream to a cascading replica is cut' => (
	on => 'cascaded network',
	cause => sub { packets(both_ways(streaming('cascaded'))) },
	must => { state => { cascaded => 'sampled' }, named => 'first second', reason => 'replica_caught_up' },
	undo => \&mend);

fault 'the primary is cut off' => (
	on => 'first second cascaded network',
	cause => sub { packets(both_ways(map { (sampling($_), streaming($_)) } @replicas)) },
	must => { state => { map { $_ => 'timed_out' } @replicas }, named => '', reason => 'samples_stale' },
	undo => \&mend);

1;
