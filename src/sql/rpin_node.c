/*-------------------------------------------------------------------------
 *
 * rpin_node.c
 *	  How far the node asked has got: node_status, and comparing tokens.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "../shmem/rpin_board.h"
#include "../shmem/rpin_shmem.h"
#include "../shmem/rpin_wal.h"
#include "rpin_demand.h"
#include "rpin_node.h"
#include "rpin_row.h"

PG_FUNCTION_INFO_V1(rpin_node_status);

/*
 * GetXLogReplayRecPtr() is the end of the last record whose redo is over, and
 * so what every new snapshot sees.  After a promotion it stands still for ever.
 */
void
rpin_node_read(RpinNode *node)
{
	node->in_recovery = RecoveryInProgress();
	if (node->in_recovery)
		node->lsn = GetXLogReplayRecPtr(&node->timeline);
	else
	{
		node->timeline = GetWALInsertionTimeLine();
		node->lsn = rpin_wal_end();
	}
}

XLogRecPtr
rpin_node_timeline_begin(TimeLineID timeline)
{
	static TimeLineID known = 0;
	static XLogRecPtr begin = InvalidXLogRecPtr;
	RpinHistory history;

	if (timeline == known)
		return begin;
	rpin_wal_read_history(timeline, &history);
	if (history.count > 0)
	{
		/* A history file never changes once it is there. */
		known = timeline;
		begin = rpin_history_begin(&history);
		return begin;
	}
	return InvalidXLogRecPtr;
}

RpinReason
rpin_node_compare(const RpinNode *node, const RpinPosition *position)
{
	RpinHistory own = {.timeline = node->timeline};
	XLogRecPtr	lsn;
	RpinReason	reason;

	if (!node->in_recovery && rpin_shmem_available())
		return rpin_board_resolve(position, &lsn);

	/*
	 * A replica keeps no history.  What is beyond it on its own timeline, it
	 * will reach; a primary will not, that position is nobody's.
	 */
	reason = rpin_history_resolve(&own, GetSystemIdentifier(), node->lsn,
								  position, &lsn);
	if (reason == RPIN_REASON_POSITION_IN_FUTURE && node->in_recovery)
		return RPIN_REASON_REPLICAS_BEHIND;
	return reason;
}

bool
rpin_node_token_argument(FunctionCallInfo fcinfo, RpinPosition *position)
{
	return !PG_ARGISNULL(0) &&
		rpin_demand_parse_token(PG_GETARG_TEXT_PP(0), position);
}

Datum
rpin_node_status(PG_FUNCTION_ARGS)
{
	RpinNode	node;
	RpinRow		row;
	bool		paused = false;

	rpin_node_read(&node);
	if (node.in_recovery)
		paused = GetRecoveryPauseState() == RECOVERY_PAUSED;

	rpin_row_begin(&row, fcinfo);
	rpin_row_set(&row, "in_recovery", BoolGetDatum(node.in_recovery));
	if (node.in_recovery)
		rpin_row_set_lsn(&row, "replay_lsn", node.lsn);
	rpin_row_set(&row, "timeline", Int32GetDatum(node.timeline));
	rpin_row_set_lsn(&row, "timeline_begin", rpin_node_timeline_begin(node.timeline));
	rpin_row_set(&row, "replay_paused", BoolGetDatum(paused));
	rpin_row_set(&row, "system_identifier",
				 Int64GetDatum((int64) GetSystemIdentifier()));
	if (rpin_shmem_available())
		rpin_row_set_text(&row, "node_id",
						  psprintf("%016llX",
								   (unsigned long long) rpin_board_node_id()));
	rpin_row_set_text(&row, "library_version", RPIN_VERSION);
	rpin_row_set(&row, "started_at", TimestampTzGetDatum(PgStartTime));
	return rpin_row_datum(&row);
}
