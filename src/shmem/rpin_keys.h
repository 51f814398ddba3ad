/*-------------------------------------------------------------------------
 *
 * rpin_keys.h
 *	  The session keys of the server: the table of src/core/rpin_table.h in
 *	  shared memory, under its locks.
 *
 * Every call but rpin_keys_shmem_* needs shared memory (rpin_shmem_available).
 *
 * None throws, none allocates.  Each that takes a fingerprint takes one
 * partition lock for a bounded number of instructions and holds nothing else;
 * see the lock order in rpin_shmem.h.  So all may be called in the commit path
 * (P5).
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_KEYS_H
#define RPIN_KEYS_H

#include "access/xlogdefs.h"

#include "../core/rpin_table.h"

/* The setting replica_pin.max_session_keys. */
extern int	rpin_max_session_keys;

typedef struct RpinKeysUsage
{
	uint64		capacity;		/* slots */
	uint64		used;			/* slots that have a key */
	uint64		evictions;		/* keys that a bucket's floor stands for */
	XLogRecPtr	floor;			/* 0: not set yet */
	XLogRecPtr	greatest;
	uint64		pending;		/* keys of commits under way */
} RpinKeysUsage;

extern Size rpin_keys_shmem_size(void);
extern void rpin_keys_shmem_request(void);
extern void rpin_keys_shmem_init(void);

/*
 * Is this text a session key?  An empty one is not, and neither is an array as
 * text, {...}: drivers send a list of keys as that, untyped, to a function for
 * one key, which would then decide on a key that nobody ever pinned.
 */
static inline bool
rpin_keys_is_key(const char *key, size_t length)
{
	return length > 0 && !(key[0] == '{' && key[length - 1] == '}');
}

/*
 * What stands for a session key: a hash of all its bytes, by a seed that is
 * drawn anew at each start.  length > 0.
 */
extern uint64 rpin_keys_fingerprint(const char *key, size_t length);

/*
 * Sets the global floor if nobody has: the position that a key without an entry
 * counts as written at.  Call it before any look-up, not in recovery.  What an
 * earlier table knew, of this server before a restart or of the primary before
 * a promotion, is at or before the end of WAL now (P3).
 */
extern void rpin_keys_ensure_floor(void);

/*
 * Records a position for a key and wakes the sampler if that is news to it.
 */
extern void rpin_keys_record(uint64 fingerprint, XLogRecPtr lsn);

/*
 * The steps of a commit around rpin_keys_record(); see rpin_table.h.  Up once
 * for a key, and down once.  The calls with `all` are for a commit that pins
 * every key there is.
 */
extern void rpin_keys_pending_up(uint64 fingerprint);
extern void rpin_keys_pending_down(uint64 fingerprint);
extern void rpin_keys_pending_all_up(void);
extern void rpin_keys_pending_all_down(void);
extern void rpin_keys_record_all(XLogRecPtr lsn);

/* The required position of a key.  The floor has been ensured. */
extern RpinLookup rpin_keys_lookup(uint64 fingerprint);

/*
 * The fast path of rpin_table_quiet(): a position that is enough for all keys.
 */
extern bool rpin_keys_quiet(XLogRecPtr *required);

/* The greatest position recorded; 0 before there is any. */
extern XLogRecPtr rpin_keys_greatest(void);

/* Takes the partition locks one by one. */
extern void rpin_keys_usage(RpinKeysUsage *usage);

/* See rpin_table_floors_beyond(). */
extern int	rpin_keys_floors_beyond(XLogRecPtr lsn);

#endif							/* RPIN_KEYS_H */
