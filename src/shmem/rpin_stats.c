/*-------------------------------------------------------------------------
 *
 * rpin_stats.c
 *	  Counters of the server.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/shmem.h"

#include "../core/rpin_atomic.h"
#include "rpin_stats.h"

/* Places to count in; a process uses one of them. */
#define RPIN_STATS_PLACES 32

typedef struct RpinStatsPlace
{
	uint64		counter[RPIN_COUNTER_COUNT];	/* atomic */
} __attribute__((aligned(PG_CACHE_LINE_SIZE))) RpinStatsPlace;

static RpinStatsPlace *places = NULL;

Size
rpin_stats_shmem_size(void)
{
	return RPIN_STATS_PLACES * sizeof(RpinStatsPlace);
}

void
rpin_stats_shmem_init(void)
{
	bool		found;

	places = ShmemInitStruct("replica_pin counters", rpin_stats_shmem_size(),
							 &found);
	if (!found)
		memset(places, 0, rpin_stats_shmem_size());
}

void
rpin_stats_count(RpinCounter counter)
{
	rpin_atomic_add(&places[MyProcPid % RPIN_STATS_PLACES].counter[counter], 1);
}

uint64
rpin_stats_read(RpinCounter counter)
{
	uint64		sum = 0;

	for (int i = 0; i < RPIN_STATS_PLACES; i++)
		sum += rpin_atomic_read(&places[i].counter[counter]);
	return sum;
}
