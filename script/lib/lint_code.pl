# Checks of script/lint about the C code.

use strict;
use warnings;

use File::Basename qw(basename);

my $longest_file     = 450;
my $longest_function = 75;

# From below. What stands directly in src/ is above them all, except for the
# version differences, which know nothing of ours.
my @layers = qw(core shmem worker sql);

my %standard_c = map { ("$_.h" => 1) } qw(assert complex ctype errno fenv float
  inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic
  stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar
  wchar wctype);

sub c_sources { return files(qr!^src/.*\.[ch]$!); }

# [file, line number, name, ours], for every include.
sub includes
{
	my @found;
	for my $file (@_)
	{
		my $number = 0;
		for my $line (split /\n/, content($file))
		{
			$number++;
			push @found, [ $file, $number, $2, $1 eq '"' ]
			  if $line =~ /^\s*#\s*include\s*([<"])([^>"]+)[>"]/;
		}
	}
	return @found;
}

sub core_is_pure
{
	my @files = files(qr!^src/core/.*\.[ch]$!);
	my %own = map { basename($_) => 1 } @files;
	return 'there is no src/core' unless @files;
	return map { "$_->[0]:$_->[1]: includes $_->[2]" }
	  grep { !($_->[3] ? $own{ $_->[2] } : $standard_c{ $_->[2] }) } includes(@files);
}

sub layer_of
{
	my ($file) = @_;
	return -1 if $file eq 'src/rpin_compat.h';
	for my $rank (0 .. $#layers)
	{
		return $rank if $file =~ m!^src/\Q$layers[$rank]\E/!;
	}
	return scalar @layers;
}

sub layers
{
	my %home = map { basename($_) => $_ } files(qr!^src/.*\.h$!);
	my @complaints;
	for my $include (includes(c_sources()))
	{
		my ($file, $number, $name) = @$include;
		my $header = $home{ basename($name) } or next;
		push @complaints, "$file:$number: includes $header, of a layer above it"
		  if layer_of($header) > layer_of($file);
	}
	return @complaints;
}

sub libpq_only_in_worker
{
	my $libpq = qr!^(?:libpq-fe\.h|libpq-events\.h|pqexpbuffer\.h|libpq/libpq-be-fe-helpers\.h)$!;
	return map { "$_->[0]:$_->[1]: includes $_->[2]" }
	  grep { $_->[2] =~ $libpq && $_->[0] !~ m!^src/worker/! } includes(c_sources());
}

sub header_comments
{
	my @complaints;
	for my $file (files(qr!\.[ch]$!))
	{
		my $name = basename($file);
		my ($comment) = content($file) =~ m!\A/\*(.*?)\*/!s;
		push @complaints, "$file: does not begin with a comment that names it"
		  unless defined $comment && $comment =~ /^ \* \Q$name\E$/m;
	}
	return @complaints;
}

sub file_lengths
{
	return grep { defined } map {
		my $lines = content($_) =~ tr/\n//;
		$lines > $longest_file ? "$_: $lines lines, $longest_file at most" : undef
	} c_sources();
}

# From the brace in the first column to the next one there; a type's is followed
# by its name.
sub function_lengths
{
	my @complaints;
	for my $file (files(qr!^src/.*\.c$!))
	{
		my ($begin, $name, $number) = (0, '', 0);
		for my $line (split /\n/, content($file))
		{
			$number++;
			$name = $1 if $line =~ /^(\w+)\(/;
			$begin = $number if $line eq '{';
			next unless $line eq '}';
			my $lines = $number - $begin + 1;
			push @complaints, "$file:$begin: $name: $lines lines, $longest_function at most"
			  if $lines > $longest_function;
		}
	}
	return @complaints;
}

sub symbols
{
	my ($directory) = @_;
	my @objects = sort glob("$directory/src/*.o $directory/src/*/*.o");
	return "there are no objects in $directory/src" unless @objects;

	my $allowed = qr/^(?:rpin_|Rpin|pg_finfo_rpin_|_PG_init$|Pg_magic_func$)/;
	my @complaints;
	for my $object (@objects)
	{
		my @lines = `nm --extern-only --defined-only '$object'`;
		push @complaints, "$object: nm failed" if $? != 0;
		for my $line (@lines)
		{
			my ($name) = $line =~ /(\S+)$/;
			push @complaints, "$object: $name" if $name !~ $allowed;
		}
	}
	return @complaints;
}

1;
