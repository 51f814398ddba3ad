/*-------------------------------------------------------------------------
 *
 * reference_envelope.h
 *	  What the text of a message says, by another reader.
 *
 * It shares nothing with the one under test but the server's opinion on what is
 * JSON and what is valid in an encoding.  It goes through the values one within
 * the other rather than being called by a parser, and resolves every escape.
 *
 *-------------------------------------------------------------------------
 */
#ifndef REFERENCE_ENVELOPE_H
#define REFERENCE_ENVELOPE_H

#include "rpin_fuzz.h"
#include "rpin_envelope_reader.h"

typedef struct ReferenceReading
{
	RpinReason	reason;
	int			count;
	RpinPosition position[RPIN_LOCATION_NAMES]; /* in their order in the text */
	const char *correlation_id; /* NULL: none */
	size_t		correlation_id_length;
} ReferenceReading;

/* `names` ends with NULL. */
extern void reference_read(const char *text, size_t size, int encoding,
						   const char *const *names, ReferenceReading *reading);

#endif							/* REFERENCE_ENVELOPE_H */
