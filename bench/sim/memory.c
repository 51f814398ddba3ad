/*-------------------------------------------------------------------------
 *
 * memory.c
 *	  False pins of a full table, against an exact map without bounds.
 *
 *	memory capacity live-per-cent seconds seed
 *
 * So many keys as the second argument says, in per cent of the capacity, are
 * written 1000 times a second, uniformly, and asked for twice as often; three
 * replicas replay (trace.h).  A decision is that of is_pinned: free when every
 * replica has replayed the required position, which the table of src/core and
 * an array of exact positions tell.  A false pin is pinned by the table and free
 * by the map; a false "free" is the other way round.
 *
 * Then the worst case: every key is written once while replay stands still, and
 * as many that were not written are asked for.
 *
 * Prints decisions, free by the map, false pins, false frees; and of the worst
 * case the same without the first.
 *
 *-------------------------------------------------------------------------
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpin_table.h"
#include "trace.h"

#define REPLICAS 3
#define WRITES 1000.0			/* a second */
#define READS 2000.0

typedef struct Count
{
	long		decisions;
	long		free;
	long		false_pins;
	long		false_frees;
} Count;

static RpinTable *
new_table(uint64_t capacity)
{
	RpinTable  *table = aligned_alloc(RPIN_CACHE_LINE,
									  (rpin_table_size(capacity) + 63) / 64 * 64);

	rpin_table_init(table, capacity);
	rpin_table_raise_floor(table, 1);
	return table;
}

static void
record(RpinTable *table, uint64_t fingerprint, uint64_t lsn)
{
	(void) rpin_table_record(table, fingerprint, lsn);
	(void) rpin_table_raise_greatest(table, lsn);
}

/* As is_pinned() does it: all keys at once if it can, else the bucket. */
static bool
table_is_pinned(const RpinTable *table, uint64_t fingerprint, uint64_t replayed)
{
	uint64_t	required;

	if (rpin_table_quiet(table, &required) && required <= replayed)
		return false;
	return rpin_table_lookup(table, fingerprint).lsn > replayed;
}

static void
decide(Count *count, const RpinTable *table, uint64_t fingerprint,
	   uint64_t exact, uint64_t replayed)
{
	bool		pinned = table_is_pinned(table, fingerprint, replayed);

	count->decisions++;
	if (exact <= replayed)
	{
		count->free++;
		count->false_pins += pinned;
	}
	else
		count->false_frees += !pinned;
}

static uint64_t
least_replayed(const Replay *replay, int64_t now)
{
	uint64_t	least = UINT64_MAX;

	for (int i = 0; i < REPLICAS; i++)
		if (least > replay_position(&replay[i], now))
			least = replay_position(&replay[i], now);
	return least;
}

static Count
busy(uint64_t capacity, uint64_t live, int64_t length, Random *random)
{
	RpinTable  *table = new_table(capacity);
	uint64_t   *exact = calloc(live, sizeof(uint64_t));
	Replay		replay[REPLICAS];
	Count		count = {0};

	for (int i = 0; i < REPLICAS; i++)
		replay_init(&replay[i], length, random);
	for (int64_t now = 1;;)
	{
		uint64_t	key = random_next(random) % live;

		now += random_exponential(random, SECOND / (WRITES + READS)) + 1;
		if (now >= length)
			break;
		if (random_unit(random) < WRITES / (WRITES + READS))
		{
			exact[key] = BASE + (uint64_t) now;
			record(table, mix(key), exact[key]);
		}
		else
			decide(&count, table, mix(key), exact[key],
				   least_replayed(replay, now));
	}
	for (int i = 0; i < REPLICAS; i++)
		replay_free(&replay[i]);
	free(exact);
	free(table);
	return count;
}

static Count
standstill(uint64_t capacity, uint64_t live)
{
	RpinTable  *table = new_table(capacity);
	Count		count = {0};

	for (uint64_t key = 0; key < live; key++)
		record(table, mix(key), BASE + key);
	for (uint64_t key = 0; key < 2 * live; key++)
		decide(&count, table, mix(key), key < live ? BASE + key : 0, BASE - 1);
	free(table);
	return count;
}

int
main(int argc, char **argv)
{
	uint64_t	capacity;
	uint64_t	live;
	Random		random;
	Count		count;

	if (argc != 5)
	{
		fprintf(stderr, "usage: memory capacity live-per-cent seconds seed\n");
		return 2;
	}
	capacity = strtoull(argv[1], NULL, 10);
	live = (uint64_t) ((double) capacity * atof(argv[2]) / 100);
	random.state = mix(strtoull(argv[4], NULL, 10));
	count = busy(capacity, live, atoll(argv[3]) * SECOND, &random);
	printf("%ld %ld %ld %ld ", count.decisions, count.free, count.false_pins,
		   count.false_frees);
	count = standstill(capacity, live);
	printf("%ld %ld %ld\n", count.free, count.false_pins, count.false_frees);
	return 0;
}
