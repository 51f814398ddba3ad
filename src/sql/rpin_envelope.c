/*-------------------------------------------------------------------------
 *
 * rpin_envelope.c
 *	  Reading the position out of a message.
 *
 *	{ "wal_locations": { "main": "<token>", ... }, "correlation_id": "...", ... }
 *
 * The text is checked in this order, each step making the next one safe: its
 * size before it is detoasted, its encoding, its nesting, then the server's own
 * parser, which is given no scalar action and no wish for escapes, and so
 * allocates nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "common/jsonapi.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/varlena.h"

#include "../core/rpin_json.h"
#include "../rpin_compat.h"
#include "../shmem/rpin_wal.h"
#include "rpin_envelope.h"

/* Longer names and positions are not ours. */
#define RPIN_LOCATION_NAME_SIZE 64
#define RPIN_VALUE_SIZE 64

/* As many locations as one cluster can have names. */
#define RPIN_LOCATION_NAMES 16

char	   *rpin_location_names = NULL;
int			rpin_max_envelope_size = 1024 * 1024;

/* A reading under way. */
typedef struct RpinEnvelope
{
	JsonLexContext *lex;
	const char *end;			/* of the text */
	const char *name_from;		/* the next name begins at or after this */
	int			depth;			/* of objects and arrays */
	bool		in_locations;	/* depth 2, in the object wal_locations */
	char		field[RPIN_LOCATION_NAME_SIZE]; /* of depth 1; "" if not ours */

	int			locations_seen; /* how often the name wal_locations stood
								 * there */
	bool		locations_is_object;
	bool		unreadable;
	bool		wrong_type;		/* our location is there, and no string */
	int			names_seen;		/* bits: which of our names stood there */
	int			count;			/* positions found */
	RpinPosition position[RPIN_LOCATION_NAMES];
	RpinJsonString correlation_id;
} RpinEnvelope;

size_t
rpin_envelope_location_name(int n, const char **name)
{
	/* The default stands where the library is not preloaded, too. */
	const char *names = rpin_location_names != NULL ? rpin_location_names :
		RPIN_LOCATION_DEFAULT;

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
find_name(const char *candidate)
{
	const char *name;
	size_t		length;

	for (int i = 0; (length = rpin_envelope_location_name(i, &name)) > 0; i++)
		if (strlen(candidate) == length && memcmp(candidate, name, length) == 0)
			return i;
	return -1;
}

/*
 * "high/low" as LSNs are written, of the current timeline.  Publishers of these
 * take them from pg_current_wal_insert_lsn(), which may stand behind a page
 * header.
 */
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
	*position = rpin_wal_position(rpin_wal_end_of(((uint64) high << 32) | low));
	return position->lsn != 0;
}

/* The value of one of our locations; the parser stands before it. */
static void
take_location(RpinEnvelope *envelope, int number)
{
	JsonLexContext *lex = envelope->lex;
	char		value[RPIN_VALUE_SIZE];
	RpinPosition *position = &envelope->position[envelope->count];

	/* Each of our names once, so there is room for each position. */
	if (envelope->names_seen & (1 << number))
	{
		envelope->unreadable = true;
		return;
	}
	envelope->names_seen |= 1 << number;
	if (lex->token_type != JSON_TOKEN_STRING)
	{
		envelope->wrong_type = true;
		return;
	}
	if (!rpin_json_resolve(rpin_json_next_string(lex->token_start, envelope->end),
						   value, sizeof(value)) ||
		(!rpin_token_parse(value, strlen(value), position) &&
		 !parse_lsn(value, position)))
		envelope->unreadable = true;
	else
		envelope->count++;
}

static RpinJsonResult
begin_structure(void *state)
{
	RpinEnvelope *envelope = state;

	envelope->depth++;
	envelope->name_from = envelope->lex->token_terminator;
	RPIN_JSON_GO_ON;
}

static RpinJsonResult
end_structure(void *state)
{
	((RpinEnvelope *) state)->depth--;
	RPIN_JSON_GO_ON;
}

/* A field of the message itself. */
static void
take_field(RpinEnvelope *envelope, const char *name)
{
	const JsonLexContext *lex = envelope->lex;

	envelope->in_locations = strcmp(name, RPIN_LOCATIONS) == 0;
	if (envelope->in_locations)
	{
		envelope->locations_seen++;
		envelope->locations_is_object = lex->token_type == JSON_TOKEN_OBJECT_START;
	}
	if (strcmp(name, RPIN_CORRELATION) == 0 &&
		lex->token_type == JSON_TOKEN_STRING)
		envelope->correlation_id = rpin_json_next_string(lex->token_start,
														 envelope->end);
}

/*
 * A field's name is over and its value comes next.  The name is what stands
 * between the end of the token before it and here.
 */
static RpinJsonResult
begin_field(void *state, char *fname, bool isnull)
{
	RpinEnvelope *envelope = state;
	char		name[RPIN_LOCATION_NAME_SIZE];

	if (envelope->depth > 2 ||
		!rpin_json_resolve(rpin_json_next_string(envelope->name_from, envelope->end),
						   name, sizeof(name)))
		name[0] = '\0';
	if (envelope->depth == 1)
		take_field(envelope, name);
	else if (envelope->depth == 2 && envelope->in_locations &&
			 find_name(name) >= 0)
		take_location(envelope, find_name(name));
	RPIN_JSON_GO_ON;
}

/* The parser stands before the comma that the next name follows, or the end. */
static RpinJsonResult
end_field(void *state, char *fname, bool isnull)
{
	RpinEnvelope *envelope = state;

	envelope->name_from = envelope->lex->token_terminator;
	RPIN_JSON_GO_ON;
}

/*
 * Is the text valid in its encoding?  In a database without one, JSON is UTF-8.
 */
static bool
is_valid_text(const char *data, size_t length)
{
	int			encoding = GetDatabaseEncoding();

	if (encoding == PG_SQL_ASCII)
		encoding = PG_UTF8;
	return pg_encoding_verifymbstr(encoding, data, length) == (int) length;
}

static bool
parse(const char *data, size_t length, RpinEnvelope *envelope)
{
	JsonSemAction action = {
		.semstate = envelope,
		.object_start = begin_structure,
		.object_end = end_structure,
		.array_start = begin_structure,
		.array_end = end_structure,
		.object_field_start = begin_field,
		.object_field_end = end_field,
	};

	memset(envelope, 0, sizeof(*envelope));
	envelope->end = data + length;
	envelope->name_from = data;
	envelope->lex = rpin_json_lexer((char *) data, (int) length);
	return pg_parse_json(envelope->lex, &action) == JSON_SUCCESS;
}

static void
add_positions(const RpinEnvelope *envelope, RpinDemand *demand)
{
	if (envelope->locations_seen > 1 || envelope->unreadable)
		rpin_demand_add_fault(demand, RPIN_REASON_ENVELOPE_UNREADABLE);
	else if (!envelope->locations_is_object || envelope->wrong_type ||
			 envelope->count == 0)
		rpin_demand_add_fault(demand, RPIN_REASON_WAL_LOCATIONS_ABSENT);
	else
		for (int i = 0; i < envelope->count; i++)
			rpin_demand_add_position(demand, &envelope->position[i]);
}

void
rpin_envelope_read(Datum envelope, RpinDemand *demand)
{
	RpinEnvelope reading;
	text	   *detoasted;
	const char *data;
	size_t		length;

	if (toast_raw_datum_size(envelope) - VARHDRSZ > (Size) rpin_max_envelope_size)
	{
		rpin_demand_add_fault(demand, RPIN_REASON_ENVELOPE_UNREADABLE);
		return;
	}
	detoasted = DatumGetTextPP(envelope);
	data = VARDATA_ANY(detoasted);
	length = VARSIZE_ANY_EXHDR(detoasted);
	if (!is_valid_text(data, length) || !rpin_json_is_harmless(data, length) ||
		!parse(data, length, &reading))
	{
		rpin_demand_add_fault(demand, RPIN_REASON_ENVELOPE_UNREADABLE);
		return;
	}
	demand->correlation_id = reading.correlation_id.start;
	demand->correlation_id_length = reading.correlation_id.length;
	add_positions(&reading, demand);
}
