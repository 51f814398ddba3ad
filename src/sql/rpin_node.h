/*-------------------------------------------------------------------------
 *
 * rpin_node.h
 *	  How far the node asked has got, and what a token means on it.
 *
 * Works without preload.  Reads the timeline's history file once a session, as
 * soon as it is there.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_NODE_H
#define RPIN_NODE_H

#include "access/xlogdefs.h"
#include "fmgr.h"

#include "../core/rpin_reason.h"
#include "../core/rpin_token.h"

/* What this node's readers see for certain: every new snapshot, up to here. */
typedef struct RpinNode
{
	bool		in_recovery;
	TimeLineID	timeline;
	XLogRecPtr	lsn;			/* replayed, or on a primary inserted; 0: none */
} RpinNode;

extern void rpin_node_read(RpinNode *node);

/* Where a timeline began, or 0: the first one, or not known. */
extern XLogRecPtr rpin_node_timeline_begin(TimeLineID timeline);

/*
 * Has the node replayed a position?  RPIN_REASON_NONE if so; REPLICAS_BEHIND if
 * it will; any other reason if the two cannot be compared here.
 */
extern RpinReason rpin_node_compare(const RpinNode *node,
									const RpinPosition *position);

/*
 * The token of current_token(); false where there is none yet.  ERROR 25001 in a
 * transaction that has written.
 */
extern bool rpin_node_current_token(char token[RPIN_TOKEN_LENGTH + 1]);

/* The first argument as a position; false for NULL and for what is no token. */
extern bool rpin_node_token_argument(FunctionCallInfo fcinfo,
									 RpinPosition *position);

#endif							/* RPIN_NODE_H */
