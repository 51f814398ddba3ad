/*-------------------------------------------------------------------------
 *
 * rpin_token_sql.c
 *	  Tokens on the node asked: current_token, token_lsn, has_replayed, require.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "fmgr.h"
#include "tcop/pquery.h"
#include "utils/builtins.h"
#include "utils/pg_lsn.h"
#include "utils/portal.h"
#include "utils/snapmgr.h"

#include "../shmem/rpin_wal.h"
#include "rpin_demand.h"
#include "rpin_node.h"

/* The two answers of require() that a client acts on. */
#define RPIN_ERRCODE_BEHIND MAKE_SQLSTATE('R', 'P', '0', '0', '1')
#define RPIN_ERRCODE_NOT_COMPARABLE MAKE_SQLSTATE('R', 'P', '0', '0', '2')

PG_FUNCTION_INFO_V1(rpin_current_token);
PG_FUNCTION_INFO_V1(rpin_token_lsn);
PG_FUNCTION_INFO_V1(rpin_has_replayed);
PG_FUNCTION_INFO_V1(rpin_require);

/*
 * On a replica: what a reader here may already have seen.  Rows become visible
 * inside the redo of their commit record, before its end counts as replayed, so
 * this is the end of the record in progress.
 */
static RpinPosition
replica_position(void)
{
	RpinPosition position = {.system_identifier = GetSystemIdentifier()};

	position.lsn = GetCurrentReplayRecPtr(&position.timeline);
	return position;
}

static RpinPosition
primary_position(void)
{
	if (TransactionIdIsValid(GetTopTransactionIdIfAny()))
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("cannot name a token in a transaction that has written"),
				 errdetail("The position of its commit is not known before the commit."),
				 errhint("Call replica_pin.current_token() after COMMIT.")));
	return rpin_wal_position(rpin_wal_end_flushed_soon());
}

Datum
rpin_current_token(PG_FUNCTION_ARGS)
{
	RpinPosition position = RecoveryInProgress() ?
		replica_position() : primary_position();
	char		token[RPIN_TOKEN_LENGTH + 1];

	if (position.timeline == 0 || XLogRecPtrIsInvalid(position.lsn))
		PG_RETURN_NULL();
	rpin_token_format(&position, token);
	PG_RETURN_TEXT_P(cstring_to_text(token));
}

/* The argument as a position; false for NULL and for what is no token. */
static bool
token_argument(FunctionCallInfo fcinfo, RpinPosition *position)
{
	return !PG_ARGISNULL(0) &&
		rpin_demand_parse_token(PG_GETARG_TEXT_PP(0), position);
}

Datum
rpin_token_lsn(PG_FUNCTION_ARGS)
{
	RpinPosition position;

	if (!token_argument(fcinfo, &position))
		PG_RETURN_NULL();
	PG_RETURN_LSN(position.lsn);
}

Datum
rpin_has_replayed(PG_FUNCTION_ARGS)
{
	RpinPosition position;
	RpinNode	node;

	if (!token_argument(fcinfo, &position))
		PG_RETURN_BOOL(false);
	rpin_node_read(&node);
	PG_RETURN_BOOL(rpin_node_compare(&node, &position) == RPIN_REASON_NONE);
}

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
				 errdetail("What a snapshot taken earlier shows says nothing about what was replayed since."),
				 errhint("Call it by CALL, at READ COMMITTED, first in the transaction, with no cursor open, and not from a function.")));
}

static void
refuse_unreadable(void)
{
	ereport(ERROR,
			(errcode(RPIN_ERRCODE_NOT_COMPARABLE),
			 errmsg("token cannot be read"),
			 errdetail("A token has 42 characters: system identifier, timeline and LSN in hexadecimal, joined by \"-\"."),
			 errhint("Ask replica_pin.route() on the primary, or read there.")));
}

static void
refuse_behind(const RpinNode *node, const RpinPosition *position)
{
	ereport(ERROR,
			(errcode(RPIN_ERRCODE_BEHIND),
			 errmsg("this replica has not replayed the required position yet"),
			 errdetail("It is at %X/%X, %llu bytes before %X/%X.",
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
					 errdetail("This server's history does not hold position %X/%X of timeline %u.",
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

Datum
rpin_require(PG_FUNCTION_ARGS)
{
	RpinPosition position;
	RpinNode	node;
	RpinReason	reason;
	bool		readable = token_argument(fcinfo, &position);

	release_snapshots();
	if (!readable)
		refuse_unreadable();
	rpin_node_read(&node);
	reason = rpin_node_compare(&node, &position);
	if (reason == RPIN_REASON_REPLICAS_BEHIND)
		refuse_behind(&node, &position);
	if (reason != RPIN_REASON_NONE)
		refuse_incomparable(&node, &position, reason);
	PG_RETURN_VOID();
}
