/*-------------------------------------------------------------------------
 *
 * trace.c
 *	  Random numbers, and replicas that lag.
 *
 *-------------------------------------------------------------------------
 */
#include "trace.h"

#include <math.h>
#include <stdlib.h>

#define BASE_LAG_EVERY 50		/* milliseconds */
#define BASE_LAG_MEDIAN (3.0 * MS)
#define STALL_EVERY (60.0 * SECOND)
#define STALL_MEAN (3.0 * SECOND)
#define LONG_STALL_SHARE 0.05
#define CATCH_UP 10

/* the finalizer of splitmix64 */
uint64_t
mix(uint64_t number)
{
	number += UINT64_C(0x9E3779B97F4A7C15);
	number = (number ^ (number >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	number = (number ^ (number >> 27)) * UINT64_C(0x94D049BB133111EB);
	return number ^ (number >> 31);
}

uint64_t
random_next(Random *random)
{
	return mix(random->state++);
}

double
random_unit(Random *random)
{
	return (double) (random_next(random) >> 11) / 9007199254740992.0;
}

int64_t
random_exponential(Random *random, double mean)
{
	return (int64_t) (-log(1 - random_unit(random)) * mean);
}

void
zipf_init(Zipf *zipf, int count, double exponent)
{
	double		total = 0;

	zipf->count = count;
	zipf->sum = malloc((size_t) count * sizeof(double));
	for (int i = 0; i < count; i++)
		zipf->sum[i] = total += 1 / pow(i + 1, exponent);
	for (int i = 0; i < count; i++)
		zipf->sum[i] /= total;
}

int
zipf_draw(const Zipf *zipf, Random *random)
{
	double		at = random_unit(random);
	int			low = 0;
	int			high = zipf->count - 1;

	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (zipf->sum[middle] < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int64_t
draw_stall(Random *random)
{
	if (random_unit(random) < LONG_STALL_SHARE)
		return 40 * SECOND + (int64_t) (random_unit(random) * 50 * SECOND);
	return random_exponential(random, STALL_MEAN);
}

/* Box and Muller's normal deviate. */
static int64_t
draw_base_lag(Random *random)
{
	double		normal = sqrt(-2 * log(1 - random_unit(random))) *
		cos(2 * M_PI * random_unit(random));

	return (int64_t) (BASE_LAG_MEDIAN * exp(normal));
}

void
replay_init(Replay *replay, int64_t length, Random *random)
{
	int64_t		stall_begin = random_exponential(random, STALL_EVERY);
	int64_t		stall_end = stall_begin + draw_stall(random);
	int64_t		lag = 0;
	int64_t		at = 0;

	replay->length = length / MS;
	replay->replayed = malloc((size_t) replay->length * sizeof(int64_t));
	for (int64_t ms = 0; ms < replay->length; ms++)
	{
		int64_t		now = ms * MS;

		if (ms % BASE_LAG_EVERY == 0)
			lag = draw_base_lag(random);
		if (now >= stall_end)
		{
			stall_begin = now + random_exponential(random, STALL_EVERY);
			stall_end = stall_begin + draw_stall(random);
		}
		if (now < stall_begin && now - lag > at)
			at = now - lag < at + CATCH_UP * MS ? now - lag : at + CATCH_UP * MS;
		replay->replayed[ms] = at;
	}
}

void
replay_free(Replay *replay)
{
	free(replay->replayed);
}
