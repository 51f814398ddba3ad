/*-------------------------------------------------------------------------
 *
 * sim_base.c
 *	  Chance, the queue of events, and histories of a growing position.
 *
 *-------------------------------------------------------------------------
 */
#include "sim_base.h"

#include <math.h>
#include <stdlib.h>

/* splitmix64 */
uint64_t
sim_mix(uint64_t value)
{
	value += UINT64_C(0x9E3779B97F4A7C15);
	value = (value ^ (value >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	value = (value ^ (value >> 27)) * UINT64_C(0x94D049BB133111EB);
	return value ^ (value >> 31);
}

uint64_t
sim_random(SimRandom *random)
{
	uint64_t	value = sim_mix(random->state);

	random->state += UINT64_C(0x9E3779B97F4A7C15);
	return value;
}

uint64_t
sim_below(SimRandom *random, uint64_t n)
{
	return (uint64_t) (((unsigned __int128) sim_random(random) * n) >> 64);
}

int64_t
sim_between(SimRandom *random, int64_t low, int64_t high)
{
	return low + (int64_t) sim_below(random, (uint64_t) (high - low));
}

bool
sim_once_in(SimRandom *random, uint64_t n)
{
	return sim_below(random, n) == 0;
}

double
sim_unit(SimRandom *random)
{
	return (double) (sim_random(random) >> 11) / (double) (UINT64_C(1) << 53);
}

int64_t
sim_wait(SimRandom *random, int64_t mean)
{
	return 1 + (int64_t) (-(double) mean * log(1 - sim_unit(random)));
}

int
sim_zipf(SimRandom *random, int n)
{
	int			i = (int) exp(sim_unit(random) * log(n + 1)) - 1;

	return i < n ? i : n - 1;
}

static bool
is_earlier(const SimEvent *a, const SimEvent *b)
{
	return a->at != b->at ? a->at < b->at : a->sequence < b->sequence;
}

void
sim_queue_add(SimQueue *queue, int64_t at, int kind, int who, uint64_t what)
{
	SimEvent	event = {at, queue->sequence++, kind, who, what};
	int			i;

	if (queue->count == queue->size)
	{
		queue->size = queue->size == 0 ? 1024 : queue->size * 2;
		queue->event = realloc(queue->event,
							   (size_t) queue->size * sizeof(SimEvent));
		if (queue->event == NULL)
			abort();
	}
	for (i = queue->count++; i > 0; i = (i - 1) / 2)
	{
		if (!is_earlier(&event, &queue->event[(i - 1) / 2]))
			break;
		queue->event[i] = queue->event[(i - 1) / 2];
	}
	queue->event[i] = event;
}

SimEvent
sim_queue_take(SimQueue *queue)
{
	SimEvent	first = queue->event[0];
	SimEvent	last = queue->event[--queue->count];
	int			i = 0;

	for (;;)
	{
		int			child = 2 * i + 1;

		if (child + 1 < queue->count &&
			is_earlier(&queue->event[child + 1], &queue->event[child]))
			child++;
		if (child >= queue->count || !is_earlier(&queue->event[child], &last))
			break;
		queue->event[i] = queue->event[child];
		i = child;
	}
	queue->event[i] = last;
	return first;
}

void
sim_queue_free(SimQueue *queue)
{
	free(queue->event);
	*queue = (SimQueue) {0};
}

void
sim_past_clear(SimPast *past)
{
	past->count = 0;
}

/* The position of a moment that is not kept counts from the kept one before. */
void
sim_past_note(SimPast *past, int64_t now, uint64_t position)
{
	uint64_t	last = (past->count - 1) % SIM_PAST_SIZE;

	if (past->count > 0 && past->position[last] >= position)
		return;
	if (past->count > 0 && now - past->time[last] < SIM_PAST_GRAIN)
	{
		past->position[last] = position;
		return;
	}
	past->time[past->count % SIM_PAST_SIZE] = now;
	past->position[past->count % SIM_PAST_SIZE] = position;
	past->count++;
}

static uint64_t
oldest(const SimPast *past)
{
	return past->count > SIM_PAST_SIZE ? past->count - SIM_PAST_SIZE : 0;
}

uint64_t
sim_past_at(const SimPast *past, int64_t time)
{
	uint64_t	low = oldest(past);
	uint64_t	high = past->count;

	/* the first entry after that time */
	while (low < high)
	{
		uint64_t	middle = low + (high - low) / 2;

		if (past->time[middle % SIM_PAST_SIZE] > time)
			high = middle;
		else
			low = middle + 1;
	}
	return low > oldest(past) ? past->position[(low - 1) % SIM_PAST_SIZE] : 0;
}

int64_t
sim_past_exceeded(const SimPast *past, uint64_t position)
{
	uint64_t	low = oldest(past);
	uint64_t	high = past->count;

	while (low < high)
	{
		uint64_t	middle = low + (high - low) / 2;

		if (past->position[middle % SIM_PAST_SIZE] > position)
			high = middle;
		else
			low = middle + 1;
	}
	if (low == past->count || (low == oldest(past) && low > 0))
		return -1;
	return past->time[low % SIM_PAST_SIZE];
}
