/*-------------------------------------------------------------------------
 *
 * rpin_capture.c
 *	  Capture at commit.
 *
 * What happens in CommitTransaction(), and where we are:
 *
 *	deferred triggers			may arm keys
 *	PRE_COMMIT callbacks		pending up, for every key of the transaction
 *	commit record, flush, wait for synchronous standbys
 *	ProcArrayEndTransaction		others see the rows
 *	COMMIT callbacks			positions recorded, pending down, token pushed
 *	locks are released, the client has its answer
 *
 * So nobody sees a row without either its pin or the pending mark (P1), unless
 * the transaction gets its xid only after PRE_COMMIT: then it has no rows.  Errors
 * are possible up to PRE_COMMIT and lead to an ABORT callback, which takes the
 * marks back.  From the commit record to the end of the COMMIT callbacks an
 * ERROR would be a PANIC of the whole cluster with the row committed, and
 * interrupts are held; the session cannot end in between but by a crash, and
 * then shared memory begins anew.
 *
 * P5, line by line: between the commit record and the end of the COMMIT
 * callback this file reads its own static memory, the backend's settings and
 * XactLastCommitEnd, hashes a string, and calls rpin_keys_*, which takes one
 * table lock at a time for a bounded number of instructions and sets a latch at
 * most.  rpin_push_*() have their own argument.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"

#include "../core/rpin_keyset.h"
#include "../shmem/rpin_keys.h"
#include "../shmem/rpin_stats.h"
#include "../shmem/rpin_wal.h"
#include "rpin_capture.h"
#include "rpin_push.h"

char	   *rpin_session_key = NULL;
bool		rpin_capture = true;

/* The transaction of this session. */
typedef struct RpinTransaction
{
	RpinKeyset	keys;			/* armed so far */
	bool		has_session_key;	/* the setting's is among them */
	bool		has_prepared;	/* it is a COMMIT PREPARED */

	/* Pending marks that are up: of the first `marked` keys, and of all. */
	uint32		marked;
	bool		marked_all;
} RpinTransaction;

static RpinTransaction transaction;

void
rpin_capture_arm(uint64 fingerprint)
{
	rpin_keyset_add(&transaction.keys, fingerprint);
}

static bool
has_session_key(void)
{
	return rpin_capture && rpin_session_key != NULL &&
		rpin_session_key[0] != '\0';
}

/* The setting as it stands at commit, once: a key can be long. */
static void
arm_session_key(void)
{
	if (transaction.has_session_key || !has_session_key())
		return;
	rpin_capture_arm(rpin_keys_fingerprint(rpin_session_key,
										   strlen(rpin_session_key)));
	transaction.has_session_key = true;
}

/*
 * That XactLastCommitEnd is set, or that it moved, says something else: a plain
 * SELECT keeps the old value, and one that prunes a page moves it.
 */
bool
rpin_capture_has_written(void)
{
	return TransactionIdIsValid(GetTopTransactionIdIfAny());
}

static bool
writes_now(void)
{
	return transaction.has_prepared || rpin_capture_has_written();
}

/* Marks what is not marked yet. */
static void
mark_pending(void)
{
	if (transaction.keys.all && !transaction.marked_all)
	{
		transaction.marked_all = true;
		rpin_keys_pending_all_up();
	}
	while (transaction.marked < transaction.keys.count)
		rpin_keys_pending_up(transaction.keys.fingerprint[transaction.marked++]);
}

/* Takes down exactly the marks that are up, whatever was armed since. */
static void
unmark_pending(void)
{
	while (transaction.marked > 0)
		rpin_keys_pending_down(transaction.keys.fingerprint[--transaction.marked]);
	if (transaction.marked_all)
		rpin_keys_pending_all_down();
	transaction.marked_all = false;
}

static void
record(XLogRecPtr lsn)
{
	if (transaction.keys.all)
	{
		rpin_keys_record_all(lsn);
		return;
	}
	for (uint32 i = 0; i < transaction.keys.count; i++)
		rpin_keys_record(transaction.keys.fingerprint[i], lsn);
}

/* Forgets the transaction; the marks are down. */
static void
forget(void)
{
	Assert(transaction.marked == 0 && !transaction.marked_all);
	rpin_keyset_clear(&transaction.keys);
	transaction.has_session_key = false;
	transaction.has_prepared = false;
}

static void
before_commit(void)
{
	if (!writes_now())
		return;
	arm_session_key();
	mark_pending();
}

/*
 * Records the end of the commit record, which is what XactLastCommitEnd is when
 * this runs, and only then drops the marks.  The transaction may have got its
 * xid after PRE_COMMIT (NOTIFY does that): then nothing was marked, and the
 * session key is armed here.
 */
static void
after_commit(void)
{
	if (writes_now())
	{
		arm_session_key();
		record(XactLastCommitEnd);
		unmark_pending();
		if (rpin_capture && MyBackendType == B_BACKEND &&
			rpin_keyset_is_empty(&transaction.keys))
			rpin_stats_count_unkeyed();
		rpin_push_commit(XactLastCommitEnd);
	}
	rpin_push_unsent();
	forget();
}

/*
 * A COMMIT PREPARED that fails may have failed after it committed, and others
 * may see it.  Whatever it wrote ends before the end of WAL now.
 */
static void
after_abort(void)
{
	if (transaction.has_prepared)
		record(rpin_wal_end_flushed_soon());
	unmark_pending();
	rpin_push_unsent();
	forget();
}

/*
 * The commit will be another session's, and may be never: an armed key cannot be
 * kept, which its caller must know.  The setting belongs to sessions; the one
 * that runs COMMIT PREPARED pins its own.
 */
static void
before_prepare(void)
{
	if (!rpin_keyset_is_empty(&transaction.keys))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot PREPARE a transaction that has pinned a session key"),
				 errdetail("The pin is due at the commit, which another session may do."),
				 errhint("Set replica_pin.session_key in the session that runs COMMIT PREPARED, or call replica_pin.pin() after it.")));
	if (has_session_key() && rpin_capture_has_written())
		ereport(WARNING,
				(errmsg("replica_pin.session_key has no effect on a prepared transaction"),
				 errhint("Set it in the session that runs COMMIT PREPARED.")));
}

static void
transaction_callback(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			before_commit();
			break;
		case XACT_EVENT_COMMIT:
			after_commit();
			break;
		case XACT_EVENT_ABORT:
			after_abort();
			break;
		case XACT_EVENT_PRE_PREPARE:
			before_prepare();
			break;
		case XACT_EVENT_PREPARE:
			forget();
			break;
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
		case XACT_EVENT_PARALLEL_COMMIT:
		case XACT_EVENT_PARALLEL_ABORT:
			break;				/* the leader's commit is the one */
	}
}

/*
 * Pending goes up before the statement runs: the transaction commits, waits for
 * standbys and becomes visible inside it.  In a transaction block, and during
 * recovery, it is going to be refused.
 */
void
rpin_capture_begin_prepared(void)
{
	if (IsTransactionBlock() || RecoveryInProgress())
		return;
	arm_session_key();
	mark_pending();
	transaction.has_prepared = true;
}

void
rpin_capture_install(void)
{
	RegisterXactCallback(transaction_callback, NULL);
}
