/*-------------------------------------------------------------------------
 *
 * rpin_sample.c
 *	  Judging what a replica says.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_sample.h"

static const char *const state_names[RPIN_STATE_COUNT] = {
#define RPIN_STATE_NAME(constant, name, meaning) [RPIN_STATE_##constant] = name,
	RPIN_STATES(RPIN_STATE_NAME)
#undef RPIN_STATE_NAME
};

static const char *const state_meanings[RPIN_STATE_COUNT] = {
#define RPIN_STATE_MEANING(constant, name, meaning) [RPIN_STATE_##constant] = meaning,
	RPIN_STATES(RPIN_STATE_MEANING)
#undef RPIN_STATE_MEANING
};

const char *
rpin_state_name(RpinState state)
{
	return state_names[state];
}

const char *
rpin_state_meaning(RpinState state)
{
	return state_meanings[state];
}

RpinState
rpin_sample_judge(const RpinReport *report, const RpinIdentity *identity,
				  uint32_t ahead_timeline)
{
	if (report->system_identifier != identity->system_identifier)
		return RPIN_STATE_OTHER_CLUSTER;
	if (report->node_id != 0 && report->node_id == identity->node_id)
		return RPIN_STATE_SELF;
	if (!report->in_recovery)
		return RPIN_STATE_NOT_A_REPLICA;
	if (!rpin_history_same(identity->history, report->timeline,
						   report->timeline_begin))
		return RPIN_STATE_OTHER_TIMELINE;
	if (report->replay_lsn == 0)
		return RPIN_STATE_NO_POSITION;
	if (report->replay_lsn > identity->end || report->timeline == ahead_timeline)
		return RPIN_STATE_AHEAD;
	return RPIN_STATE_SAMPLED;
}
