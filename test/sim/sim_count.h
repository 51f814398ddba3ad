/*-------------------------------------------------------------------------
 *
 * sim_count.h
 *	  What happened how often: so that a run in which nothing could have gone
 *	  wrong does not pass.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIM_COUNT_H
#define SIM_COUNT_H

#include <stdint.h>

#include "rpin_reason.h"
#include "rpin_sample.h"

/*
 * The constant, what it says, and how often at least in ten million events, about
 * a tenth of what is usual; 0: may be missing.
 */
#define SIM_COUNTS(C) \
	C(COMMIT, "commits answered", 20000) \
	C(COMMIT_TWO_KEYS, "commits of two keys", 5000) \
	C(COMMIT_ALL, "commits that pin every key", 7) \
	C(COMMIT_PREPARED_FAILED, "COMMIT PREPARED that failed after it committed", 200) \
	C(ABORT, "aborts with pending marks", 2000) \
	C(PIN, "pin() outside a commit", 3000) \
	C(PIN_TOKEN, "pin() of a token", 2000) \
	C(EVICTION, "keys evicted", 10000) \
	C(DECISION, "decisions", 100000) \
	C(DECISION_LATE, "decisions with time between demand and board", 50000) \
	C(DECISION_MANY, "decisions on several keys", 10000) \
	C(DECISION_QUIET, "decisions of the fast path", 200) \
	C(NAMED, "replicas named and checked", 200000) \
	C(NAMED_FRESHER, "of them: replayed between the request of the sample and its taking", 0) \
	C(FALSE_PIN, "decisions for the primary although every replica has the key", 0) \
	C(READ_OLD_CONNECTION, "reads on an old connection", 30000) \
	C(READ_REQUIRED, "reads behind require()", 10000) \
	C(REQUIRE_BEHIND, "require(): RP001", 800) \
	C(REQUIRE_NOT_COMPARABLE, "require(): RP002", 1000) \
	C(LET_GO, "decisions that had to be in sync", 3000) \
	C(PACED, "requests that had to be in time", 10000) \
	C(KEPT_KEY, "keys compared with the unbounded map", 500000) \
	C(TOKEN_HELD, "tokens whose write is still there", 10000) \
	C(TOKEN_LOST, "tokens whose write is lost", 100) \
	C(NOT_ENFORCED, "decisions that were not enforced", 0) \
	C(CRASH, "replicas that crashed", 40) \
	C(REGRESS, "servers that reopened behind where they were", 40) \
	C(PROMOTION, "promotions", 10) \
	C(PROMOTION_LOSS, "commits that a promotion lost", 30) \
	C(PRIMARY_CRASH, "restarts of the primary", 10) \
	C(RESTORE, "restores of the primary from a snapshot", 5) \
	C(FOLLOW, "replicas that followed a new timeline", 10) \
	C(REBUILD, "replicas that were built anew", 10) \
	C(CUT, "connections that broke", 40) \
	C(SILENCE, "silences of the network", 60) \
	C(STALL, "stalls of the sampler", 20) \
	C(WORKER_RESTART, "restarts of the sampler", 10) \
	C(RELOAD, "reloads of the list", 20) \
	C(LINK, "connections of the sampler", 200) \
	C(REPLY, "replies that it took", 40000) \
	C(REPLY_LATE, "replies to a connection that it had closed", 30) \
	C(REPLY_TWICE, "replies that came twice", 20) \
	C(REPLY_FALSE, "replies that were false", 60) \
	C(PUBLISHED, "boards published", 50000)

typedef enum SimCount
{
#define SIM_COUNT_CONSTANT(constant, text, minimum) SIM_##constant,
	SIM_COUNTS(SIM_COUNT_CONSTANT)
#undef SIM_COUNT_CONSTANT
	SIM_COUNT_COUNT
} SimCount;

typedef struct SimCounts
{
	uint64_t	steps;
	int64_t		virtual_time;
	uint64_t	count[SIM_COUNT_COUNT];
	uint64_t	reason[RPIN_REASON_COUNT];	/* decisions, by what was found */
	uint64_t	state[RPIN_STATE_COUNT];	/* rows of published boards */
} SimCounts;

/* Prints them; how many are below their minimum. */
extern int	sim_counts_print(const SimCounts *counts);

#endif							/* SIM_COUNT_H */
