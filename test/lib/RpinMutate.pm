# Messages that somebody has tampered with, the same ones for the same seed.

package RpinMutate;

use strict;
use warnings;

use Exporter qw(import);

our @EXPORT = qw(mutated_envelopes);

# Perl's own generator gives the same numbers for a seed on every machine.
sub below { return int rand $_[0]; }

sub one_of { return $_[ below(scalar @_) ]; }

# Each takes bytes and gives bytes.
my @mutations = (
	sub { my ($text) = @_; flip($text) for 1 .. 1 + below(4); return $text; },
	sub { my ($text) = @_; return substr $text, 0, below(1 + length $text); },
	sub { my ($text) = @_; return $text . $text; },
	sub { my ($text, $all) = @_; return splice_texts($text, one_of(@$all)); },
	sub { my ($text) = @_; return insert($text, one_of('\u0000', '\ud83d\ude00', '\ude00', '\u', '\x', '\\', '"')); },
	sub { my ($text) = @_; return insert($text, one_of("\xEF\xBB\xBF", "\xC3\xA9", "\xE9", "\xFF\xFE", "\xED\xA0\x80", "\x01", "\x7F", "\n")); },
	sub { my ($text) = @_; return one_of("\xEF\xBB\xBF", "\n\t ", '[', '{"a":') . $text; },
	sub { my ($text) = @_; return insert($text, one_of('[', ']', '{', '}', ',', ':') x (1 + below(80))); },
	sub { my ($text) = @_; $text =~ s/(\d+)/$1 . '9' x below(400)/e; return $text; },
	sub { my ($text) = @_; $text =~ s/\{/'{"n":' . one_of('1e999', '-0', '01', '1' x 300, '.5') . ','/e; return $text; },
	sub { my ($text) = @_; $text =~ s/(("(?:main|wal_locations|correlation_id)"):[^,{}]*),/$1,$1,/; return $text; },
	sub { my ($text) = @_; $text =~ s/("wal_locations":\{[^}]*\})/$1,$1/; return $text; },
	sub { my ($text, $all) = @_; my $inner = one_of(@$all); $text =~ s/\}\s*$/,"inner":$inner}/; return $text; },
	sub { my ($text, $all) = @_; return '{"wal_locations":' . $text . '}'; },
	sub { my ($text) = @_; return escape_names($text); },
	sub { my ($text) = @_; $text =~ s/"([0-9A-F-]{42}|[0-9A-F]+\/[0-9A-F]+)"/'"' . mangle($1) . '"'/e; return $text; },
	sub { my ($text) = @_; $text =~ s/("correlation_id": ?)"[^"]*"/$1 . '"' . random_string() . '"'/e; return $text; },
	sub { my ($text) = @_; $text =~ s/:"[^"]*"/':' . one_of('null', '1', '[]', '{}', 'true', '""', '" "')/e; return $text; });

sub flip
{
	my $at = below(length $_[0] || return);
	substr($_[0], $at, 1) ^= chr(1 << below(8));
	return;
}

sub insert
{
	my ($text, $what) = @_;
	substr($text, below(1 + length $text), 0) = $what;
	return $text;
}

sub splice_texts
{
	my ($a, $b) = @_;
	return substr($a, 0, below(1 + length $a)) . substr($b, below(1 + length $b));
}

sub escape_names
{
	my ($text) = @_;
	$text =~ s{(?<=["_a-z])([a-z_])}{below(3) ? $1 : sprintf(one_of('\u%04x', '\u%04X'), ord $1)}ge;
	return $text;
}

sub mangle
{
	my ($position) = @_;
	return one_of(lc $position, substr($position, 1), $position . '0', '0/0', '0/1', 'FFFFFFFF/FFFFFFFF',
		$position =~ s/^..../FFFF/r, $position =~ s/-0000000\d-/-00000009-/r, ' ' . $position,
		$position =~ s/^([0-9A-F]+-[0-9A-F]+-)../$1FF/r, $position =~ s/-/_/r);
}

# As it stands between the quotes of a JSON text, if it is one.
sub random_string
{
	return join '', map { one_of('x', ' ', '=', '\"', '\\\\', '\n', '\u0007', "\xC3\xA9", "\x1F", "'", 'LOG:  ') } 1 .. below(200);
}

# So many, made of these. Of twenty, one is as it was. No zero byte, which no text
# can have.
sub mutated_envelopes
{
	my ($seed, $count, @envelopes) = @_;
	my @mutated;
	srand $seed;
	for (1 .. $count)
	{
		my $text = one_of(@envelopes);
		if (below(20))
		{
			$text = one_of(@mutations)->($text, \@envelopes) for 1 .. 1 + below(3);
		}
		$text =~ tr/\0/0/;
		push @mutated, $text;
	}
	return @mutated;
}

1;
