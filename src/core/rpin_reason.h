/*-------------------------------------------------------------------------
 *
 * rpin_reason.h
 *	  Why a decision is what it is.  Users read these names: they never change.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_REASON_H
#define RPIN_REASON_H

#include <stdbool.h>

/*
 * One row per reason: the constant, the name that users see, whether a decision
 * that is not enforced overrides it, and what it means.  What no replica could
 * serve is never overridden.
 *
 * RPIN_REASON_NONE stands first and is never given to a user; code uses it for
 * "nothing stands against this".
 */
#define RPIN_REASONS(R) \
	R(NONE, "", false, "") \
	/* a replica is named */ \
	R(IN_SYNC, "in_sync", true, \
	  "every configured replica has replayed it") \
	R(REPLICA_CAUGHT_UP, "replica_caught_up", true, \
	  "some replicas have replayed it") \
	R(NOT_ENFORCED, "not_enforced", false, \
	  "left out by replica_pin.enforce_percent: any eligible replica will do") \
	/* the primary: lag */ \
	R(REPLICAS_BEHIND, "replicas_behind", true, \
	  "no eligible replica has replayed it yet") \
	R(COMMIT_PENDING, "commit_pending", true, \
	  "a commit of the session key is under way") \
	R(IN_WRITE_TRANSACTION, "in_write_transaction", true, \
	  "asked in a transaction that has written") \
	/* the primary: operations */ \
	R(NO_REPLICAS, "no_replicas", false, \
	  "replica_pin.replicas is empty, or has only this server") \
	R(SAMPLES_STALE, "samples_stale", false, \
	  "no replica is eligible now, or the sampler has only just started") \
	R(NOT_PRIMARY, "not_primary", false, \
	  "this server is in recovery; ask the primary") \
	R(NOT_PRELOADED, "not_preloaded", false, \
	  "replica_pin is not in shared_preload_libraries") \
	/* the primary: a fault of the caller */ \
	R(NO_SESSION_KEY, "no_session_key", true, \
	  "no session key was given, or one that is empty or an array as text") \
	R(TOKEN_UNREADABLE, "token_unreadable", true, \
	  "the token is not one") \
	R(WAL_LOCATIONS_ABSENT, "wal_locations_absent", true, \
	  "the message has no location of this cluster") \
	R(ENVELOPE_UNREADABLE, "envelope_unreadable", true, \
	  "the message cannot be read") \
	/* the primary: identity of the position */ \
	R(POSITION_IN_FUTURE, "position_in_future", true, \
	  "the position is beyond the WAL of this server") \
	R(WRONG_CLUSTER, "wrong_cluster", true, \
	  "the token belongs to another cluster") \
	R(WRITE_LOST, "write_lost", true, \
	  "a failover lost what the token covers") \
	R(UNKNOWN_TIMELINE, "unknown_timeline", true, \
	  "the timeline of the token is not in the history of this server")

typedef enum RpinReason
{
#define RPIN_REASON_CONSTANT(constant, ...) RPIN_REASON_##constant,
	RPIN_REASONS(RPIN_REASON_CONSTANT)
#undef RPIN_REASON_CONSTANT
	RPIN_REASON_COUNT
} RpinReason;

/* The name of a reason, and its meaning; static strings, never NULL. */
extern const char *rpin_reason_name(RpinReason reason);
extern const char *rpin_reason_meaning(RpinReason reason);

/* May a decision that is not enforced override it? */
extern bool rpin_reason_is_overridable(RpinReason reason);

/* Does it name a replica? */
static inline bool
rpin_reason_names_replica(RpinReason reason)
{
	return reason == RPIN_REASON_IN_SYNC ||
		reason == RPIN_REASON_REPLICA_CAUGHT_UP ||
		reason == RPIN_REASON_NOT_ENFORCED;
}

#endif							/* RPIN_REASON_H */
