/*-------------------------------------------------------------------------
 *
 * rpin_replica.h
 *	  The state machine that samples one replica.
 *
 *	 RESTING --timer--> CONNECTING --connected--> PREPARING --prepared--+
 *	    ^                                                               |
 *	    |  failure, or timer, in any of the others                      v
 *	    +-----------------------------------  IDLE <--report-- SAMPLING
 *	                                            +-----timer------>  ^
 *
 * (after "prepared" the first request goes out at once: SAMPLING)
 *
 * A phase is where the machine is; a state (rpin_sample.h) is what users are
 * told.  A failure keeps its state until the next answer, so that the view says
 * why and not only that it is being tried again.
 *
 * A sample is believed while the connection that brought it lives.  Leaving a
 * connection voids it in the same step: a replica that crashes may reopen
 * behind where it was, and the lost connection is all that tells (P1).  A new
 * sample replaces the old one, downwards too.
 *
 * The driver holds the connection.  It hands in events, and carries out the one
 * action that each step answers.  Times are microseconds of one monotonic
 * clock, handed in.  Nothing here throws, allocates or reads a clock.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_REPLICA_H
#define RPIN_REPLICA_H

#include "rpin_pace.h"
#include "rpin_sample.h"

typedef enum RpinPhase
{
	/* No connection.  Waits for the end of the back-off. */
	RPIN_PHASE_RESTING,
	/* A connection is being made.  Waits for it until the deadline. */
	RPIN_PHASE_CONNECTING,
	/* The statement is being prepared.  Waits for that until the deadline. */
	RPIN_PHASE_PREPARING,
	/* Nothing outstanding.  Waits for the time of the next request. */
	RPIN_PHASE_IDLE,
	/* A request is out.  Waits for its report until the deadline. */
	RPIN_PHASE_SAMPLING,
	RPIN_PHASE_COUNT
} RpinPhase;

typedef enum RpinEventKind
{
	RPIN_EVENT_TIMER,			/* the deadline has come */
	RPIN_EVENT_CONNECTED,
	RPIN_EVENT_PREPARED,
	RPIN_EVENT_REPORT,			/* with report and identity */
	RPIN_EVENT_FAILURE,			/* with failure */
	RPIN_EVENT_COUNT
} RpinEventKind;

typedef struct RpinEvent
{
	RpinEventKind kind;
	int64_t		now;
	uint32_t	random;			/* for the jitter of a rest */
	RpinState	failure;		/* FAILURE: what went wrong */
	const RpinReport *report;	/* REPORT */
	const RpinIdentity *identity;	/* REPORT: read after the answer came */
} RpinEvent;

typedef enum RpinAction
{
	RPIN_ACTION_NONE,
	RPIN_ACTION_CONNECT,		/* begin to connect */
	RPIN_ACTION_PREPARE,		/* prepare the statement */
	RPIN_ACTION_REQUEST,		/* send the request */
	RPIN_ACTION_CLOSE			/* close the connection, throw away its
								 * replies */
} RpinAction;

typedef struct RpinReplica
{
	RpinPhase	phase;
	int64_t		deadline;		/* when TIMER is due */
	int64_t		rest;			/* the last rest, without jitter; 0 after
								 * success */
	RpinState	state;
	int64_t		state_since;
	int64_t		requested_at;	/* of the request that is out, or was last */
	uint32_t	ahead_timeline; /* where it was seen ahead; 0: nowhere */
	uint64_t	failures;		/* since the definition stands */
	uint64_t	reports;

	/* The last sample of this connection. */
	bool		sample_valid;
	uint64_t	replay_lsn;
	bool		replay_paused;
	uint32_t	timeline;
	int64_t		sample_requested_at;	/* its age counts from here */
} RpinReplica;

/*
 * A replica that was just defined: the first attempt is due now.
 */
extern void rpin_replica_init(RpinReplica *replica, int64_t now);

/*
 * Begins again without a connection: the sample is void, the first attempt is
 * due now.  Where the replica was seen ahead stays, and so do the counts.
 */
extern void rpin_replica_restart(RpinReplica *replica, int64_t now);

/*
 * One step.  An event that cannot happen in this phase is taken as nonsense
 * from the other side, and closes the connection.
 */
extern RpinAction rpin_replica_step(RpinReplica *replica,
									const RpinEvent *event,
									const RpinPace *pace);

/*
 * Sets the time of the next request to `interval` after the last one.  Means
 * something in IDLE only.
 */
extern void rpin_replica_schedule(RpinReplica *replica, int64_t interval);

/*
 * Would it be asked sooner, if somebody began to wait for a new position?  Only
 * if nobody waits yet (lag as for rpin_pace_interval(), negative), and it is at
 * rest until after `soon`.
 */
extern bool rpin_replica_wants_news(const RpinReplica *replica, int64_t lag,
									int64_t soon);

/*
 * A replica is eligible while its last sample may be believed (P2).
 */
static inline bool
rpin_replica_eligible(const RpinReplica *replica, int64_t now,
					  int64_t lifetime)
{
	return replica->sample_valid && replica->state == RPIN_STATE_SAMPLED &&
		now - replica->sample_requested_at < lifetime;
}

#endif							/* RPIN_REPLICA_H */
