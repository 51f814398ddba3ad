/*-------------------------------------------------------------------------
 *
 * rpin_lag.h
 *	  When did a growing position first exceed a given one?
 *
 * So lag in time needs no clock of another machine: it is the age of the oldest
 * position here that a replica has not reached, and 0 when there is none.
 *
 * Old entries stand less densely than young ones: neighbours are never further
 * apart than a sixteenth of their age, or RPIN_LAG_GRAIN.  An answer is late
 * by that much at most, and nothing is kept from before the first note.
 *
 * Nothing here throws, allocates or reads a clock.  Times are microseconds of
 * one monotonic clock.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_LAG_H
#define RPIN_LAG_H

#include <stdint.h>

#define RPIN_LAG_ENTRIES 1024
#define RPIN_LAG_GRAIN 1000		/* microseconds */

typedef struct RpinLagEntry
{
	uint64_t	position;
	int64_t		time;
} RpinLagEntry;

typedef struct RpinLag
{
	uint32_t	count;
	RpinLagEntry entry[RPIN_LAG_ENTRIES];	/* growing in both */
} RpinLag;

extern void rpin_lag_init(RpinLag *lag);

/* The position stands at `position` now.  One that did not grow is ignored. */
extern void rpin_lag_note(RpinLag *lag, uint64_t position, int64_t now);

/*
 * When a position above `position` was first noted, or -1 if none was: then
 * nothing here is ahead of it.
 */
extern int64_t rpin_lag_since(const RpinLag *lag, uint64_t position);

#endif							/* RPIN_LAG_H */
