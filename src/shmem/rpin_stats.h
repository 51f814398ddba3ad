/*-------------------------------------------------------------------------
 *
 * rpin_stats.h
 *	  Counters of the server.
 *
 * Each is kept in several places, so that backends that count at one moment do
 * not wait for each other's cache line.  Nothing here throws, allocates or
 * locks, so counting is safe in the commit path (P5).
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_STATS_H
#define RPIN_STATS_H

typedef enum RpinCounter
{
	/* commits of clients that wrote, with capture on, and pinned no key */
	RPIN_COUNTER_UNKEYED_COMMITS,
	RPIN_COUNTER_COUNT
} RpinCounter;

extern Size rpin_stats_shmem_size(void);
extern void rpin_stats_shmem_init(void);

extern void rpin_stats_count(RpinCounter counter);
extern uint64 rpin_stats_read(RpinCounter counter);

#endif							/* RPIN_STATS_H */
