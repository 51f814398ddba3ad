/*-------------------------------------------------------------------------
 *
 * reference_envelope.c
 *	  What the text of a message says, by another reader.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <ctype.h>

#include "common/jsonapi.h"
#include "mb/pg_wchar.h"

#include "reference_envelope.h"

/* Of what is not ASCII. */
#define OTHER '\x80'

/* Where a value stands. */
typedef enum Place
{
	MESSAGE,
	LOCATIONS,
	ELSEWHERE
} Place;

typedef struct Walk
{
	const char *at;
	const char *end;
	const char *const *names;
	int			depth;
	bool		deep;			/* somewhere deeper than 64 */
	bool		zero;			/* a string has \u0000 */
	int			locations;		/* how often */
	bool		locations_object;
	bool		bad;			/* given twice, or no position */
	bool		no_string;
	bool		seen[RPIN_LOCATION_NAMES];
	ReferenceReading *reading;
} Walk;

/* Strings, for as long as one is looked at. */
static char name_text[RPIN_FUZZ_LIMIT];
static char value_text[RPIN_FUZZ_LIMIT];

static void walk_value(Walk *walk, Place place);

static bool
is_json(const char *text, size_t size, int encoding)
{
	JsonLexContext *lex = makeJsonLexContextCstringLen(unconstify(char *, text), (int) size,
													   encoding, false);
	bool		valid = pg_parse_json(lex, &nullSemAction) == JSON_SUCCESS;

	free(lex);
	return valid;
}

/* A string from its quote on, resolved; the walk stands behind it afterwards. */
static void
walk_string(Walk *walk, char *resolved)
{
	static const char plain[] = "\"\"\\\\//b\bf\fn\nr\rt\t";

	for (walk->at++; *walk->at != '"'; walk->at++)
	{
		char		c = *walk->at;

		if (c == '\\' && *++walk->at == 'u')
		{
			char		digits[5] = {0};
			long		code;

			memcpy(digits, walk->at + 1, 4);
			code = strtol(digits, NULL, 16);
			walk->at += 4;
			walk->zero |= code == 0;
			c = code < 128 ? (char) code : OTHER;
		}
		else if (c == '\\')
			for (int i = 0; plain[i] != '\0'; i += 2)
				c = plain[i] == *walk->at ? plain[i + 1] : c;
		*resolved++ = (signed char) c < 0 ? OTHER : c;
	}
	walk->at++;
	*resolved = '\0';
}

static void
skip_blanks(Walk *walk)
{
	while (walk->at < walk->end && strchr(" \t\r\n", *walk->at) != NULL)
		walk->at++;
}

/* As many hexadecimal digits, between the least and the most; 0 if not. */
static int
digits(const char *text, int least, int most)
{
	int			count = 0;

	while (isxdigit((unsigned char) text[count]))
		count++;
	return count >= least && count <= most ? count : 0;
}

static bool
read_position(const char *text, RpinPosition *position)
{
	int			high = digits(text, 1, 8);

	memset(position, 0, sizeof(*position));
	if (strlen(text) == 42 && digits(text, 16, 16) && text[16] == '-' &&
		digits(text + 17, 8, 8) && text[25] == '-' && digits(text + 26, 16, 16))
	{
		position->system_identifier = strtoull(text, NULL, 16);
		position->timeline = (uint32) strtoul(text + 17, NULL, 16);
		position->lsn = strtoull(text + 26, NULL, 16);
		return position->timeline != 0 && position->lsn != 0;
	}
	if (high == 0 || text[high] != '/' || !digits(text + high + 1, 1, 8) ||
		text[high + 1 + digits(text + high + 1, 1, 8)] != '\0')
		return false;
	position->lsn = strtoull(text, NULL, 16) << 32 | strtoull(text + high + 1, NULL, 16);
	return position->lsn != 0;
}

/* Resolves the string that the walk stands before. Its end. */
static const char *
peek_string(const Walk *walk)
{
	Walk		ahead = *walk;

	walk_string(&ahead, value_text);
	return ahead.at;
}

static void
see_location(Walk *walk, const char *name)
{
	ReferenceReading *reading = walk->reading;

	for (int i = 0; walk->names[i] != NULL; i++)
	{
		if (strcmp(name, walk->names[i]) != 0)
			continue;
		if (walk->seen[i])
			walk->bad = true;
		else if (*walk->at != '"')
			walk->no_string = true;
		else
		{
			peek_string(walk);
			if (read_position(value_text, &reading->position[reading->count]))
				reading->count++;
			else
				walk->bad = true;
		}
		walk->seen[i] = true;
	}
}

static Place
see_field(Walk *walk, const char *name)
{
	if (strcmp(name, RPIN_CORRELATION) == 0 && *walk->at == '"')
	{
		walk->reading->correlation_id = walk->at + 1;
		walk->reading->correlation_id_length = (size_t) (peek_string(walk) - walk->at - 2);
	}
	if (strcmp(name, RPIN_LOCATIONS) != 0)
		return ELSEWHERE;
	walk->locations++;
	walk->locations_object = *walk->at == '{';
	return walk->locations_object ? LOCATIONS : ELSEWHERE;
}

static void
walk_field(Walk *walk, Place place)
{
	Place		within = ELSEWHERE;

	walk_string(walk, name_text);
	skip_blanks(walk);
	walk->at++;
	skip_blanks(walk);
	if (place == MESSAGE)
		within = see_field(walk, name_text);
	else if (place == LOCATIONS)
		see_location(walk, name_text);
	walk_value(walk, within);
}

/* An object or an array. */
static void
walk_members(Walk *walk, Place place, char close)
{
	walk->deep |= ++walk->depth > 64;
	for (walk->at++; skip_blanks(walk), *walk->at != close;)
	{
		if (*walk->at == ',')
			walk->at++;
		else if (close == '}')
			walk_field(walk, place);
		else
			walk_value(walk, ELSEWHERE);
	}
	walk->depth--;
	walk->at++;
}

static void
walk_value(Walk *walk, Place place)
{
	skip_blanks(walk);
	if (*walk->at == '{')
		walk_members(walk, place, '}');
	else if (*walk->at == '[')
		walk_members(walk, ELSEWHERE, ']');
	else if (*walk->at == '"')
		walk_string(walk, value_text);
	else
		while (walk->at < walk->end && strchr(",]} \t\r\n", *walk->at) == NULL)
			walk->at++;
}

void
reference_read(const char *text, size_t size, int encoding,
			   const char *const *names, ReferenceReading *reading)
{
	Walk		walk = {
		.at = text, .end = text + size, .names = names, .reading = reading,
	};

	memset(reading, 0, sizeof(*reading));
	reading->reason = RPIN_REASON_ENVELOPE_UNREADABLE;
	if (encoding == PG_SQL_ASCII)
		encoding = PG_UTF8;
	if (pg_encoding_verifymbstr(encoding, text, (int) size) != (int) size ||
		!is_json(text, size, encoding))
		return;
	walk_value(&walk, MESSAGE);
	if (walk.deep || walk.zero)
	{
		memset(reading, 0, sizeof(*reading));
		reading->reason = RPIN_REASON_ENVELOPE_UNREADABLE;
	}
	else if (walk.locations > 1 || walk.bad)
		reading->reason = RPIN_REASON_ENVELOPE_UNREADABLE;
	else if (!walk.locations_object || walk.no_string || reading->count == 0)
		reading->reason = RPIN_REASON_WAL_LOCATIONS_ABSENT;
	else
		reading->reason = RPIN_REASON_NONE;
}
