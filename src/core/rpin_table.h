/*-------------------------------------------------------------------------
 *
 * rpin_table.h
 *	  The WAL position of each session key's last write, in fixed memory.
 *
 * The invariant (P3): a lookup is never below the greatest position that was
 * ever recorded for the key and that the cluster still has, whatever was
 * evicted or lost in a restart.  It may be above.
 *
 * An array of buckets of one cache line.  A bucket has a floor, a few slots and
 * a count of pending commits.  A key is its fingerprint, a 64-bit hash; the key
 * itself is not here.  Two keys with one fingerprint share the greater
 * position: more is pinned, never less.  A slot is taken from the key with the
 * lowest position, and the bucket's floor, which stands for every key of the
 * bucket without a slot, is raised to that position first.
 *
 * Nothing here knows of replicas.  Nothing here throws, allocates or waits.
 * LSN are positions in bytes; 0 is "none".
 *
 * Locking.  Calls that take a fingerprint touch one bucket; which one says
 * rpin_table_bucket().  The caller holds that bucket's lock, exclusively unless
 * it is said otherwise.  Locks stand outside, several buckets may share one.
 * The marks are atomic and need no lock.
 *
 * The fast path.  rpin_table_quiet() answers for all keys at once without
 * touching a bucket.  It is right because of this order, which every writer
 * keeps, with a full barrier between any two steps:
 *
 *	1 pending up, in the bucket and in the marks
 *	2 the commit becomes visible to others
 *	3 its position into `greatest` and into the bucket, in either order
 *	4 pending down
 *
 * The reader reads `pending` first and `greatest` after it.  Take a reader that
 * began after step 2.  If it saw no pending commit, step 4 was before its first
 * read, so its second read sees step 3.  With the reads exchanged, steps 3 and
 * 4 fit between them, and the reader has neither.  The global floor goes into
 * `greatest` before it is marked as set, so whoever sees the mark sees it there.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_TABLE_H
#define RPIN_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RPIN_CACHE_LINE 64
#define RPIN_BUCKET_SLOTS 3

typedef struct RpinSlot
{
	uint64_t	fingerprint;
	uint64_t	lsn;			/* 0: the slot is free */
} RpinSlot;

typedef struct RpinBucket
{
	uint64_t	floor;			/* for keys of this bucket without a slot */
	uint32_t	pending;		/* commits that have not recorded yet */
	uint32_t	unused;
	RpinSlot	slot[RPIN_BUCKET_SLOTS];
} __attribute__((aligned(RPIN_CACHE_LINE))) RpinBucket;

_Static_assert(sizeof(RpinBucket) == RPIN_CACHE_LINE,
			   "a bucket is one cache line");

/* Words that everybody reads and writers write, atomic, of the whole table. */
typedef struct RpinMarks
{
	uint64_t	pending;		/* keys of commits between steps 1 and 4 */
	uint64_t	pending_all;	/* such commits that pin every key */
	uint64_t	greatest;		/* of the global floor and all positions */
	uint64_t	floor;			/* global floor; 0: not set yet */
} __attribute__((aligned(RPIN_CACHE_LINE))) RpinMarks;

typedef struct RpinTable
{
	RpinMarks	marks;
	uint64_t	bucket_count;
	RpinBucket	bucket[];
} RpinTable;

/* What a record did. */
typedef enum RpinRecorded
{
	RPIN_RECORDED_RAISED,		/* the key had a slot */
	RPIN_RECORDED_NEW,			/* took a free slot */
	RPIN_RECORDED_EVICTED,		/* took another key's slot */
	RPIN_RECORDED_COVERED		/* is below the bucket's floor: nothing to do */
} RpinRecorded;

typedef struct RpinLookup
{
	uint64_t	lsn;			/* the required position */
	bool		pending;		/* a commit that may pin the key is under way */
	bool		recorded;		/* lsn is the key's own, not that of a floor */
} RpinLookup;

/* Bytes for a table of at least `keys` keys, and how to make one there. */
extern size_t rpin_table_size(uint64_t keys);
extern void rpin_table_init(RpinTable *table, uint64_t keys);

/* The bucket of a fingerprint, below bucket_count. */
extern uint64_t rpin_table_bucket(const RpinTable *table, uint64_t fingerprint);

/*
 * Raises the global floor, which stands for every key at once.  No lock needed.
 * Set for the first time it is the end of all WAL inserted before the call, on
 * a server not in recovery; raised later, the position of a commit that pins
 * every key (step 3).
 */
extern void rpin_table_raise_floor(RpinTable *table, uint64_t floor);

/* The global floor; 0 while it is not set.  No lock needed. */
extern uint64_t rpin_table_floor(const RpinTable *table);

/* The greatest position recorded, the floor included.  No lock needed. */
extern uint64_t rpin_table_greatest(const RpinTable *table);

/* Keys of commits that are under way, in all.  No lock needed. */
extern uint64_t rpin_table_pending(const RpinTable *table);

/* Raises `greatest` (step 3).  True if it was raised.  No lock needed. */
extern bool rpin_table_raise_greatest(RpinTable *table, uint64_t lsn);

/*
 * Enters a position (step 3); lsn > 0.  Never lowers what a lookup of any key
 * answers.  Call rpin_table_raise_greatest() as well.
 */
extern RpinRecorded rpin_table_record(RpinTable *table, uint64_t fingerprint,
									  uint64_t lsn);

/*
 * Steps 1 and 4, once each for every commit and key.
 */
extern void rpin_table_pending_up(RpinTable *table, uint64_t fingerprint);
extern void rpin_table_pending_down(RpinTable *table, uint64_t fingerprint);

/*
 * The same for a commit that pins every key: its step 3 raises the global
 * floor.  No lock needed.
 */
extern void rpin_table_pending_all_up(RpinTable *table);
extern void rpin_table_pending_all_down(RpinTable *table);

/*
 * What a key's read must see.  The global floor must be set.  The bucket's lock
 * may be shared.  Inserts nothing.
 */
extern RpinLookup rpin_table_lookup(const RpinTable *table,
									uint64_t fingerprint);

/*
 * Of each thousand buckets, how many have a floor beyond a position: a key
 * without a slot is pinned there for the sake of others that were evicted.  By
 * a sample of the buckets, into which keys fall at random.  No lock needed.
 */
extern int	rpin_table_floors_beyond(const RpinTable *table, uint64_t lsn);

/*
 * Fast path: true if no commit is pending and the global floor is set; then
 * *required is enough for every key.  False says nothing.  No lock needed.
 */
extern bool rpin_table_quiet(const RpinTable *table, uint64_t *required);

#endif							/* RPIN_TABLE_H */
