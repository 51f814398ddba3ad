/*-------------------------------------------------------------------------
 *
 * rpin_json.h
 *	  What has to be known of a JSON text before and beside a real parser.
 *
 * The parser is the server's.  It raises on deep nesting, so nesting is bounded
 * before; and it hands out the text of names only through a de-escaper that
 * raises for characters that the server's encoding lacks, so ours compares them
 * as they stand.
 *
 * Nothing here throws, allocates or keeps state.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_JSON_H
#define RPIN_JSON_H

#include <stdbool.h>
#include <stddef.h>

/* An envelope has its locations in the second level; payloads have a few. */
#define RPIN_JSON_DEPTH 64

/* A string of a JSON text, without its quotes, escapes as they stand. */
typedef struct RpinJsonString
{
	const char *start;			/* NULL: none */
	size_t		length;
} RpinJsonString;

/*
 * May the text be given to the parser: is it nested no deeper than
 * RPIN_JSON_DEPTH, and free of the escape \u0000, which no text can hold?
 * Strings are told from the rest as the parser does up to its first error.
 */
extern bool rpin_json_is_harmless(const char *text, size_t length);

/*
 * The string that begins at the first quote at or after `text`.  None if that is
 * not closed before `end`.
 */
extern RpinJsonString rpin_json_next_string(const char *text, const char *end);

/*
 * Copies a string with its escapes resolved, and a zero byte; false if it does
 * not fit, or has anything but ASCII in it after that.
 */
extern bool rpin_json_resolve(RpinJsonString string, char *to, size_t size);

#endif							/* RPIN_JSON_H */
