/*-------------------------------------------------------------------------
 *
 * sim_check.h
 *	  The checks: what the product answered, held against what is true.
 *
 * Each is called where the thing happens.  The first one that fails names itself
 * in world->failure, with the promise in front, and the run is over.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIM_CHECK_H
#define SIM_CHECK_H

#include "sim_world.h"

/* A question has been asked: what is demanded is at least what is true (P1, P3). */
extern void sim_check_demand(SimWorld *world, const SimQuestion *question);

/* What a token means here (P8). */
extern void sim_check_resolved(SimWorld *world, SimSpot spot,
							   const RpinPosition *position, RpinReason reason);

/* A decision (P1, P2, P10). */
extern void sim_check_decision(SimWorld *world, const SimQuestion *question,
							   const SimChoice *choice);

/* A read ran on a replica, on an old connection or behind require() (P1). */
extern void sim_check_read(SimWorld *world, int server, SimSpot required,
						   bool old_connection);

/* require() succeeded (P1, P8). */
extern void sim_check_required(SimWorld *world, int server,
							   const RpinPosition *token, SimSpot spot);

/* The sampler asks again (P10). */
extern void sim_check_pace(SimWorld *world, const SimLink *link);

/* Some keys, and all marks (P3, P10). */
extern void sim_check_table(SimWorld *world);

#endif							/* SIM_CHECK_H */
