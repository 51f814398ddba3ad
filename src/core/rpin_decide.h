/*-------------------------------------------------------------------------
 *
 * rpin_decide.h
 *	  May a read go to a replica, to which ones, and why.
 *
 * A pure function.  LSN are bytes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_DECIDE_H
#define RPIN_DECIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "rpin_reason.h"

/* A set of replicas is a word: bit i is the i-th replica of the list. */
#define RPIN_REPLICAS_LIMIT 64

/* What a decision knows of a replica. */
typedef struct RpinCandidate
{
	bool		self;			/* this server: left out of every rule, if it
								 * is the only one */
	bool		eligible;		/* its sample may be believed now */
	uint64_t	replay_lsn;		/* means something when eligible */
} RpinCandidate;

typedef struct RpinDecision
{
	RpinReason	reason;
	uint64_t	safe;			/* replicas that may be read: P7, all of them */
	uint64_t	eligible;		/* replicas whose samples may be believed */
} RpinDecision;

/*
 * Decides for a read that must see `required`; `pending` when a commit of its
 * key is under way, so that the position is not known yet.
 *
 * IN_SYNC means every configured replica, not every eligible one: behind one
 * endpoint for several replicas the caller does not choose.
 */
extern RpinDecision rpin_decide(uint64_t required, bool pending,
								const RpinCandidate *candidate, int count);

/*
 * What becomes of a decision that is not enforced: every eligible replica may
 * be read, unless the reason is one that stands in any case.
 */
extern RpinDecision rpin_decide_unenforced(RpinDecision decision);

/*
 * Is a decision enforced, at this percentage?  `share` is a hash that does not
 * change from start to start: whoever is in at 10 % is in at 50 %.
 */
extern bool rpin_decide_is_enforced(uint64_t share, int percent);

#endif							/* RPIN_DECIDE_H */
