/*-------------------------------------------------------------------------
 *
 * rpin_decision.c
 *	  A decision as users get it: enforced or not, counted, logged.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/guc.h"

#include "../shmem/rpin_clock.h"
#include "../shmem/rpin_keys.h"
#include "../shmem/rpin_shmem.h"
#include "../shmem/rpin_stats.h"
#include "rpin_capture.h"
#include "rpin_decision.h"

/* So much of a correlation id goes into a log line. */
#define RPIN_CORRELATION_ID_LOGGED 128

int			rpin_enforce_percent = 100;
int			rpin_log_decisions = RPIN_LOG_FALLBACKS;
char	   *rpin_correlation_id = NULL;

/*
 * The share of a decision on session keys is that of the keys: enforced if one
 * is.  A token or an envelope has none, and each is another one: its share is
 * that of whoever asks, by the session's own key or else its application name.
 * So what one consumer decides is decided alike, today and after a restart.
 */
static bool
is_enforced(const RpinDemand *demand)
{
	const char *name = application_name;

	if (rpin_enforce_percent >= 100)
		return true;
	if (demand->has_share)
		return rpin_decide_is_enforced(demand->share, rpin_enforce_percent);
	if (rpin_session_key != NULL && rpin_session_key[0] != '\0')
		name = rpin_session_key;
	if (name == NULL)
		name = "";
	return rpin_decide_is_enforced(rpin_demand_share(name, strlen(name)),
								   rpin_enforce_percent);
}

bool
rpin_decision_is_nothing_pinned(const RpinDemand *demand)
{
	RpinQuestion question = {.enforced = true};
	RpinChoice	choice;

	if (demand->fault != RPIN_REASON_NONE || rpin_enforce_percent < 100 ||
		rpin_log_decisions == RPIN_LOG_ALL ||
		!rpin_keys_quiet(&question.required))
		return false;
	rpin_board_decide(&question, false, &choice);
	if (choice.reason != RPIN_REASON_IN_SYNC)
		return false;
	rpin_stats_count_decision(RPIN_REASON_IN_SYNC, true);
	return true;
}

/*
 * Is this the primary?  Who asks by is_pinned() reads through one endpoint, and
 * may do that only when every replica has caught up.
 */
static bool
is_primary(RpinReason reason, bool by_name)
{
	return !rpin_reason_names_replica(reason) ||
		(reason == RPIN_REASON_REPLICA_CAUGHT_UP && !by_name);
}

/*
 * What came from outside goes into the line as printable ASCII, quoted, cut, and
 * with everything else escaped, so that it is one value of one line whatever
 * its bytes, in every encoding.
 */
static void
append_quoted(StringInfo line, const char *value, size_t length)
{
	appendStringInfoChar(line, '"');
	for (size_t i = 0; i < Min(length, RPIN_CORRELATION_ID_LOGGED); i++)
	{
		unsigned char c = value[i];

		if (c == '"' || c == '\\')
			appendStringInfo(line, "\\%c", c);
		else if (c < ' ' || c > '~')
			appendStringInfo(line, "\\x%02X", c);
		else
			appendStringInfoChar(line, c);
	}
	appendStringInfoChar(line, '"');
}

/* How far the best replica is from what is required. */
static void
append_best(StringInfo line, const RpinDemand *demand)
{
	RpinBest	best;

	rpin_board_best(&best);
	if (best.name[0] == '\0')
		return;
	appendStringInfo(line, " best=%s", best.name);
	if (demand->required > 0)
		appendStringInfo(line, " behind_bytes=%llu",
						 (unsigned long long) (demand->required > best.replay_lsn ?
											   demand->required - best.replay_lsn : 0));
	appendStringInfo(line, " sample_age_ms=%lld", (long long) (best.age / 1000));
}

static void
append_correlation_id(StringInfo line, const RpinDemand *demand)
{
	const char *id = demand->correlation_id;
	size_t		length = demand->correlation_id_length;

	if (id == NULL && rpin_correlation_id != NULL)
	{
		id = rpin_correlation_id;
		length = strlen(id);
	}
	if (id == NULL || length == 0)
		return;
	appendStringInfoString(line, " correlation_id=");
	append_quoted(line, id, length);
}

static void
log_decision(const RpinDemand *demand, const RpinChoice *choice, bool by_name,
			 uint64 left_out)
{
	StringInfoData line;
	char		token[RPIN_TOKEN_LENGTH + 1];

	initStringInfo(&line);
	appendStringInfo(&line, "replica_pin: decision=%s reason=%s",
					 is_primary(choice->reason, by_name) ? "primary" : "replica",
					 rpin_reason_name(choice->found));
	if (choice->reason == RPIN_REASON_NOT_ENFORCED)
		appendStringInfoString(&line, " enforced=false");
	if (rpin_demand_required(demand, token))
		appendStringInfo(&line, " required=%s", token);
	append_best(&line, demand);
	append_correlation_id(&line, demand);
	if (left_out > 0)
		appendStringInfo(&line, " left_out=%llu", (unsigned long long) left_out);
	ereport(LOG_SERVER_ONLY,
			(errhidestmt(true), errhidecontext(true),
			 errmsg_internal("%s", line.data)));
	pfree(line.data);
}

/*
 * A fallback is a decision that is the primary, or would have been, had it been
 * enforced.
 */
static void
consider_log(const RpinDemand *demand, const RpinChoice *choice, bool by_name)
{
	uint64		left_out = 0;

	if (rpin_log_decisions == RPIN_LOG_NONE)
		return;
	if (rpin_log_decisions == RPIN_LOG_FALLBACKS &&
		(!is_primary(choice->found, by_name) ||
		 !rpin_stats_may_log(choice->found, rpin_clock_now(), &left_out)))
		return;
	log_decision(demand, choice, by_name, left_out);
}

static RpinQuestion
question_of(const RpinDemand *demand)
{
	RpinQuestion question = {
		.fault = demand->fault,
		.required = demand->required,
		.pending = demand->pending,
		.enforced = is_enforced(demand),
	};

	if (question.fault == RPIN_REASON_NONE && !demand->given)
		question.fault = RPIN_REASON_NO_SESSION_KEY;
	return question;
}

void
rpin_decision_explain(const RpinDemand *demand, const RpinBoard *board,
					  RpinChoice *choice)
{
	RpinQuestion question = question_of(demand);

	rpin_board_decide_by(board, &question, choice);
}

void
rpin_decision_make(const RpinDemand *demand, bool by_name, RpinChoice *choice)
{
	RpinQuestion question = question_of(demand);

	if (question.fault == RPIN_REASON_NOT_PRELOADED)
	{
		/* Nothing to look at, to count in, or to limit a log by. */
		choice->reason = choice->found = question.fault;
		choice->count = 0;
		return;
	}
	rpin_board_decide(&question, by_name, choice);
	rpin_stats_count_decision(choice->found,
							  choice->reason != RPIN_REASON_NOT_ENFORCED);
	consider_log(demand, choice, by_name);
}
