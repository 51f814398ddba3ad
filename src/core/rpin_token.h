/*-------------------------------------------------------------------------
 *
 * rpin_token.h
 *	  A position with its identity, and its text form.
 *
 * The text is system identifier, timeline and LSN in upper-case hexadecimal of
 * fixed width, joined by '-'.  So it is safe in a cookie, a header and a URL,
 * and within one cluster the order of the strings is the order of the
 * positions (P8).
 *
 * Nothing here throws, allocates or keeps state.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_TOKEN_H
#define RPIN_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct RpinPosition
{
	uint64_t	system_identifier;
	uint32_t	timeline;
	uint64_t	lsn;			/* byte position in the WAL, an end pointer */
} RpinPosition;

/* 16 + 1 + 8 + 1 + 16 characters, without the terminating zero byte. */
#define RPIN_TOKEN_LENGTH 42

/* Writes RPIN_TOKEN_LENGTH characters and a zero byte. */
extern void rpin_token_format(const RpinPosition *position,
							  char text[RPIN_TOKEN_LENGTH + 1]);

/*
 * Reads a token of exactly `length` bytes, in either case.  False, with
 * *position untouched, for anything else, and for timeline 0 or LSN 0.  The
 * text need not be terminated; any byte may occur in it.
 */
extern bool rpin_token_parse(const char *text, size_t length,
							 RpinPosition *position);

#endif							/* RPIN_TOKEN_H */
