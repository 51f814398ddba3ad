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
#include "utils/timestamp.h"

#include "../core/rpin_atomic.h"
#include "rpin_stats.h"

/* Places to count in; a process uses one of them. */
#define RPIN_STATS_PLACES 32

/* Lines that a reason may have in each period of this many microseconds. */
#define RPIN_LOG_LINES 10
#define RPIN_LOG_PERIOD INT64CONST(1000000)

typedef struct RpinStatsPlace
{
	uint64		decisions[RPIN_REASON_COUNT][2];	/* atomic; [enforced] */
	uint64		unkeyed;		/* atomic */
} __attribute__((aligned(PG_CACHE_LINE_SIZE))) RpinStatsPlace;

/* The lines of one reason; atomic. */
typedef struct RpinLogLimit
{
	uint64		period;			/* number of the period that `lines` counts */
	uint64		lines;
	uint64		left_out;
} RpinLogLimit;

typedef struct RpinStats
{
	RpinStatsPlace place[RPIN_STATS_PLACES];
	RpinLogLimit limit[RPIN_REASON_COUNT];
	uint64		since;			/* TimestampTz, atomic */
} RpinStats;

static RpinStats *stats = NULL;

Size
rpin_stats_shmem_size(void)
{
	return sizeof(RpinStats);
}

void
rpin_stats_shmem_init(void)
{
	bool		found;

	stats = ShmemInitStruct("replica_pin counters", rpin_stats_shmem_size(),
							&found);
	if (found)
		return;
	memset(stats, 0, sizeof(RpinStats));
	stats->since = (uint64) GetCurrentTimestamp();
}

static RpinStatsPlace *
my_place(void)
{
	return &stats->place[MyProcPid % RPIN_STATS_PLACES];
}

void
rpin_stats_count_decision(RpinReason reason, bool enforced)
{
	rpin_atomic_add(&my_place()->decisions[reason][enforced ? 1 : 0], 1);
}

uint64
rpin_stats_decisions(RpinReason reason, bool enforced)
{
	uint64		sum = 0;

	for (int i = 0; i < RPIN_STATS_PLACES; i++)
		sum += rpin_atomic_read(&stats->place[i].decisions[reason][enforced ? 1 : 0]);
	return sum;
}

void
rpin_stats_count_unkeyed(void)
{
	rpin_atomic_add(&my_place()->unkeyed, 1);
}

uint64
rpin_stats_unkeyed(void)
{
	uint64		sum = 0;

	for (int i = 0; i < RPIN_STATS_PLACES; i++)
		sum += rpin_atomic_read(&stats->place[i].unkeyed);
	return sum;
}

void
rpin_stats_reset(void)
{
	for (int i = 0; i < RPIN_STATS_PLACES; i++)
	{
		RpinStatsPlace *place = &stats->place[i];

		for (int reason = 0; reason < RPIN_REASON_COUNT; reason++)
		{
			rpin_atomic_write(&place->decisions[reason][0], 0);
			rpin_atomic_write(&place->decisions[reason][1], 0);
		}
		rpin_atomic_write(&place->unkeyed, 0);
	}
	rpin_atomic_write(&stats->since, (uint64) GetCurrentTimestamp());
}

TimestampTz
rpin_stats_since(void)
{
	return (TimestampTz) rpin_atomic_read(&stats->since);
}

bool
rpin_stats_may_log(RpinReason reason, int64 now, uint64 *left_out)
{
	RpinLogLimit *limit = &stats->limit[reason];
	uint64		period = (uint64) (now / RPIN_LOG_PERIOD) + 1;
	uint64		before = rpin_atomic_read(&limit->period);

	if (before != period && rpin_atomic_swap(&limit->period, before, period))
		rpin_atomic_write(&limit->lines, 0);
	rpin_atomic_add(&limit->lines, 1);
	if (rpin_atomic_read(&limit->lines) > RPIN_LOG_LINES)
	{
		rpin_atomic_add(&limit->left_out, 1);
		return false;
	}
	*left_out = rpin_atomic_exchange(&limit->left_out, 0);
	return true;
}
