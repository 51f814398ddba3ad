/*-------------------------------------------------------------------------
 *
 * rpin_decision.h
 *	  A decision as users get it: enforced or not, counted, logged.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_DECISION_H
#define RPIN_DECISION_H

#include "rpin_demand.h"

/* The settings of the same names. */
typedef enum RpinLogDecisions
{
	RPIN_LOG_NONE,
	RPIN_LOG_FALLBACKS,
	RPIN_LOG_ALL
} RpinLogDecisions;

extern int	rpin_enforce_percent;
extern int	rpin_log_decisions;
extern char *rpin_correlation_id;

/*
 * Decides: for a caller who reads from a replica by name, or else for one who
 * reads through one endpoint for all of them.  Allocates only for the log line.
 */
extern void rpin_decision_make(const RpinDemand *demand, bool by_name,
							   RpinChoice *choice);

/* The same by a copy of the board; not counted, not logged. */
extern void rpin_decision_explain(const RpinDemand *demand,
								  const RpinBoard *board, RpinChoice *choice);

/* The one decision that needs no look at any key: everybody is free. */
extern bool rpin_decision_is_nothing_pinned(const RpinDemand *demand);

#endif							/* RPIN_DECISION_H */
