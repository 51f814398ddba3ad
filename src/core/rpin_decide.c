/*-------------------------------------------------------------------------
 *
 * rpin_decide.c
 *	  The decision.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_decide.h"

RpinDecision
rpin_decide(uint64_t required, bool pending, const RpinCandidate *candidate,
			int count)
{
	RpinDecision primary = {RPIN_REASON_NONE, 0};
	uint64_t	configured = 0;
	uint64_t	eligible = 0;
	uint64_t	safe = 0;

	for (int i = 0; i < count; i++)
	{
		uint64_t	bit = UINT64_C(1) << i;

		if (candidate[i].self)
			continue;
		configured |= bit;
		if (!candidate[i].eligible)
			continue;
		eligible |= bit;
		if (candidate[i].replay_lsn >= required)
			safe |= bit;
	}

	/* Nothing demanded is a fault of the caller, never "in sync" (P2). */
	if (required == 0)
		primary.reason = RPIN_REASON_NO_SESSION_KEY;
	else if (configured == 0)
		primary.reason = RPIN_REASON_NO_REPLICAS;
	else if (eligible == 0)
		primary.reason = RPIN_REASON_SAMPLES_STALE;
	else if (pending)
		primary.reason = RPIN_REASON_COMMIT_PENDING;
	else if (safe == 0)
		primary.reason = RPIN_REASON_REPLICAS_BEHIND;
	if (primary.reason != RPIN_REASON_NONE)
		return primary;

	return (RpinDecision)
	{
		safe == configured ? RPIN_REASON_IN_SYNC : RPIN_REASON_REPLICA_CAUGHT_UP,
			safe
	};
}
