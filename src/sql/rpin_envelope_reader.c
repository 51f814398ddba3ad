/*-------------------------------------------------------------------------
 *
 * rpin_envelope_reader.c
 *	  What the text of a message says.
 *
 *	{ "wal_locations": { "main": "<token>", ... }, "correlation_id": "...", ... }
 *
 * The text is checked in this order, each step making the next one safe: its
 * encoding, its nesting, then the server's own parser, which is given no scalar
 * action and no wish for escapes, and so allocates nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "../rpin_compat.h"

#include "common/jsonapi.h"
#include "mb/pg_wchar.h"

#include "rpin_envelope_reader.h"

/* A longer value is no position. */
#define RPIN_VALUE_SIZE 64

/* A reading under way. */
typedef struct RpinReading
{
	JsonLexContext *lex;
	const char *end;			/* of the text */
	const char *names;			/* of our locations */
	const char *name_from;		/* the next name begins at or after this */
	int			depth;			/* of objects and arrays */
	bool		in_locations;	/* depth 2, in the object wal_locations */

	int			locations_seen; /* how often the name wal_locations stood
								 * there */
	bool		locations_is_object;
	bool		unreadable;
	bool		wrong_type;		/* our location is there, and no string */
	int			names_seen;		/* bits: which of our names stood there */
	RpinEnvelope *envelope;
} RpinReading;

size_t
rpin_envelope_name(const char *names, int n, const char **name)
{
	for (;;)
	{
		size_t		length;

		names += strspn(names, ", ");
		length = strcspn(names, ", ");
		*name = names;
		if (length == 0 || n-- == 0)
			return length;
		names += length;
	}
}

/* ASCII, whatever the locale; nothing that JSON would escape. */
static bool
is_plain_name(const char *name, size_t length)
{
	return strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				  "0123456789_-.:") >= length;
}

bool
rpin_envelope_check_names(const char *names, const char **detail)
{
	int			count = 0;

	*detail = NULL;
	for (names += strspn(names, ", "); *names != '\0'; names += strspn(names, ", "))
	{
		size_t		length = strcspn(names, ", ");

		if (!is_plain_name(names, length))
			*detail = "A location name has letters, digits and _ - . : only.";
		if (length >= RPIN_LOCATION_NAME_SIZE || ++count > RPIN_LOCATION_NAMES)
			*detail = "There can be 16 names, of 63 characters each.";
		names += length;
	}
	if (count == 0)
		*detail = "There must be at least one name.";
	return *detail == NULL;
}

/* Which of our names this is, or -1. */
static int
find_name(const char *names, const char *candidate)
{
	const char *name;
	size_t		length;

	for (int i = 0; (length = rpin_envelope_name(names, i, &name)) > 0; i++)
		if (strlen(candidate) == length && memcmp(candidate, name, length) == 0)
			return i;
	return -1;
}

/* "high/low" as LSNs are written; it has no identity. */
static bool
parse_lsn(const char *value, RpinPosition *position)
{
	unsigned	high;
	unsigned	low;
	int			length = -1;

	if (strspn(value, "0123456789abcdefABCDEF/") != strlen(value) ||
		strlen(value) > 17 ||
		sscanf(value, "%8x/%8x%n", &high, &low, &length) != 2 ||
		value[length] != '\0')
		return false;
	*position = (RpinPosition) {.lsn = ((uint64) high << 32) | low};
	return position->lsn != 0;
}

bool
rpin_envelope_position(const char *value, RpinPosition *position)
{
	return rpin_token_parse(value, strlen(value), position) ||
		parse_lsn(value, position);
}

/* The value of one of our locations; the parser stands before it. */
static void
take_location(RpinReading *reading, int number)
{
	const JsonLexContext *lex = reading->lex;
	RpinEnvelope *envelope = reading->envelope;
	char		value[RPIN_VALUE_SIZE];
	RpinPosition *position = &envelope->position[envelope->count];

	/* Each of our names once, so there is room for each position. */
	if (reading->names_seen & (1 << number))
	{
		reading->unreadable = true;
		return;
	}
	reading->names_seen |= 1 << number;
	if (lex->token_type != JSON_TOKEN_STRING)
	{
		reading->wrong_type = true;
		return;
	}
	if (!rpin_json_resolve(rpin_json_next_string(lex->token_start, reading->end),
						   value, sizeof(value)) ||
		!rpin_envelope_position(value, position))
		reading->unreadable = true;
	else
		envelope->count++;
}

static RpinJsonResult
begin_structure(void *state)
{
	RpinReading *reading = state;

	reading->depth++;
	reading->name_from = reading->lex->token_terminator;
	RPIN_JSON_GO_ON;
}

static RpinJsonResult
end_structure(void *state)
{
	((RpinReading *) state)->depth--;
	RPIN_JSON_GO_ON;
}

/* A field of the message itself. */
static void
take_field(RpinReading *reading, const char *name)
{
	const JsonLexContext *lex = reading->lex;

	reading->in_locations = strcmp(name, RPIN_LOCATIONS) == 0;
	if (reading->in_locations)
	{
		reading->locations_seen++;
		reading->locations_is_object = lex->token_type == JSON_TOKEN_OBJECT_START;
	}
	if (strcmp(name, RPIN_CORRELATION) == 0 &&
		lex->token_type == JSON_TOKEN_STRING)
		reading->envelope->correlation_id = rpin_json_next_string(lex->token_start,
																  reading->end);
}

/*
 * A field's name is over and its value comes next.  The name is what stands
 * between the end of the token before it and here.
 */
static RpinJsonResult
begin_field(void *state, char *fname, bool isnull)
{
	RpinReading *reading = state;
	char		name[RPIN_LOCATION_NAME_SIZE];

	if (reading->depth > 2 ||
		!rpin_json_resolve(rpin_json_next_string(reading->name_from, reading->end),
						   name, sizeof(name)))
		name[0] = '\0';
	if (reading->depth == 1)
		take_field(reading, name);
	else if (reading->depth == 2 && reading->in_locations &&
			 find_name(reading->names, name) >= 0)
		take_location(reading, find_name(reading->names, name));
	RPIN_JSON_GO_ON;
}

/* The parser stands before the comma that the next name follows, or the end. */
static RpinJsonResult
end_field(void *state, char *fname, bool isnull)
{
	RpinReading *reading = state;

	reading->name_from = reading->lex->token_terminator;
	RPIN_JSON_GO_ON;
}

/*
 * Is the text valid in its encoding?  In a database without one, JSON is UTF-8.
 */
static bool
is_valid_text(const char *data, size_t length, int encoding)
{
	if (encoding == PG_SQL_ASCII)
		encoding = PG_UTF8;
	return pg_encoding_verifymbstr(encoding, data, (int) length) == (int) length;
}

static bool
parse(const char *data, size_t length, int encoding, RpinReading *reading)
{
	JsonSemAction action = {
		.semstate = reading,
		.object_start = begin_structure,
		.object_end = end_structure,
		.array_start = begin_structure,
		.array_end = end_structure,
		.object_field_start = begin_field,
		.object_field_end = end_field,
	};
	bool		parsed;

	reading->lex = rpin_json_lexer((char *) data, (int) length, encoding);
	parsed = pg_parse_json(reading->lex, &action) == JSON_SUCCESS;
	rpin_json_lexer_free(reading->lex);
	return parsed;
}

RpinReason
rpin_envelope_parse(const char *data, size_t length, int encoding,
					const char *names, RpinEnvelope *envelope)
{
	RpinReading reading = {
		.end = data + length,
		.names = names,
		.name_from = data,
		.envelope = envelope,
	};

	memset(envelope, 0, sizeof(*envelope));
	if (!is_valid_text(data, length, encoding) ||
		!rpin_json_is_harmless(data, length) ||
		!parse(data, length, encoding, &reading))
	{
		/* What was found before the fault is not believed. */
		memset(envelope, 0, sizeof(*envelope));
		return RPIN_REASON_ENVELOPE_UNREADABLE;
	}
	if (reading.locations_seen > 1 || reading.unreadable)
		return RPIN_REASON_ENVELOPE_UNREADABLE;
	if (!reading.locations_is_object || reading.wrong_type || envelope->count == 0)
		return RPIN_REASON_WAL_LOCATIONS_ABSENT;
	return RPIN_REASON_NONE;
}
