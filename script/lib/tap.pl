#!/usr/bin/perl
#
# usage: tap.pl jobs library,... file ...
#
# Runs TAP files, several at a time. A file that dies, plans other tests than it
# runs, or runs none at all counts as one more failure. What a failed file wrote
# to its log is shown. Ends with "N passed, N failed".

use strict;
use warnings;

use File::Basename qw(basename);
use TAP::Harness;

my $log_lines = 60;

my ($jobs, $libraries, @files) = @ARGV;
my $harness = TAP::Harness->new(
	{ jobs => $jobs, lib => [ split /,/, $libraries ], timer => 1, failures => 1 });
my $results = $harness->runtests(@files);
my ($passed, $failed) = (0, 0);

for my $file (@files)
{
	my ($parser) = $results->parsers($file);
	my $wrong = $parser->failed;
	if (!$wrong && $parser->tests_run == 0)
	{
		my $why = $parser->skip_all ? 'skipped: ' . $parser->skip_all : 'no test';
		print "$file ran nothing ($why)\n";
	}
	$wrong = 1 if !$wrong && ($parser->has_problems || $parser->tests_run == 0);
	$passed += $parser->passed;
	$failed += $wrong;
	show_log($file) if $wrong;
}
print "$passed passed, $failed failed\n";
exit($failed ? 1 : 0);

sub show_log
{
	my ($file) = @_;
	my $log = "$ENV{TESTDIR}/tmp_check/log/regress_log_" . basename($file, '.pl');
	open(my $handle, '<', $log) or return;
	my @lines = <$handle>;
	splice @lines, 0, -$log_lines if @lines > $log_lines;
	print "--- the end of $log\n", @lines, "---\n";
	return;
}
