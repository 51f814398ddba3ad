/*-------------------------------------------------------------------------
 *
 * rpin_explain.c
 *	  explain(): a decision in all its parts (P9).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"

#include "../shmem/rpin_clock.h"
#include "../shmem/rpin_shmem.h"
#include "rpin_decision.h"
#include "rpin_row.h"
#include "rpin_views.h"

PG_FUNCTION_INFO_V1(rpin_explain);

/* The columns that every row has. */
static void
begin_row(RpinRow *row, FunctionCallInfo fcinfo, const char *item,
		  const char *verdict, const char *detail)
{
	rpin_row_begin_of_set(row, fcinfo);
	rpin_row_set_text(row, "item", item);
	rpin_row_set_text(row, "verdict", verdict);
	rpin_row_set_text(row, "detail", detail);
}

static void
put_decision(FunctionCallInfo fcinfo, const RpinDemand *demand,
			 const RpinChoice *choice)
{
	RpinRow		row;
	const char *detail = rpin_reason_meaning(choice->found);

	if (choice->reason == RPIN_REASON_NOT_ENFORCED)
		detail = psprintf("%s; if it were enforced, %s: %s",
						  rpin_reason_meaning(choice->reason),
						  rpin_reason_name(choice->found), detail);
	begin_row(&row, fcinfo, "decision", rpin_reason_name(choice->reason), detail);
	rpin_row_set_lsn(&row, "lsn", demand->required);
	rpin_row_store(&row, fcinfo);
}

/* A demand of the key alone, or of the token alone. */
static void
put_part(FunctionCallInfo fcinfo, const char *item, const RpinDemand *part,
		 const char *verdict, const char *detail)
{
	RpinRow		row;

	if (part->fault != RPIN_REASON_NONE)
		begin_row(&row, fcinfo, item, rpin_reason_name(part->fault),
				  rpin_reason_meaning(part->fault));
	else
		begin_row(&row, fcinfo, item, verdict, detail);
	rpin_row_set_lsn(&row, "lsn", part->required);
	rpin_row_store(&row, fcinfo);
}

static void
put_key(FunctionCallInfo fcinfo, const RpinDemand *key)
{
	if (key->pending)
		put_part(fcinfo, "session_key", key, "commit_pending",
				 "a commit that may pin it is under way; it needs at least this position");
	else if (key->recorded)
		put_part(fcinfo, "session_key", key, "recorded",
				 "the position of its last write");
	else
		put_part(fcinfo, "session_key", key, "floor",
				 "not in the table: never pinned since the server started, or evicted; it counts as written here");
}

/* Is it known what the read must see?  Perhaps more, while a commit is under way. */
static bool
is_known(const RpinDemand *demand)
{
	return demand->fault == RPIN_REASON_NONE && demand->given;
}

static void
begin_replica(RpinRow *row, FunctionCallInfo fcinfo, const RpinBoardRow *entry,
			  const RpinDemand *demand)
{
	const RpinReplica *replica = &entry->replica;

	if (replica->state != RPIN_STATE_SAMPLED)
		begin_row(row, fcinfo, "replica", rpin_state_name(replica->state),
				  entry->error[0] != '\0' ? entry->error :
				  rpin_state_meaning(replica->state));
	else if (!rpin_board_eligible(entry))
		begin_row(row, fcinfo, "replica", "sample_too_old",
				  "its sample is older than replica_pin.sample_lifetime");
	else if (is_known(demand) && replica->replay_lsn < demand->required)
		begin_row(row, fcinfo, "replica", "behind",
				  replica->replay_paused ? "replay is paused there" :
				  "it has not replayed what the read must see");
	else if (!is_known(demand) || demand->pending)
		begin_row(row, fcinfo, "replica", "eligible",
				  "its position is known; what the read must see is not");
	else
		begin_row(row, fcinfo, "replica", "caught_up",
				  "it has replayed what the read must see");
}

static void
put_replica(FunctionCallInfo fcinfo, const RpinBoardRow *entry,
			const RpinDemand *demand)
{
	const RpinReplica *replica = &entry->replica;
	XLogRecPtr	required = demand->required;
	RpinRow		row;

	begin_replica(&row, fcinfo, entry, demand);
	rpin_row_set_text(&row, "replica", entry->address.name);
	if (replica->sample_valid)
	{
		rpin_row_set_lsn(&row, "lsn", replica->replay_lsn);
		if (is_known(demand) && !XLogRecPtrIsInvalid(replica->replay_lsn))
			rpin_row_set(&row, "behind_bytes",
						 Int64GetDatum(required > replica->replay_lsn ?
									   required - replica->replay_lsn : 0));
		rpin_row_set(&row, "sample_age",
					 rpin_views_interval(rpin_clock_now() -
										 replica->sample_requested_at));
	}
	rpin_row_store(&row, fcinfo);
}

static void
put_parts(FunctionCallInfo fcinfo, text *key, text *token, RpinDemand *demand)
{
	RpinDemand	alone;

	rpin_demand_begin(demand);
	rpin_demand_add_key(demand, key);
	if (key != NULL)
		put_key(fcinfo, demand);
	rpin_demand_add_token(demand, token);
	if (token == NULL)
		return;
	rpin_demand_begin(&alone);
	rpin_demand_add_token(&alone, token);
	put_part(fcinfo, "token", &alone, "comparable",
			 "a position of this server's history");
}

/*
 * The rows of the replicas and the decision are of one copy of the board; none
 * of it could be read, if it does not hold still.  Like asking, explaining is
 * never an error (P2).
 */
static void
put_answer(FunctionCallInfo fcinfo, const RpinDemand *demand)
{
	RpinBoard  *board = palloc0(rpin_board_size());
	RpinChoice	choice = {.reason = RPIN_REASON_SAMPLES_STALE,
	.found = RPIN_REASON_SAMPLES_STALE};

	if (rpin_board_copy(board))
	{
		rpin_decision_explain(demand, board, &choice);
		for (int i = 0; i < board->count; i++)
			put_replica(fcinfo, &board->row[i], demand);
	}
	put_decision(fcinfo, demand, &choice);
}

Datum
rpin_explain(PG_FUNCTION_ARGS)
{
	static const RpinChoice not_preloaded = {.reason = RPIN_REASON_NOT_PRELOADED,
	.found = RPIN_REASON_NOT_PRELOADED};
	RpinDemand	demand;

	rpin_row_begin_set(fcinfo);
	put_parts(fcinfo,
			  PG_ARGISNULL(0) ? NULL : PG_GETARG_TEXT_PP(0),
			  PG_ARGISNULL(1) ? NULL : PG_GETARG_TEXT_PP(1), &demand);
	if (rpin_shmem_available())
		put_answer(fcinfo, &demand);
	else
		put_decision(fcinfo, &demand, &not_preloaded);
	return (Datum) 0;
}
