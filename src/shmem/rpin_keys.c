/*-------------------------------------------------------------------------
 *
 * rpin_keys.c
 *	  The session keys of the server.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "rpin_board.h"
#include "rpin_keys.h"
#include "rpin_shmem.h"
#include "rpin_wal.h"

/*
 * Bucket i is protected by lock i modulo this.  Neighbours have different
 * locks; a few times the number of backends that commit at one moment is
 * enough.
 */
#define RPIN_KEYS_PARTITIONS 128

/* One partition: what its lock protects besides its buckets. */
typedef struct RpinPartition
{
	uint64		used;
	uint64		evictions;
} RpinPartition;

typedef struct RpinKeys
{
	uint64		seed;			/* set once at start */
	RpinPartition partition[RPIN_KEYS_PARTITIONS];	/* by partition lock */
	RpinTable	table;			/* marks atomic, buckets by partition lock */
} RpinKeys;

int			rpin_max_session_keys = 262144;

static RpinKeys *keys = NULL;
static LWLockPadded *locks = NULL;

Size
rpin_keys_shmem_size(void)
{
	return add_size(offsetof(RpinKeys, table),
					rpin_table_size(rpin_max_session_keys));
}

void
rpin_keys_shmem_request(void)
{
	RequestNamedLWLockTranche("replica_pin", RPIN_KEYS_PARTITIONS);
}

void
rpin_keys_shmem_init(void)
{
	bool		found;

	keys = ShmemInitStruct("replica_pin session keys", rpin_keys_shmem_size(),
						   &found);
	locks = GetNamedLWLockTranche("replica_pin");
	if (found)
		return;
	memset(keys, 0, offsetof(RpinKeys, table));
	rpin_table_init(&keys->table, rpin_max_session_keys);
	keys->seed = rpin_shmem_random();
}

uint64
rpin_keys_fingerprint(const char *key, size_t length)
{
	return hash_bytes_extended((const unsigned char *) key, (int) length,
							   keys->seed);
}

static int
find_partition(uint64 fingerprint)
{
	return rpin_table_bucket(&keys->table, fingerprint) %
		RPIN_KEYS_PARTITIONS;
}

void
rpin_keys_ensure_floor(void)
{
	if (rpin_table_floor(&keys->table) == 0)
		rpin_table_raise_floor(&keys->table, rpin_wal_end_flushed_soon());
}

void
rpin_keys_record(uint64 fingerprint, XLogRecPtr lsn)
{
	int			number = find_partition(fingerprint);
	RpinPartition *partition = &keys->partition[number];
	RpinRecorded recorded;

	Assert(!XLogRecPtrIsInvalid(lsn));
	LWLockAcquire(&locks[number].lock, LW_EXCLUSIVE);
	recorded = rpin_table_record(&keys->table, fingerprint, lsn);
	if (recorded == RPIN_RECORDED_NEW)
		partition->used++;
	else if (recorded == RPIN_RECORDED_EVICTED)
		partition->evictions++;
	LWLockRelease(&locks[number].lock);

	if (rpin_table_raise_greatest(&keys->table, lsn))
		rpin_board_wake_worker();
}

void
rpin_keys_record_all(XLogRecPtr lsn)
{
	rpin_table_raise_floor(&keys->table, lsn);
	rpin_board_wake_worker();
}

void
rpin_keys_pending_up(uint64 fingerprint)
{
	LWLock	   *lock = &locks[find_partition(fingerprint)].lock;

	LWLockAcquire(lock, LW_EXCLUSIVE);
	rpin_table_pending_up(&keys->table, fingerprint);
	LWLockRelease(lock);
}

void
rpin_keys_pending_down(uint64 fingerprint)
{
	LWLock	   *lock = &locks[find_partition(fingerprint)].lock;

	LWLockAcquire(lock, LW_EXCLUSIVE);
	rpin_table_pending_down(&keys->table, fingerprint);
	LWLockRelease(lock);
}

void
rpin_keys_pending_all_up(void)
{
	rpin_table_pending_all_up(&keys->table);
}

void
rpin_keys_pending_all_down(void)
{
	rpin_table_pending_all_down(&keys->table);
}

RpinLookup
rpin_keys_lookup(uint64 fingerprint)
{
	int			number = find_partition(fingerprint);
	RpinLookup	lookup;

	LWLockAcquire(&locks[number].lock, LW_SHARED);
	lookup = rpin_table_lookup(&keys->table, fingerprint);
	LWLockRelease(&locks[number].lock);
	return lookup;
}

bool
rpin_keys_quiet(XLogRecPtr *required)
{
	return rpin_table_quiet(&keys->table, required);
}

XLogRecPtr
rpin_keys_greatest(void)
{
	return rpin_table_greatest(&keys->table);
}

void
rpin_keys_usage(RpinKeysUsage *usage)
{
	memset(usage, 0, sizeof(*usage));
	usage->capacity = keys->table.bucket_count * RPIN_BUCKET_SLOTS;
	usage->floor = rpin_table_floor(&keys->table);
	usage->greatest = rpin_table_greatest(&keys->table);
	usage->pending = rpin_table_pending(&keys->table);
	for (int i = 0; i < RPIN_KEYS_PARTITIONS; i++)
	{
		LWLockAcquire(&locks[i].lock, LW_SHARED);
		usage->used += keys->partition[i].used;
		usage->evictions += keys->partition[i].evictions;
		LWLockRelease(&locks[i].lock);
	}
}

int
rpin_keys_floors_beyond(XLogRecPtr lsn)
{
	return rpin_table_floors_beyond(&keys->table, lsn);
}
