/*-------------------------------------------------------------------------
 *
 * rpin_keyset.h
 *	  The session keys that one transaction pins, by fingerprint.
 *
 * A fixed size: it is filled where errors may happen and read in the commit
 * path, where nothing may be allocated (P5).  A transaction that pins more
 * distinct keys than fit pins every key there is: `all`.
 *
 * Nothing here throws, allocates or waits.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_KEYSET_H
#define RPIN_KEYSET_H

#include <stdbool.h>
#include <stdint.h>

#define RPIN_KEYSET_SIZE 1024

/* A power of two, twice the size: collisions stay short. */
#define RPIN_KEYSET_INDEX 2048

typedef struct RpinKeyset
{
	bool		all;			/* more than fit: every key */
	uint32_t	count;
	uint64_t	fingerprint[RPIN_KEYSET_SIZE];	/* in the order of adding */
	uint16_t	index[RPIN_KEYSET_INDEX];	/* position + 1; 0: free */
} RpinKeyset;

/* A keyset of zero bytes is an empty one. */
extern void rpin_keyset_clear(RpinKeyset *keyset);

extern void rpin_keyset_add(RpinKeyset *keyset, uint64_t fingerprint);

static inline bool
rpin_keyset_is_empty(const RpinKeyset *keyset)
{
	return !keyset->all && keyset->count == 0;
}

#endif							/* RPIN_KEYSET_H */
