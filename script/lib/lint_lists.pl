# Checks of script/lint about lists that must agree: settings, SQL objects and
# tests, in the code, in the README and in the Makefile.

use strict;
use warnings;

sub readme { return -f 'README.md' ? content('README.md') : ''; }

# Everything that the README calls replica_pin.<name>, and its settings by their
# bare names in the first column of a table.
sub readme_names
{
	my %names = map { $_ => 1 } readme() =~ /\breplica_pin\.(\w+)/g;
	return \%names;
}

sub settings
{
	my %settings;
	for my $file (files(qr!^src/sql/\w*settings\w*\.[ch]$!))
	{
		$settings{$_} = 1 for content($file) =~ /"replica_pin\.(\w+)"/g;
	}
	return \%settings;
}

# The rows of a table whose first column is `replica_pin.name` or `name`, in the
# README's part on settings.
sub documented_settings
{
	my ($part) = readme() =~ /^(##+ [^\n]*settings.*?)(?=^## |\z)/ims;
	my %names = map { $_ => 1 } ($part // '') =~ /^\| *`(?:replica_pin\.)?(\w+)`/gm;
	return \%names;
}

sub settings_documented
{
	my ($code, $readme) = (settings(), documented_settings());
	return 'no settings found in src/sql' unless %$code;
	return (
		(map { "replica_pin.$_: not in the settings table of README.md" }
			  grep { !$readme->{$_} } sort keys %$code),
		(map { "replica_pin.$_: in README.md, but not a setting" }
			  grep { !$code->{$_} } sort keys %$readme));
}

# kind => { name => how many }, of a statement of the extension's scripts.
sub objects
{
	my ($statement) = @_;
	my %objects;
	for my $file (files(qr!^replica_pin--.*\.sql$!))
	{
		my $sql = content($file);
		$sql =~ s/--.*$//gm;
		while ($sql =~ /^\s*$statement\s+(FUNCTION|PROCEDURE|VIEW)\s+(?:replica_pin\.|\@extschema\@\.)?(\w+)/gim)
		{
			$objects{ lc $1 }{$2}++;
		}
	}
	return \%objects;
}

sub created { return objects(qr/CREATE(?:\s+OR\s+REPLACE)?/); }

sub objects_commented
{
	my ($created, $commented) = (created(), objects(qr/COMMENT\s+ON/));
	my @complaints;
	return 'no SQL objects found in replica_pin--*.sql' unless %$created;
	for my $kind (sort keys %$created)
	{
		for my $name (sort keys %{ $created->{$kind} })
		{
			my ($has, $needs) = ($commented->{$kind}{$name} // 0, $created->{$kind}{$name});
			push @complaints, "$kind $name: $needs created, $has commented" if $has < $needs;
		}
	}
	return @complaints;
}

sub objects_documented
{
	my $created = created();
	my %known = map { $_ => 1 } map { keys %$_ } values %$created;
	my $text = readme();
	# what else may stand behind "replica_pin."
	my %other = (%{ settings() }, map { $_ => 1 } qw(commit_token control so c));

	return (
		(map { "$_: not in README.md" } grep { $text !~ /\b\Q$_\E\b/ } sort keys %known),
		(map { "replica_pin.$_: in README.md, but there is none" }
			  grep { !$known{$_} && !$other{$_} } sort keys %{ readme_names() }));
}

sub reference_written { return complaints_of('script/reference', '--check'); }

sub versions_agree { return complaints_of('script/dist', '--check'); }

# A list of tests as make sees it.
sub make_list
{
	my ($variable) = @_;
	my $list = `make -s PG_CONFIG="\${RPIN_PG_CONFIG:-pg_config}" print-$variable 2>&1`;
	return $? == 0 ? { map { $_ => 1 } split ' ', $list } : undef;
}

sub tests_listed
{
	my ($variable, $directory, $ending) = @_;
	my $listed = make_list($variable) or return "make print-$variable failed";
	my %source = map { m!([^/]+)\.\w+$! => 1 } files(qr!^$directory/[^/]+\.$ending$!);
	my %output = map { m!([^/]+?)(?:_\d)?\.out$! => 1 } files(qr!^expected/!);

	return "there are no tests in $directory" unless %source;
	return (
		(map { "$directory/$_.$ending: not in the Makefile's $variable" }
			  grep { !$listed->{$_} } sort keys %source),
		(map { "$directory/$_.$ending: listed, but missing" }
			  grep { !$source{$_} } sort keys %$listed),
		(map { "expected/$_.out: missing" } grep { !$output{$_} } sort keys %source));
}

# Expected output that no test has would be noticed by nobody.
sub regression_listed
{
	my %tests = map { m!([^/]+)\.\w+$! => 1 } files(qr!^(?:sql|specs)/!);
	return (
		tests_listed('REGRESS', 'sql', 'sql'),
		map { "$_: there is no such test" }
		  grep { m!([^/]+?)(?:_\d)?\.out$! && !$tests{$1} } files(qr!^expected/!));
}

sub isolation_listed { return tests_listed('ISOLATION', 'specs', 'spec'); }

1;
