/*-------------------------------------------------------------------------
 *
 * trace.h
 *	  What the simulations share: random numbers, and replicas that lag.
 *
 * Time is virtual, in microseconds from the start.  The primary's WAL grows by a
 * byte a microsecond, so a position is BASE + the time at which it was written,
 * and a replica's replay position is BASE + the time of what it has replayed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TRACE_H
#define TRACE_H

#include <stdint.h>

#define MS INT64_C(1000)
#define SECOND INT64_C(1000000)
#define BASE UINT64_C(1000000)

typedef struct Random
{
	uint64_t	state;
} Random;

extern uint64_t random_next(Random *random);
extern double random_unit(Random *random);	/* in [0, 1) */
extern int64_t random_exponential(Random *random, double mean);

/* Zipf's law: rank i, from 0 on, with weight 1 / (i + 1) ^ exponent. */
typedef struct Zipf
{
	int			count;
	double	   *sum;			/* of the weights up to a rank, in all 1 */
} Zipf;

extern void zipf_init(Zipf *zipf, int count, double exponent);
extern int	zipf_draw(const Zipf *zipf, Random *random);

/*
 * How far a replica has replayed, for every millisecond.  It is behind by a
 * time drawn every 50 ms (log-normal, median 3 ms, sigma 1), and it stalls: once
 * a minute on average, for 3 s on average (exponential), and one stall in twenty
 * for 40 to 90 s.  After one it catches up at ten times the speed of the
 * primary.
 */
typedef struct Replay
{
	int64_t		length;			/* in milliseconds */
	int64_t    *replayed;		/* time of what is replayed, per millisecond */
} Replay;

extern void replay_init(Replay *replay, int64_t length, Random *random);
extern void replay_free(Replay *replay);

static inline uint64_t
replay_position(const Replay *replay, int64_t now)
{
	int64_t		ms = now / MS;

	return BASE + (uint64_t)
		replay->replayed[ms < replay->length ? ms : replay->length - 1];
}

/* A well-mixed hash of a number: the fingerprint of a key. */
extern uint64_t mix(uint64_t number);

#endif							/* TRACE_H */
