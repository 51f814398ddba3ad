/*-------------------------------------------------------------------------
 *
 * rpin_reason.h
 *	  Why a decision is what it is.  Users read these names: they never change.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_REASON_H
#define RPIN_REASON_H

/*
 * One row per reason: the constant, the name that users see.
 *
 * RPIN_REASON_NONE stands first and is never given to a user; code uses it for
 * "nothing stands against this".
 */
#define RPIN_REASONS(R) \
	R(NONE, "") \
	/* a replica is named */ \
	R(IN_SYNC, "in_sync") \
	R(REPLICA_CAUGHT_UP, "replica_caught_up") \
	/* the primary: lag */ \
	R(REPLICAS_BEHIND, "replicas_behind") \
	R(COMMIT_PENDING, "commit_pending") \
	R(IN_WRITE_TRANSACTION, "in_write_transaction") \
	/* the primary: operations */ \
	R(NO_REPLICAS, "no_replicas") \
	R(SAMPLES_STALE, "samples_stale") \
	R(NOT_PRIMARY, "not_primary") \
	R(NOT_PRELOADED, "not_preloaded") \
	/* the primary: a fault of the caller */ \
	R(NO_SESSION_KEY, "no_session_key") \
	R(TOKEN_UNREADABLE, "token_unreadable") \
	/* the primary: identity of the position */ \
	R(POSITION_IN_FUTURE, "position_in_future") \
	R(WRONG_CLUSTER, "wrong_cluster") \
	R(WRITE_LOST, "write_lost") \
	R(UNKNOWN_TIMELINE, "unknown_timeline")

typedef enum RpinReason
{
#define RPIN_REASON_CONSTANT(constant, name) RPIN_REASON_##constant,
	RPIN_REASONS(RPIN_REASON_CONSTANT)
#undef RPIN_REASON_CONSTANT
	RPIN_REASON_COUNT
} RpinReason;

/* The name of a reason; a static string, never NULL. */
extern const char *rpin_reason_name(RpinReason reason);

#endif							/* RPIN_REASON_H */
