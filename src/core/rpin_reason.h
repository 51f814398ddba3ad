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
 * One row per reason: the constant, the name that users see, and whether a
 * decision that is not enforced overrides it.  What no replica could serve is
 * never overridden.
 *
 * RPIN_REASON_NONE stands first and is never given to a user; code uses it for
 * "nothing stands against this".
 */
#define RPIN_REASONS(R) \
	R(NONE, "", false) \
	/* a replica is named */ \
	R(IN_SYNC, "in_sync", true) \
	R(REPLICA_CAUGHT_UP, "replica_caught_up", true) \
	R(NOT_ENFORCED, "not_enforced", false) \
	/* the primary: lag */ \
	R(REPLICAS_BEHIND, "replicas_behind", true) \
	R(COMMIT_PENDING, "commit_pending", true) \
	R(IN_WRITE_TRANSACTION, "in_write_transaction", true) \
	/* the primary: operations */ \
	R(NO_REPLICAS, "no_replicas", false) \
	R(SAMPLES_STALE, "samples_stale", false) \
	R(NOT_PRIMARY, "not_primary", false) \
	R(NOT_PRELOADED, "not_preloaded", false) \
	/* the primary: a fault of the caller */ \
	R(NO_SESSION_KEY, "no_session_key", true) \
	R(TOKEN_UNREADABLE, "token_unreadable", true) \
	R(WAL_LOCATIONS_ABSENT, "wal_locations_absent", true) \
	R(ENVELOPE_UNREADABLE, "envelope_unreadable", true) \
	/* the primary: identity of the position */ \
	R(POSITION_IN_FUTURE, "position_in_future", true) \
	R(WRONG_CLUSTER, "wrong_cluster", true) \
	R(WRITE_LOST, "write_lost", true) \
	R(UNKNOWN_TIMELINE, "unknown_timeline", true)

typedef enum RpinReason
{
#define RPIN_REASON_CONSTANT(constant, name, overridable) RPIN_REASON_##constant,
	RPIN_REASONS(RPIN_REASON_CONSTANT)
#undef RPIN_REASON_CONSTANT
	RPIN_REASON_COUNT
} RpinReason;

/* The name of a reason; a static string, never NULL. */
extern const char *rpin_reason_name(RpinReason reason);

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
