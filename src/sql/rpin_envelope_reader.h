/*-------------------------------------------------------------------------
 *
 * rpin_envelope_reader.h
 *	  What the text of a message says.
 *
 * Knows the server's JSON parser and nothing else of the server, so it is the
 * same in a program of its own, which the fuzzer needs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_ENVELOPE_READER_H
#define RPIN_ENVELOPE_READER_H

#include "../core/rpin_json.h"
#include "../core/rpin_reason.h"
#include "../core/rpin_token.h"

/* The fields of a message that are ours. */
#define RPIN_LOCATIONS "wal_locations"
#define RPIN_CORRELATION "correlation_id"

/* As many locations as one cluster can have names, and how long they can be. */
#define RPIN_LOCATION_NAMES 16
#define RPIN_LOCATION_NAME_SIZE 64

typedef struct RpinEnvelope
{
	int			count;			/* positions of ours, one for each name */
	RpinPosition position[RPIN_LOCATION_NAMES]; /* a bare LSN has timeline 0 */
	RpinJsonString correlation_id;	/* points into the text */
} RpinEnvelope;

/*
 * Reads a message.  `names` are our locations, in the form of the setting
 * location_names.  RPIN_REASON_NONE with at least one position; or the reason
 * that stands against it, perhaps with a correlation id.
 *
 * For any bytes, in any encoding that a server can have: does not raise, and
 * gives back all memory, which is constant (P2).
 */
extern RpinReason rpin_envelope_parse(const char *data, size_t length,
									  int encoding, const char *names,
									  RpinEnvelope *envelope);

/*
 * Reads a position as it stands in a message: a token or a bare LSN, which has
 * timeline 0.  False, if it is neither.
 */
extern bool rpin_envelope_position(const char *value, RpinPosition *position);

/* The n-th of some names, from 0, and its length; 0 at the end. */
extern size_t rpin_envelope_name(const char *names, int n, const char **name);

/* May this string be the setting location_names?  Why not, in *detail. */
extern bool rpin_envelope_check_names(const char *names, const char **detail);

#endif							/* RPIN_ENVELOPE_READER_H */
