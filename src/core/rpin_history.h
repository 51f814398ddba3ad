/*-------------------------------------------------------------------------
 *
 * rpin_history.h
 *	  The timelines that a server's WAL went through, and what a position of
 *	  one of them means today (P8).
 *
 * A promotion ends a timeline at its switch point.  WAL of the old timeline up
 * to the switch point is part of the new one; WAL beyond it is lost.
 *
 * Nothing here throws, allocates or keeps state.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_HISTORY_H
#define RPIN_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpin_reason.h"
#include "rpin_token.h"

/*
 * Only the youngest ancestors are kept.  A token from before them is of an
 * unknown timeline, which costs a read on the primary and never a stale one.
 */
#define RPIN_HISTORY_ANCESTORS 64

typedef struct RpinAncestor
{
	uint32_t	timeline;
	uint64_t	switch_lsn;		/* where this timeline was left */
} RpinAncestor;

typedef struct RpinHistory
{
	uint32_t	timeline;		/* the current one; 0: not known yet */
	uint32_t	count;			/* of ancestors, oldest first */
	RpinAncestor ancestor[RPIN_HISTORY_ANCESTORS];
} RpinHistory;

/*
 * Reads the text of a timeline history file (access/transam/timeline.c: one
 * line per ancestor, oldest first, "timeline TAB high/low TAB reason"; '#'
 * starts a comment).  False when the text is not one; *history then has the
 * current timeline and no ancestors.
 */
extern bool rpin_history_parse(const char *text, size_t length,
							   uint32_t timeline, RpinHistory *history);

/*
 * Where the current timeline began: the switch point of its parent.  0 for the
 * first timeline, and where the history file is missing: see
 * rpin_history_same().
 */
extern uint64_t rpin_history_begin(const RpinHistory *history);

/*
 * Is (timeline, begin), as a replica tells it, the current timeline of this
 * history?  Two servers promoted apart can use the same number for different
 * timelines; unless both left their parent at the same position it shows here.
 * Beyond the first timeline a begin of 0 means "not known" and matches nothing.
 */
extern bool rpin_history_same(const RpinHistory *history,
							  uint32_t timeline, uint64_t begin);

/*
 * What a position from elsewhere means on a server with this history, this
 * system identifier and WAL up to `end`.  RPIN_REASON_NONE with the comparable
 * LSN in *lsn, or why there is none: WRONG_CLUSTER, UNKNOWN_TIMELINE,
 * WRITE_LOST, POSITION_IN_FUTURE.
 */
extern RpinReason rpin_history_resolve(const RpinHistory *history,
									   uint64_t system_identifier,
									   uint64_t end,
									   const RpinPosition *position,
									   uint64_t *lsn);

#endif							/* RPIN_HISTORY_H */
