/*-------------------------------------------------------------------------
 *
 * sim_count.c
 *	  What happened how often.
 *
 *-------------------------------------------------------------------------
 */
#include "sim_count.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

/* A run of fewer events is one to look at. */
#define SIM_LONG 5000000

static const struct
{
	const char *text;
	uint64_t	minimum;
}			counted[SIM_COUNT_COUNT] = {
#define SIM_COUNT_TEXT(constant, text, minimum) [SIM_##constant] = {text, minimum},
	SIM_COUNTS(SIM_COUNT_TEXT)
#undef SIM_COUNT_TEXT
};

/*
 * Reasons that belong to src/sql alone, and the state before the first attempt
 * is over, need not be seen.
 */
static bool
is_expected_reason(RpinReason reason)
{
	return reason != RPIN_REASON_NONE && reason != RPIN_REASON_NOT_PRELOADED &&
		reason != RPIN_REASON_WAL_LOCATIONS_ABSENT &&
		reason != RPIN_REASON_ENVELOPE_UNREADABLE;
}

static const RpinState expected_state[] = {
	RPIN_STATE_CONNECTING, RPIN_STATE_SAMPLED, RPIN_STATE_SELF, RPIN_STATE_AHEAD,
	RPIN_STATE_OTHER_CLUSTER, RPIN_STATE_OTHER_TIMELINE, RPIN_STATE_NOT_A_REPLICA,
	RPIN_STATE_NO_POSITION, RPIN_STATE_UNREACHABLE, RPIN_STATE_STARTING_UP,
	RPIN_STATE_CONNECTION_LOST, RPIN_STATE_TIMED_OUT, RPIN_STATE_NONSENSE
};

static int
print(const char *what, const char *text, uint64_t count, uint64_t minimum)
{
	bool		is_missing = count < minimum;

	printf("  %12" PRIu64 "  %s%s%s", count, what, text, is_missing ? "" : "\n");
	if (is_missing)
		printf("  (unknown: %" PRIu64 " at least)\n", minimum);
	return is_missing;
}

static uint64_t
least(uint64_t in_ten_millions, uint64_t steps)
{
	return (uint64_t) ((double) in_ten_millions * (double) steps / 1e7);
}

int
sim_counts_print(const SimCounts *counts)
{
	bool		is_long = counts->steps >= SIM_LONG;
	int			missing = 0;

	for (int i = 0; i < SIM_COUNT_COUNT; i++)
		missing += print("", counted[i].text, counts->count[i],
						 is_long ? least(counted[i].minimum, counts->steps) : 0);
	for (int i = 0; i < RPIN_REASON_COUNT; i++)
		if (is_expected_reason((RpinReason) i))
			missing += print("decisions: ", rpin_reason_name((RpinReason) i),
							 counts->reason[i], is_long);
	for (unsigned i = 0; i < sizeof(expected_state) / sizeof(expected_state[0]); i++)
		missing += print("rows: ", rpin_state_name(expected_state[i]),
						 counts->state[expected_state[i]], is_long);
	return missing;
}
