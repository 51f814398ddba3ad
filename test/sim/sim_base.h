/*-------------------------------------------------------------------------
 *
 * sim_base.h
 *	  What every part of the simulator stands on: chance, the queue of events,
 *	  and histories of a growing position.
 *
 * Everything is decided by the seed: one thread, no clock, no address and no
 * uninitialised byte takes part, so a run can be repeated to the step.  Times
 * are microseconds of virtual time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIM_BASE_H
#define SIM_BASE_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_MS INT64_C(1000)
#define SIM_S INT64_C(1000000)

typedef struct SimRandom
{
	uint64_t	state;
} SimRandom;

extern uint64_t sim_mix(uint64_t value);
extern uint64_t sim_random(SimRandom *random);

/* Below n; at least low and below high; true once in n; in 0 .. 1. */
extern uint64_t sim_below(SimRandom *random, uint64_t n);
extern int64_t sim_between(SimRandom *random, int64_t low, int64_t high);
extern bool sim_once_in(SimRandom *random, uint64_t n);
extern double sim_unit(SimRandom *random);

/* Time to the next of events that come at random, so far apart on average. */
extern int64_t sim_wait(SimRandom *random, int64_t mean);

/* Of n things the i-th, the first ones most often: Zipf's law with exponent 1. */
extern int	sim_zipf(SimRandom *random, int n);

typedef struct SimEvent
{
	int64_t		at;
	uint64_t	sequence;		/* events of one moment in the order of adding */
	int			kind;
	int			who;
	uint64_t	what;
} SimEvent;

typedef struct SimQueue
{
	SimEvent   *event;			/* a heap */
	int			count;
	int			size;
	uint64_t	sequence;
} SimQueue;

extern void sim_queue_add(SimQueue *queue, int64_t at, int kind, int who,
						  uint64_t what);
extern SimEvent sim_queue_take(SimQueue *queue);
extern void sim_queue_free(SimQueue *queue);

/*
 * When was a growing position where?  The youngest moments, no two closer than
 * a grain, are kept.
 */
#define SIM_PAST_SIZE 4096
#define SIM_PAST_GRAIN 200

typedef struct SimPast
{
	uint64_t	count;			/* ever noted; the youngest are kept */
	int64_t		time[SIM_PAST_SIZE];
	uint64_t	position[SIM_PAST_SIZE];
} SimPast;

extern void sim_past_clear(SimPast *past);
extern void sim_past_note(SimPast *past, int64_t now, uint64_t position);

/* The position at that time; 0 if that is not known any more. */
extern uint64_t sim_past_at(const SimPast *past, int64_t time);

/* When it first exceeded a position; -1: not yet, or not known any more. */
extern int64_t sim_past_exceeded(const SimPast *past, uint64_t position);

#endif							/* SIM_BASE_H */
