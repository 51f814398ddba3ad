/*-------------------------------------------------------------------------
 *
 * rpin_token_sql.c
 *	  Tokens on the node asked: current_token, token_lsn, has_replayed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/pg_lsn.h"

#include "../shmem/rpin_wal.h"
#include "rpin_capture.h"
#include "rpin_demand.h"
#include "rpin_node.h"

PG_FUNCTION_INFO_V1(rpin_current_token);
PG_FUNCTION_INFO_V1(rpin_token_lsn);
PG_FUNCTION_INFO_V1(rpin_has_replayed);

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
	if (rpin_capture_has_written())
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("cannot name a token in a transaction that has written"),
				 errdetail("The position of its commit is not known before the commit."),
				 errhint("Call it after COMMIT.")));
	return rpin_wal_position(rpin_wal_end_flushed_soon());
}

bool
rpin_node_current_token(char token[RPIN_TOKEN_LENGTH + 1])
{
	RpinPosition position = RecoveryInProgress() ?
		replica_position() : primary_position();

	if (position.timeline == 0 || XLogRecPtrIsInvalid(position.lsn))
		return false;
	rpin_token_format(&position, token);
	return true;
}

Datum
rpin_current_token(PG_FUNCTION_ARGS)
{
	char		token[RPIN_TOKEN_LENGTH + 1];

	if (!rpin_node_current_token(token))
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(token));
}

Datum
rpin_token_lsn(PG_FUNCTION_ARGS)
{
	RpinPosition position;

	if (!rpin_node_token_argument(fcinfo, &position))
		PG_RETURN_NULL();
	PG_RETURN_LSN(position.lsn);
}

Datum
rpin_has_replayed(PG_FUNCTION_ARGS)
{
	RpinPosition position;
	RpinNode	node;

	if (!rpin_node_token_argument(fcinfo, &position))
		PG_RETURN_BOOL(false);
	rpin_node_read(&node);
	PG_RETURN_BOOL(rpin_node_compare(&node, &position) == RPIN_REASON_NONE);
}
