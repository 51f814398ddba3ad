/*-------------------------------------------------------------------------
 *
 * rpin_decide.c
 *	  The decision.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_decide.h"

/*
 * A list may have this server, once.  When more entries lead to it, all but one
 * are addresses of another server in truth, and it is not known which: then none
 * is left out, and none is eligible (P2).
 */
static bool
is_left_out(const RpinCandidate *candidate, int selves)
{
	return candidate->self && selves == 1;
}

static int
count_selves(const RpinCandidate *candidate, int count)
{
	int			selves = 0;

	for (int i = 0; i < count; i++)
		selves += candidate[i].self;
	return selves;
}

RpinDecision
rpin_decide(uint64_t required, bool pending, const RpinCandidate *candidate,
			int count)
{
	RpinDecision decision = {RPIN_REASON_NONE, 0, 0};
	uint64_t	configured = 0;
	int			selves = count_selves(candidate, count);

	for (int i = 0; i < count; i++)
	{
		uint64_t	bit = UINT64_C(1) << i;

		if (is_left_out(&candidate[i], selves))
			continue;
		configured |= bit;
		if (!candidate[i].eligible || candidate[i].self)
			continue;
		decision.eligible |= bit;
		if (candidate[i].replay_lsn >= required)
			decision.safe |= bit;
	}

	/* Nothing demanded is a fault of the caller, never "in sync" (P2). */
	if (required == 0)
		decision.reason = RPIN_REASON_NO_SESSION_KEY;
	else if (configured == 0)
		decision.reason = RPIN_REASON_NO_REPLICAS;
	else if (decision.eligible == 0)
		decision.reason = RPIN_REASON_SAMPLES_STALE;
	else if (pending)
		decision.reason = RPIN_REASON_COMMIT_PENDING;
	else if (decision.safe == 0)
		decision.reason = RPIN_REASON_REPLICAS_BEHIND;
	else if (decision.safe == configured)
		decision.reason = RPIN_REASON_IN_SYNC;
	else
		decision.reason = RPIN_REASON_REPLICA_CAUGHT_UP;

	if (!rpin_reason_names_replica(decision.reason))
		decision.safe = 0;
	return decision;
}

RpinDecision
rpin_decide_unenforced(RpinDecision decision)
{
	if (!rpin_reason_is_overridable(decision.reason) || decision.eligible == 0)
		return decision;
	decision.reason = RPIN_REASON_NOT_ENFORCED;
	decision.safe = decision.eligible;
	return decision;
}

bool
rpin_decide_is_enforced(uint64_t share, int percent)
{
	return (share >> 32) * 100 < (uint64_t) percent << 32;
}
