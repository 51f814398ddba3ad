/*-------------------------------------------------------------------------
 *
 * rpin_demand.h
 *	  What a read must see: the greatest of the keys and tokens it names.
 *
 * The read side.  Never raises on its input (P2): what cannot be understood
 * becomes the reason of the decision.  Decides nothing itself: that is
 * rpin_decision_make().
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_DEMAND_H
#define RPIN_DEMAND_H

#include "access/xlogdefs.h"
#include "utils/array.h"

#include "../core/rpin_token.h"
#include "../shmem/rpin_board.h"

typedef struct RpinDemand
{
	RpinReason	fault;			/* the first that stands against a decision */
	bool		given;			/* anything that demands something */
	bool		pending;		/* a commit of one of the keys is under way */
	bool		recorded;		/* a key's own position, not that of a floor */
	XLogRecPtr	required;		/* the greatest position so far */
	bool		carries_token;
	RpinPosition token;			/* the readable token that was given */

	/* For the rollout by percentage: the least hash of the keys. */
	bool		has_share;
	uint64		share;

	/* Of an envelope, as its bytes stand there; NULL: none. */
	const char *correlation_id;
	size_t		correlation_id_length;
} RpinDemand;

/*
 * Begins a demand.  On a node that cannot decide, that is its fault, and what
 * is added later changes nothing.
 */
extern void rpin_demand_begin(RpinDemand *demand);

/* Adds a part; NULL demands nothing. */
extern void rpin_demand_add_key(RpinDemand *demand, text *key);
extern void rpin_demand_add_keys(RpinDemand *demand, ArrayType *keys);
extern void rpin_demand_add_token(RpinDemand *demand, text *token);
extern void rpin_demand_add_position(RpinDemand *demand,
									 const RpinPosition *position);

/* Notes what stands against a decision; the first one counts. */
extern void rpin_demand_add_fault(RpinDemand *demand, RpinReason fault);

/*
 * The token to carry on from here.  False: drop what you have, no replica can
 * ever satisfy it.
 *
 * Where this node could not judge a token, that token itself: a caller that
 * asked the wrong node, or too early, must not lose it.
 */
extern bool rpin_demand_required(const RpinDemand *demand,
								 char token[RPIN_TOKEN_LENGTH + 1]);

/*
 * The share of a name for the rollout by percentage.  The same from start to
 * start, unlike a fingerprint.
 */
extern uint64 rpin_demand_share(const char *name, size_t length);

/* Reads a token datum; false if it is not one. */
extern bool rpin_demand_parse_token(const text *token, RpinPosition *position);

#endif							/* RPIN_DEMAND_H */
