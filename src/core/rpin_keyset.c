/*-------------------------------------------------------------------------
 *
 * rpin_keyset.c
 *	  The session keys that one transaction pins.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_keyset.h"

/*
 * Where a fingerprint stands in the index, or the free place where it would.
 * The index is never more than half full.
 */
static uint16_t *
find_place(RpinKeyset *keyset, uint64_t fingerprint)
{
	uint32_t	at = (uint32_t) fingerprint & (RPIN_KEYSET_INDEX - 1);

	while (keyset->index[at] != 0 &&
		   keyset->fingerprint[keyset->index[at] - 1] != fingerprint)
		at = (at + 1) & (RPIN_KEYSET_INDEX - 1);
	return &keyset->index[at];
}

void
rpin_keyset_add(RpinKeyset *keyset, uint64_t fingerprint)
{
	uint16_t   *place = find_place(keyset, fingerprint);

	if (*place != 0)
		return;
	if (keyset->count == RPIN_KEYSET_SIZE)
	{
		keyset->all = true;
		return;
	}
	keyset->fingerprint[keyset->count++] = fingerprint;
	*place = (uint16_t) keyset->count;
}

/*
 * Youngest first: to remove the last one added never breaks the way to another.
 */
void
rpin_keyset_clear(RpinKeyset *keyset)
{
	while (keyset->count > 0)
	{
		*find_place(keyset, keyset->fingerprint[keyset->count - 1]) = 0;
		keyset->count--;
	}
	keyset->all = false;
}
