/*-------------------------------------------------------------------------
 *
 * rpin_pace.h
 *	  How often a replica is sampled, and how soon a failed one is tried again.
 *
 * Pure functions.  Times are microseconds.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_PACE_H
#define RPIN_PACE_H

#include <stdint.h>

/* Back-off never rests longer than this, unless the heartbeat itself does. */
#define RPIN_BACKOFF_CAP INT64_C(5000000)

/* The settings of the same names. */
typedef struct RpinPace
{
	int64_t		sample_interval;
	int64_t		min_sample_interval;
	int64_t		sample_timeout;
	int64_t		sample_lifetime;
} RpinPace;

/* Which settings rpin_pace_clamp() lowered; bits. */
#define RPIN_CLAMPED_INTERVAL 1
#define RPIN_CLAMPED_TIMEOUT 2
#define RPIN_CLAMPED_MIN_INTERVAL 4
#define RPIN_CLAMPED_COUNT 3

/*
 * Makes the settings fit each other: interval <= lifetime / 4, timeout <=
 * lifetime / 2, minimum <= interval.  A replica that answers in time is then
 * always sampled again before its sample is too old.  Answers what it lowered.
 */
extern int	rpin_pace_clamp(RpinPace *pace);

/*
 * Time from one request to the next.  `lag` is for how long something that is
 * waited for has been beyond the replica, negative when nothing is: a tenth of
 * it, so that noticing costs at most a tenth of the lag, within the bounds that
 * the settings and the number of replicas give.
 */
extern int64_t rpin_pace_interval(const RpinPace *pace, int64_t lag,
								  int replicas);

/*
 * The rest after a failure that follows a rest of `last`, 0 for the first:
 * twice as long up to a cap.
 */
extern int64_t rpin_pace_backoff(const RpinPace *pace, int64_t last);

/*
 * Spreads a rest to between three quarters and five quarters of it, by a random
 * number: replicas that failed together are not tried together for ever.
 */
extern int64_t rpin_pace_jitter(int64_t rest, uint32_t random);

#endif							/* RPIN_PACE_H */
