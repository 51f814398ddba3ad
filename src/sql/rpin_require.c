/*-------------------------------------------------------------------------
 *
 * rpin_require.c
 *	  CALL require(): the proof that what follows it sees a token's write.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "tcop/pquery.h"
#include "utils/portal.h"
#include "utils/snapmgr.h"

#include "../rpin_compat.h"
#include "../shmem/rpin_clock.h"
#include "rpin_check.h"
#include "rpin_node.h"

/* The two answers that a client acts on. */
#define RPIN_ERRCODE_BEHIND MAKE_SQLSTATE('R', 'P', '0', '0', '1')
#define RPIN_ERRCODE_NOT_COMPARABLE MAKE_SQLSTATE('R', 'P', '0', '0', '2')

/*
 * It polls at a tenth of the time waited so far, within these bounds (ms): being
 * late costs a tenth, and many sessions that wait long cost little.
 */
#define RPIN_REQUIRE_SHORTEST 1
#define RPIN_REQUIRE_LONGEST 50

PG_FUNCTION_INFO_V1(rpin_require);

/*
 * What the statements after require() read is seen through snapshots that are
 * taken after it: that is the proof.  So none may be held now.  The one that
 * every CALL is given can be let go (PortalRunUtility copes with that); a
 * snapshot of the transaction, of a cursor, of a function or of a portal that
 * was bound early cannot.
 */
static void
release_snapshots(void)
{
	if (ActivePortal != NULL && ActivePortal->portalSnapshot != NULL &&
		ActiveSnapshotSet() &&
		ActivePortal->portalSnapshot == GetActiveSnapshot())
	{
		PopActiveSnapshot();
		ActivePortal->portalSnapshot = NULL;
	}
	InvalidateCatalogSnapshot();
	if (HaveRegisteredOrActiveSnapshot())
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("replica_pin.require() must be called before the transaction holds a snapshot"),
				 errdetail("What a snapshot taken earlier shows says nothing about what was replayed since; at REPEATABLE READ the CALL itself takes one."),
				 errhint("Use CALL at READ COMMITTED, first in the transaction, with no cursor open, and not from a function.")));
}

static void
refuse_behind(const RpinNode *node, const RpinPosition *position)
{
	ereport(ERROR,
			(errcode(RPIN_ERRCODE_BEHIND),
			 errmsg("this replica has not replayed the required position yet"),
			 errdetail("It is at " RPIN_LSN_FORMAT ", %llu bytes before " RPIN_LSN_FORMAT ".",
					   LSN_FORMAT_ARGS(node->lsn),
					   (unsigned long long) (position->lsn - node->lsn),
					   LSN_FORMAT_ARGS(position->lsn)),
			 errhint("Keep the token, and read on another replica or on the primary.")));
}

static void
refuse_incomparable(const RpinNode *node, const RpinPosition *position,
					RpinReason reason)
{
	const char *hint = "Ask replica_pin.route(token => ...) on the primary once, and carry on with what it returns as \"required\".";

	switch (reason)
	{
		case RPIN_REASON_WRONG_CLUSTER:
			ereport(ERROR,
					(errcode(RPIN_ERRCODE_NOT_COMPARABLE),
					 errmsg("the token cannot be compared here"),
					 errdetail("Its system identifier is %llu, this server's is %llu.",
							   (unsigned long long) position->system_identifier,
							   (unsigned long long) GetSystemIdentifier()),
					 errhint("%s", hint)));
			break;
		case RPIN_REASON_POSITION_IN_FUTURE:
		case RPIN_REASON_WRITE_LOST:
			ereport(ERROR,
					(errcode(RPIN_ERRCODE_NOT_COMPARABLE),
					 errmsg("the token cannot be compared here"),
					 errdetail("This server's history does not hold position " RPIN_LSN_FORMAT " of timeline %u.",
							   LSN_FORMAT_ARGS(position->lsn),
							   position->timeline),
					 errhint("%s", hint)));
			break;
		default:
			ereport(ERROR,
					(errcode(RPIN_ERRCODE_NOT_COMPARABLE),
					 errmsg("the token cannot be compared here"),
					 errdetail("Its timeline is %u, this server is on timeline %u.",
							   position->timeline, node->timeline),
					 errhint("%s", hint)));
	}
}

static int
timeout_argument(FunctionCallInfo fcinfo)
{
	int			timeout = PG_ARGISNULL(1) ? 0 : PG_GETARG_INT32(1);

	if (timeout < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("timeout must not be negative"),
				 errhint("It is in milliseconds; 0 does not wait.")));
	return timeout;
}

/*
 * Sleeps until it is time to look again; false when the time is up.  No snapshot
 * is held: replay would wait for it, and this would wait for replay.
 */
static bool
sleep_for_replay(int64 start, int timeout)
{
	static uint32 wait_event = 0;
	int64		waited = (rpin_clock_now() - start) / 1000;
	int64		rest = Max(Min(waited / 10, RPIN_REQUIRE_LONGEST),
						   RPIN_REQUIRE_SHORTEST);

	if (waited >= timeout)
		return false;
	if (wait_event == 0)
		wait_event = rpin_wait_event("ReplicaPinRequire");
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 Min(rest, timeout - waited), wait_event);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	return true;
}

/*
 * Everything about the node is read anew each time: it may be promoted, or
 * follow another timeline, while this waits.
 */
Datum
rpin_require(PG_FUNCTION_ARGS)
{
	int64		start = rpin_clock_now();
	int			timeout = timeout_argument(fcinfo);
	RpinPosition position;
	RpinNode	node;
	RpinReason	reason;
	bool		readable = rpin_node_token_argument(fcinfo, &position);

	release_snapshots();
	if (!readable)
		rpin_refuse_token(RPIN_ERRCODE_NOT_COMPARABLE,
						  "Ask replica_pin.route() on the primary, or read there.");
	do
	{
		rpin_node_read(&node);
		reason = rpin_node_compare(&node, &position);
	} while (reason == RPIN_REASON_REPLICAS_BEHIND &&
			 sleep_for_replay(start, timeout));

	if (reason == RPIN_REASON_REPLICAS_BEHIND)
		refuse_behind(&node, &position);
	if (reason != RPIN_REASON_NONE)
		refuse_incomparable(&node, &position, reason);
	PG_RETURN_VOID();
}
