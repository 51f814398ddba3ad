/*-------------------------------------------------------------------------
 *
 * rpin_pace.c
 *	  Pacing and back-off.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_pace.h"

/* With more replicas than this, each is sampled less often while pins wait. */
#define RPIN_PACE_REPLICAS 8

static int
lower_to(int64_t *value, int64_t limit, int flag)
{
	if (*value <= limit)
		return 0;
	*value = limit;
	return flag;
}

int
rpin_pace_clamp(RpinPace *pace)
{
	return lower_to(&pace->sample_interval, pace->sample_lifetime / 4,
					RPIN_CLAMPED_INTERVAL) |
		lower_to(&pace->sample_timeout, pace->sample_lifetime / 2,
				 RPIN_CLAMPED_TIMEOUT) |
		lower_to(&pace->min_sample_interval, pace->sample_interval,
				 RPIN_CLAMPED_MIN_INTERVAL);
}

int64_t
rpin_pace_interval(const RpinPace *pace, int64_t lag, int replicas)
{
	int64_t		shortest = pace->min_sample_interval;

	if (lag < 0 || lag / 10 >= pace->sample_interval)
		return pace->sample_interval;
	if (replicas > RPIN_PACE_REPLICAS)
		shortest = shortest * replicas / RPIN_PACE_REPLICAS;
	if (shortest > pace->sample_interval)
		shortest = pace->sample_interval;
	return lag / 10 > shortest ? lag / 10 : shortest;
}

int64_t
rpin_pace_backoff(const RpinPace *pace, int64_t last)
{
	int64_t		cap = RPIN_BACKOFF_CAP > pace->sample_interval
		? RPIN_BACKOFF_CAP : pace->sample_interval;

	if (last == 0)
		return pace->sample_interval;
	return last < cap / 2 ? last * 2 : cap;
}

int64_t
rpin_pace_jitter(int64_t rest, uint32_t random)
{
	return rest - rest / 4 + (int64_t) ((double) random / UINT32_MAX * (rest / 2));
}
