/*-------------------------------------------------------------------------
 *
 * rpin_sampler.h
 *	  All replicas: their state machines, their links, their rows on the board.
 *
 * Belongs to the sampler process; its loop is in rpin_worker.c.  Nothing here
 * waits.  Memory is taken when the sampler is made, when it is configured and
 * when it connects, never for a sample.  Times are microseconds of rpin_clock_now().
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_SAMPLER_H
#define RPIN_SAMPLER_H

#include "rpin_link.h"

typedef struct RpinSampler RpinSampler;

/* The settings, as they stand now. */
typedef struct RpinSamplerSettings
{
	const char *replicas;		/* checked */
	const char *conninfo;		/* checked */
	RpinPace	pace;			/* not clamped yet */
} RpinSamplerSettings;

extern RpinSampler *rpin_sampler_create(const RpinLinkOps *ops);

/*
 * Takes new settings.  A replica whose definition is the same keeps its
 * connection, its sample and its history; all connections are made anew when
 * conninfo changed.
 */
extern void rpin_sampler_configure(RpinSampler *sampler,
								   const RpinSamplerSettings *settings);

/*
 * Does what is due, publishes the board if anything changed, and answers when
 * it wants to be called again at the latest.
 */
extern int64 rpin_sampler_run(RpinSampler *sampler);

/* Looks at the link of the i-th replica: its socket is ready. */
extern void rpin_sampler_ready(RpinSampler *sampler, int index);

/*
 * Would a new position that somebody waits for change when a replica is asked?
 * Whoever commits pays for waking us, so nobody shall for nothing.
 */
extern bool rpin_sampler_wants_news(const RpinSampler *sampler);

/* Is there none that rpin_sampler_run() has not seen? */
extern bool rpin_sampler_is_current(const RpinSampler *sampler);

/*
 * What to wait for.  The number of replicas, and of each one the socket (-1:
 * none) and the events.  Sockets changed if rpin_sampler_take_rewire() says so,
 * once: then the wait set must be made anew, since a new socket can have the
 * number of an old one.
 */
extern int	rpin_sampler_count(const RpinSampler *sampler);
extern int	rpin_sampler_socket(const RpinSampler *sampler, int index);
extern uint32 rpin_sampler_interest(const RpinSampler *sampler, int index);
extern bool rpin_sampler_take_rewire(RpinSampler *sampler);

/* Closes all connections and voids all samples on the board. */
extern void rpin_sampler_destroy(RpinSampler *sampler);

#endif							/* RPIN_SAMPLER_H */
