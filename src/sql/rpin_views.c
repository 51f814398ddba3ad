/*-------------------------------------------------------------------------
 *
 * rpin_views.c
 *	  What stands behind the views replicas and status.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "../shmem/rpin_board.h"
#include "../shmem/rpin_clock.h"
#include "../shmem/rpin_keys.h"
#include "../shmem/rpin_shmem.h"
#include "../shmem/rpin_stats.h"
#include "rpin_check.h"
#include "rpin_row.h"
#include "rpin_views.h"

PG_FUNCTION_INFO_V1(rpin_replica_rows);
PG_FUNCTION_INFO_V1(rpin_status_row);
PG_FUNCTION_INFO_V1(rpin_decision_rows);
PG_FUNCTION_INFO_V1(rpin_reset_stats);

RpinBoard *
rpin_views_board(void)
{
	RpinBoard  *board = palloc0(rpin_board_size());

	if (!rpin_board_copy(board))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("the sampler changes its board too fast to be read"),
				 errhint("Try again.")));
	return board;
}

Datum
rpin_views_interval(int64 microseconds)
{
	Interval   *interval = palloc0(sizeof(Interval));

	interval->time = Max(microseconds, 0);
	return IntervalPGetDatum(interval);
}

/* A moment of our clock as a moment of the day. */
static Datum
moment_datum(int64 moment)
{
	return TimestampTzGetDatum(GetCurrentTimestamp() -
							   (rpin_clock_now() - moment));
}

/*
 * Lag is against WAL that is flushed: what is not flushed is not sent.  In time
 * it is the age of the oldest such WAL that the replica lacked when it was last
 * sampled.
 */
static void
set_lag(RpinRow *row, const RpinBoardRow *entry, XLogRecPtr flushed, int64 now)
{
	XLogRecPtr	replayed = entry->replica.replay_lsn;

	rpin_row_set(row, "lag_bytes",
				 Int64GetDatum(flushed > replayed ? flushed - replayed : 0));
	rpin_row_set(row, "lag",
				 rpin_views_interval(entry->behind_since < 0 ? 0 :
									 now - entry->behind_since));
}

/* What is known only from a sample that may be believed or at least shown. */
static void
set_sample(RpinRow *row, const RpinBoardRow *entry, XLogRecPtr flushed,
		   int64 now)
{
	const RpinReplica *replica = &entry->replica;

	if (!replica->sample_valid)
		return;
	rpin_row_set_lsn(row, "replay_lsn", replica->replay_lsn);
	rpin_row_set(row, "timeline", Int32GetDatum(replica->timeline));
	rpin_row_set(row, "replay_paused", BoolGetDatum(replica->replay_paused));
	rpin_row_set(row, "sample_age",
				 rpin_views_interval(now - replica->sample_requested_at));
	if (replica->state == RPIN_STATE_SAMPLED)
		set_lag(row, entry, flushed, now);
}

static void
set_replica(RpinRow *row, const RpinBoardRow *entry, XLogRecPtr flushed)
{
	const RpinReplica *replica = &entry->replica;
	int64		now = rpin_clock_now();

	rpin_row_set_text(row, "name", entry->address.name);
	rpin_row_set_text(row, "host", entry->address.host);
	rpin_row_set(row, "port", Int32GetDatum(entry->address.port));
	rpin_row_set_text(row, "state", rpin_state_name(replica->state));
	rpin_row_set(row, "state_since", moment_datum(replica->state_since));
	rpin_row_set(row, "eligible",
				 BoolGetDatum(rpin_board_eligible(entry)));
	set_sample(row, entry, flushed, now);
	if (entry->connected_at != 0)
		rpin_row_set(row, "connected_since", moment_datum(entry->connected_at));
	if (entry->error[0] != '\0')
		rpin_row_set_text(row, "last_error", entry->error);
	if (entry->library_version[0] != '\0')
		rpin_row_set_text(row, "library_version", entry->library_version);
	rpin_row_set(row, "samples", Int64GetDatum(replica->reports));
	rpin_row_set(row, "failures", Int64GetDatum(replica->failures));
}

Datum
rpin_replica_rows(PG_FUNCTION_ARGS)
{
	RpinBoard  *board;
	XLogRecPtr	flushed = InvalidXLogRecPtr;

	rpin_check_preloaded();
	rpin_row_begin_set(fcinfo);
	board = rpin_views_board();
	if (!RecoveryInProgress())
		flushed = GetFlushRecPtr(NULL);
	for (int i = 0; i < board->count; i++)
	{
		RpinRow		row;

		rpin_row_begin_of_set(&row, fcinfo);
		set_replica(&row, &board->row[i], flushed);
		rpin_row_store(&row, fcinfo);
	}
	return (Datum) 0;
}

static void
set_worker(RpinRow *row)
{
	RpinWorkerInfo worker;

	rpin_board_worker_info(&worker);
	if (worker.pid != 0)
		rpin_row_set(row, "sampler_pid", Int32GetDatum(worker.pid));
	if (worker.heartbeat != 0)
		rpin_row_set(row, "sampler_heartbeat_age",
					 rpin_views_interval(rpin_clock_now() - worker.heartbeat));
}

static void
set_keys(RpinRow *row)
{
	RpinKeysUsage usage;

	rpin_keys_usage(&usage);
	rpin_row_set(row, "session_key_slots", Int64GetDatum(usage.capacity));
	rpin_row_set(row, "session_keys", Int64GetDatum(usage.used));
	rpin_row_set(row, "evictions", Int64GetDatum(usage.evictions));
	rpin_row_set_lsn(row, "floor_lsn", usage.floor);
	rpin_row_set_lsn(row, "greatest_lsn", usage.greatest);
	rpin_row_set(row, "pending_keys", Int64GetDatum(usage.pending));
	rpin_row_set(row, "unkeyed_commits",
				 Int64GetDatum(rpin_stats_unkeyed()));
	rpin_row_set(row, "stats_reset", TimestampTzGetDatum(rpin_stats_since()));
	rpin_row_set(row, "shared_memory_bytes", Int64GetDatum(rpin_shmem_size()));
}

int
rpin_views_clamped(int clamped, const char *name[RPIN_CLAMPED_COUNT])
{
	static const struct
	{
		int			flag;
		const char *name;
	}			settings[RPIN_CLAMPED_COUNT] = {
		{RPIN_CLAMPED_INTERVAL, "replica_pin.sample_interval"},
		{RPIN_CLAMPED_TIMEOUT, "replica_pin.sample_timeout"},
		{RPIN_CLAMPED_MIN_INTERVAL, "replica_pin.min_sample_interval"},
	};
	int			count = 0;

	for (int i = 0; i < RPIN_CLAMPED_COUNT; i++)
		if (clamped & settings[i].flag)
			name[count++] = settings[i].name;
	return count;
}

static Datum
clamped_settings(int clamped)
{
	const char *name[RPIN_CLAMPED_COUNT];
	Datum		element[RPIN_CLAMPED_COUNT];
	int			count = rpin_views_clamped(clamped, name);

	for (int i = 0; i < count; i++)
		element[i] = CStringGetTextDatum(name[i]);
	return PointerGetDatum(construct_array(element, count, TEXTOID, -1, false,
										   TYPALIGN_INT));
}

Datum
rpin_status_row(PG_FUNCTION_ARGS)
{
	RpinRow		row;
	RpinBoard  *board;

	rpin_check_preloaded();
	board = rpin_views_board();
	rpin_row_begin(&row, fcinfo);
	rpin_row_set(&row, "in_recovery", BoolGetDatum(RecoveryInProgress()));
	rpin_row_set(&row, "replicas", Int32GetDatum(board->count));
	rpin_row_set(&row, "clamped_settings", clamped_settings(board->clamped));
	set_worker(&row);
	set_keys(&row);
	return rpin_row_datum(&row);
}

Datum
rpin_decision_rows(PG_FUNCTION_ARGS)
{
	rpin_check_preloaded();
	rpin_row_begin_set(fcinfo);
	for (int reason = RPIN_REASON_NONE + 1; reason < RPIN_REASON_COUNT; reason++)
	{
		RpinRow		row;

		/*
		 * What users are told of a decision that is not enforced; not a
		 * cause.
		 */
		if (reason == RPIN_REASON_NOT_ENFORCED)
			continue;
		rpin_row_begin_of_set(&row, fcinfo);
		rpin_row_set_text(&row, "reason", rpin_reason_name(reason));
		rpin_row_set(&row, "enforced",
					 Int64GetDatum(rpin_stats_decisions(reason, true)));
		rpin_row_set(&row, "not_enforced",
					 Int64GetDatum(rpin_stats_decisions(reason, false)));
		rpin_row_store(&row, fcinfo);
	}
	return (Datum) 0;
}

Datum
rpin_reset_stats(PG_FUNCTION_ARGS)
{
	rpin_check_preloaded();
	rpin_stats_reset();
	PG_RETURN_VOID();
}
