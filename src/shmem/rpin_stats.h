/*-------------------------------------------------------------------------
 *
 * rpin_stats.h
 *	  Counters of the server.
 *
 * Each is kept in several places, so that backends that count at one moment do
 * not wait for each other's cache line.  Nothing here throws, allocates or
 * locks, so counting is safe in the commit path (P5).  Times are microseconds of
 * rpin_clock_now().
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_STATS_H
#define RPIN_STATS_H

#include "datatype/timestamp.h"

#include "../core/rpin_reason.h"

extern Size rpin_stats_shmem_size(void);
extern void rpin_stats_shmem_init(void);

/* A decision: why, were it enforced; and whether it was. */
extern void rpin_stats_count_decision(RpinReason reason, bool enforced);
extern uint64 rpin_stats_decisions(RpinReason reason, bool enforced);

/* A commit of a client that wrote, with capture on, and pinned no key. */
extern void rpin_stats_count_unkeyed(void);
extern uint64 rpin_stats_unkeyed(void);

/*
 * Begins all counts at zero, and tells since when they count.  A count that is
 * made at the same moment may go to either side.
 */
extern void rpin_stats_reset(void);
extern TimestampTz rpin_stats_since(void);

/*
 * May a line be logged for this reason now?  Of a burst the first ones may; then
 * *left_out of the next line is how many may not.
 */
extern bool rpin_stats_may_log(RpinReason reason, int64 now, uint64 *left_out);

#endif							/* RPIN_STATS_H */
