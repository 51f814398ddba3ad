# The lines of decisions in a server's log, read strictly: what is not exactly of
# their form is none, and the test ends there.

package RpinLog;

use strict;
use warnings;

use Exporter qw(import);
use PostgreSQL::Test::Utils;

our @EXPORT = qw(log_mark log_since decision_lines);

my $token = qr/[0-9A-F]{16}-[0-9A-F]{8}-[0-9A-F]{16}/;
my $quoted = qr/"((?:[ !#-\[\]-~]|\\["\\]|\\x[0-9A-F]{2})*)"/;
my $form = qr/^replica_pin:
	\ decision=(?<decision>primary|replica)
	\ reason=(?<reason>[a-z_]+)
	(?:\ enforced=(?<enforced>false))?
	(?:\ required=(?<required>$token))?
	(?:\ best=(?<best>[!-~]+)(?:\ behind_bytes=(?<behind_bytes>\d+))?\ sample_age_ms=(?<sample_age_ms>\d+))?
	(?:\ correlation_id=(?<quoted>$quoted))?
	(?:\ left_out=(?<left_out>[1-9]\d*))?$/x;

# The end of the log now, for log_since().
sub log_mark
{
	my ($node) = @_;
	return -s $node->logfile;
}

sub log_since
{
	my ($node, $mark) = @_;
	return slurp_file($node->logfile, $mark);
}

# A hash of the fields of each, in their order; the correlation id resolved.
sub decision_lines
{
	my ($log) = @_;
	return map { decision_line($_) } grep { /decision=/ } split /\n/, $log;
}

sub decision_line
{
	my ($line) = @_;
	my ($text) = $line =~ /^[^"]*? LOG:  (replica_pin: .*)$/ or die "no line of a decision: $line";
	$text =~ $form or die "not in the form of a decision: $line";
	my %fields = %+;
	my $id = delete $fields{quoted};
	if (defined $id)
	{
		$id = substr $id, 1, -1;
		$id =~ s/\\(?:x([0-9A-F]{2})|(.))/defined $1 ? chr hex $1 : $2/ge;
		die "too long: $line" if length $id > 128 || length $id == 0;
		$fields{correlation_id} = $id;
	}
	return \%fields;
}

1;
