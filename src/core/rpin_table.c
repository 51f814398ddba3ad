/*-------------------------------------------------------------------------
 *
 * rpin_table.c
 *	  The table of session keys.  The safety argument stands in the header.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_table.h"

#include <string.h>

#include "rpin_atomic.h"

/* Enough buckets to tell a per mille. */
#define RPIN_FLOORS_SAMPLE 65536

static uint64_t
bucket_count(uint64_t keys)
{
	uint64_t	count = (keys + RPIN_BUCKET_SLOTS - 1) / RPIN_BUCKET_SLOTS;

	return count > 0 ? count : 1;
}

size_t
rpin_table_size(uint64_t keys)
{
	return sizeof(RpinTable) + bucket_count(keys) * sizeof(RpinBucket);
}

void
rpin_table_init(RpinTable *table, uint64_t keys)
{
	memset(table, 0, rpin_table_size(keys));
	table->bucket_count = bucket_count(keys);
}

/*
 * Scales the fingerprint down to the number of buckets: its high bits decide,
 * any number of buckets will do.
 */
uint64_t
rpin_table_bucket(const RpinTable *table, uint64_t fingerprint)
{
	return (uint64_t) (((unsigned __int128) fingerprint *
						table->bucket_count) >> 64);
}

static RpinBucket *
find_bucket(RpinTable *table, uint64_t fingerprint)
{
	return &table->bucket[rpin_table_bucket(table, fingerprint)];
}

/*
 * Into `greatest` first: whoever sees the floor must find it there.  When two
 * callers race to set it, the greater one stands.
 */
void
rpin_table_raise_floor(RpinTable *table, uint64_t floor)
{
	rpin_atomic_raise(&table->marks.greatest, floor);
	rpin_atomic_raise(&table->marks.floor, floor);
}

uint64_t
rpin_table_floor(const RpinTable *table)
{
	return rpin_atomic_read(&table->marks.floor);
}

uint64_t
rpin_table_greatest(const RpinTable *table)
{
	return rpin_atomic_read(&table->marks.greatest);
}

uint64_t
rpin_table_pending(const RpinTable *table)
{
	return rpin_atomic_read(&table->marks.pending);
}

bool
rpin_table_raise_greatest(RpinTable *table, uint64_t lsn)
{
	return rpin_atomic_raise(&table->marks.greatest, lsn);
}

/* The key's slot, else a free one, else the one with the lowest position. */
static RpinSlot *
choose_slot(RpinBucket *bucket, uint64_t fingerprint)
{
	RpinSlot   *lowest = &bucket->slot[0];

	for (int i = 0; i < RPIN_BUCKET_SLOTS; i++)
	{
		RpinSlot   *slot = &bucket->slot[i];

		if (slot->lsn != 0 && slot->fingerprint == fingerprint)
			return slot;
		if (slot->lsn < lowest->lsn)
			lowest = slot;
	}
	return lowest;
}

RpinRecorded
rpin_table_record(RpinTable *table, uint64_t fingerprint, uint64_t lsn)
{
	RpinBucket *bucket = find_bucket(table, fingerprint);
	RpinSlot   *slot = choose_slot(bucket, fingerprint);
	RpinRecorded recorded;

	if (slot->lsn != 0 && slot->fingerprint == fingerprint)
	{
		if (slot->lsn < lsn)
			slot->lsn = lsn;
		return RPIN_RECORDED_RAISED;
	}
	if (lsn <= bucket->floor)
		return RPIN_RECORDED_COVERED;

	/*
	 * A key that would evict a greater position than its own is itself the
	 * one to go: the floor takes it, and nobody else is pinned further.
	 */
	if (slot->lsn > lsn)
	{
		bucket->floor = lsn;
		return RPIN_RECORDED_EVICTED;
	}

	recorded = slot->lsn == 0 ? RPIN_RECORDED_NEW : RPIN_RECORDED_EVICTED;
	if (bucket->floor < slot->lsn)
		bucket->floor = slot->lsn;
	slot->fingerprint = fingerprint;
	slot->lsn = lsn;
	return recorded;
}

/*
 * The bucket's count is under its lock; the global one is atomic, and up first
 * and down last, so that it never misses a pending commit of a bucket.
 */
void
rpin_table_pending_up(RpinTable *table, uint64_t fingerprint)
{
	rpin_atomic_add(&table->marks.pending, 1);
	find_bucket(table, fingerprint)->pending++;
}

void
rpin_table_pending_down(RpinTable *table, uint64_t fingerprint)
{
	find_bucket(table, fingerprint)->pending--;
	rpin_atomic_subtract(&table->marks.pending, 1);
}

void
rpin_table_pending_all_up(RpinTable *table)
{
	rpin_atomic_add(&table->marks.pending, 1);
	rpin_atomic_add(&table->marks.pending_all, 1);
}

void
rpin_table_pending_all_down(RpinTable *table)
{
	rpin_atomic_subtract(&table->marks.pending_all, 1);
	rpin_atomic_subtract(&table->marks.pending, 1);
}

/*
 * The bucket holds still under its lock.  Of the marks, pending is read before
 * the floor, for the same reason as on the fast path.
 */
RpinLookup
rpin_table_lookup(const RpinTable *table, uint64_t fingerprint)
{
	const RpinBucket *bucket =
		&table->bucket[rpin_table_bucket(table, fingerprint)];
	bool		pending = rpin_atomic_read(&table->marks.pending_all) != 0;
	RpinLookup	lookup = {.lsn = rpin_table_floor(table)};

	lookup.pending = pending || bucket->pending != 0;
	if (lookup.lsn < bucket->floor)
		lookup.lsn = bucket->floor;
	for (int i = 0; i < RPIN_BUCKET_SLOTS; i++)
	{
		const RpinSlot *slot = &bucket->slot[i];

		if (slot->fingerprint != fingerprint || slot->lsn < lookup.lsn)
			continue;
		lookup.lsn = slot->lsn;
		lookup.recorded = slot->lsn != 0;
	}
	return lookup;
}

int
rpin_table_floors_beyond(const RpinTable *table, uint64_t lsn)
{
	uint64_t	sample = table->bucket_count;
	uint64_t	beyond = 0;

	if (sample > RPIN_FLOORS_SAMPLE)
		sample = RPIN_FLOORS_SAMPLE;
	for (uint64_t i = 0; i < sample; i++)
		if (rpin_atomic_read(&table->bucket[i].floor) > lsn)
			beyond++;
	return (int) (beyond * 1000 / sample);
}

bool
rpin_table_quiet(const RpinTable *table, uint64_t *required)
{
	if (rpin_table_floor(table) == 0)
		return false;
	if (rpin_atomic_read(&table->marks.pending) != 0)
		return false;
	*required = rpin_table_greatest(table);
	return true;
}
