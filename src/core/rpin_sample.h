/*-------------------------------------------------------------------------
 *
 * rpin_sample.h
 *	  What a replica says of itself, and whether it may be believed.
 *
 * Nothing here throws, allocates or reads a clock.  LSN are bytes, times are
 * microseconds of this server's monotonic clock.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_SAMPLE_H
#define RPIN_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "rpin_history.h"

/*
 * The state of a replica as users see it: the constant, the name, what it
 * means.  Only SAMPLED is eligible.
 */
#define RPIN_STATES(S) \
	S(CONNECTING, "connecting", "the first attempt is under way") \
	S(SAMPLED, "sampled", "a replica of this server whose position is known") \
	S(SELF, "self", "the address leads to this very server") \
	S(AHEAD, "ahead", "it replayed more than this server ever wrote: it followed another history") \
	S(OTHER_CLUSTER, "other_cluster", "its system identifier differs") \
	S(OTHER_TIMELINE, "other_timeline", "it is on another timeline, or on one that began elsewhere") \
	S(NOT_A_REPLICA, "not_a_replica", "it is not in recovery") \
	S(NO_POSITION, "no_position", "it has replayed nothing yet") \
	S(UNREACHABLE, "unreachable", "no connection could be made") \
	S(REFUSED, "refused", "the server refused the connection") \
	S(AUTHENTICATION, "authentication", "the server refused the sampler's role, or wants a password that no password file has") \
	S(STARTING_UP, "starting_up", "the server does not accept connections yet, or any more") \
	S(EXTENSION_MISSING, "extension_missing", "replica_pin is not in the sampler's database there, or its library file is missing") \
	S(NO_PRIVILEGE, "no_privilege", "the sampler's role may not call node_status() there") \
	S(QUERY_FAILED, "query_failed", "node_status() failed there") \
	S(CONNECTION_LOST, "connection_lost", "an open connection broke") \
	S(TIMED_OUT, "timed_out", "no answer within replica_pin.sample_timeout") \
	S(NONSENSE, "nonsense", "the answer could not be understood")

typedef enum RpinState
{
#define RPIN_STATE_CONSTANT(constant, name, meaning) RPIN_STATE_##constant,
	RPIN_STATES(RPIN_STATE_CONSTANT)
#undef RPIN_STATE_CONSTANT
	RPIN_STATE_COUNT
} RpinState;

/* Static strings, never NULL. */
extern const char *rpin_state_name(RpinState state);
extern const char *rpin_state_meaning(RpinState state);

/* With the terminating zero byte. */
#define RPIN_VERSION_SIZE 16

/* An answer of node_status(). */
typedef struct RpinReport
{
	uint64_t	system_identifier;
	uint64_t	node_id;		/* 0: the library is not preloaded there */
	bool		in_recovery;
	bool		replay_paused;
	uint32_t	timeline;		/* of replay */
	uint64_t	timeline_begin; /* its switch point; 0: first, or not known */
	uint64_t	replay_lsn;		/* 0: nothing replayed */
	char		library_version[RPIN_VERSION_SIZE];
} RpinReport;

/* What it is held against: this server, read after the answer came. */
typedef struct RpinIdentity
{
	uint64_t	system_identifier;
	uint64_t	node_id;
	uint64_t	end;			/* end of all WAL inserted here */
	const RpinHistory *history;
} RpinIdentity;

/*
 * The state that an answer puts its replica into.  Promise P8 for replicas.
 *
 * `ahead_timeline` is the timeline on which the replica was seen ahead before,
 * or 0.  Our WAL grows past the place where its numbers look right, so being
 * ahead lasts as long as that timeline does.
 */
extern RpinState rpin_sample_judge(const RpinReport *report,
								   const RpinIdentity *identity,
								   uint32_t ahead_timeline);

#endif							/* RPIN_SAMPLE_H */
