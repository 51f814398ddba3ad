/*-------------------------------------------------------------------------
 *
 * rpin_lag.c
 *	  A history of (position, time) that thins out with age.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_lag.h"

/* How far the kept neighbour of an entry of this age may be. */
#define RPIN_LAG_FRACTION 16

void
rpin_lag_init(RpinLag *lag)
{
	lag->count = 0;
}

/* May two entries this far apart, the older one this old, become one? */
static int
may_merge(int64_t distance, int64_t age)
{
	int64_t		limit = age / RPIN_LAG_FRACTION;

	return distance <= (limit > RPIN_LAG_GRAIN ? limit : RPIN_LAG_GRAIN);
}

/*
 * Drops an entry when its neighbours are close enough without it.  The number
 * that stays is about sixteen times the logarithm of oldest age over grain: 350
 * for a month.  Should the clock say otherwise, the oldest entries go.
 */
static void
thin_out(RpinLag *lag, int64_t now)
{
	uint32_t	kept = 1;

	for (uint32_t i = 1; i + 1 < lag->count; i++)
	{
		int64_t		last = lag->entry[kept - 1].time;

		if (!may_merge(lag->entry[i + 1].time - last, now - last))
			lag->entry[kept++] = lag->entry[i];
	}
	lag->entry[kept++] = lag->entry[lag->count - 1];

	if (kept > RPIN_LAG_ENTRIES / 2)
	{
		uint32_t	surplus = kept - RPIN_LAG_ENTRIES / 2;

		kept -= surplus;
		for (uint32_t i = 0; i < kept; i++)
			lag->entry[i] = lag->entry[i + surplus];
	}
	lag->count = kept;
}

void
rpin_lag_note(RpinLag *lag, uint64_t position, int64_t now)
{
	if (lag->count > 0 && lag->entry[lag->count - 1].position >= position)
		return;
	if (lag->count == RPIN_LAG_ENTRIES)
		thin_out(lag, now);
	lag->entry[lag->count].position = position;
	lag->entry[lag->count].time = now;
	lag->count++;
}

int64_t
rpin_lag_since(const RpinLag *lag, uint64_t position)
{
	uint32_t	low = 0;
	uint32_t	high = lag->count;

	while (low < high)
	{
		uint32_t	middle = low + (high - low) / 2;

		if (lag->entry[middle].position > position)
			high = middle;
		else
			low = middle + 1;
	}
	return low < lag->count ? lag->entry[low].time : -1;
}
