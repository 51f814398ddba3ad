/*-------------------------------------------------------------------------
 *
 * offload.c
 *	  Reads that stay on replicas, and stale reads, by rule.
 *
 *	offload seconds seed
 *
 * One trace, and every rule decides for every read of it.  20,000 keys by Zipf's
 * law (exponent 0.99).  100 writes a second; after each, one to five reads of the
 * same key, each after a think time of 0 to 5 s (uniform); besides, 300 reads a
 * second of keys that somebody else may have written.  Three replicas (trace.h).
 * A read is stale when its replica has not replayed the key's last write.
 *
 * Every other rule is given more than it has in life: a write's time and
 * position are known to it at once, for every reader of the key.
 *
 * Prints a line a rule: name, reads, reads on replicas, stale reads.
 *
 *-------------------------------------------------------------------------
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "product.h"
#include "trace.h"

#define KEYS 20000
#define WRITES_EVERY (SECOND / 100.0)
#define OTHER_READS_EVERY (SECOND / 300.0)
#define THINK_TIME (5 * SECOND)
#define MAX_READS 5

#define POLL_EVERY (5 * SECOND)
#define POLL_LAG (1 * SECOND)

typedef enum EventKind
{
	EVENT_READ,
	EVENT_OTHER_READ,
	EVENT_WRITE,
	EVENT_POLL,
	EVENT_ANSWER
} EventKind;

typedef struct Event
{
	int64_t		time;
	EventKind	kind;
	int			number;			/* a key, or a replica */
} Event;

typedef struct World
{
	int64_t		now;
	Replay		replay[REPLICAS];
	int64_t		written[KEYS];	/* 0: never */
	bool		stuck[KEYS];	/* until one replica has caught up */
	uint64_t	polled[REPLICAS];	/* positions, as of the last poll */
	Product    *product;
	Random		random;
} World;

typedef struct Rule
{
	const char *name;
	uint64_t	(*allowed) (World *world, int key); /* a set of replicas */
	long		on_replica;
	long		stale;
} Rule;

#define ALL ((UINT64_C(1) << REPLICAS) - 1)

/* --- the rules ---------------------------------------------------------- */

static uint64_t
needed(const World *world, int key)
{
	return world->written[key] == 0 ? 0 : BASE + (uint64_t) world->written[key];
}

static uint64_t
caught_up(const World *world, int key)
{
	uint64_t	set = 0;

	for (int i = 0; i < REPLICAS; i++)
		if (replay_position(&world->replay[i], world->now) >= needed(world, key))
			set |= UINT64_C(1) << i;
	return set;
}

static bool
within(const World *world, int key, int64_t window)
{
	return world->written[key] != 0 && world->now - world->written[key] < window;
}

static uint64_t
route(World *world, int key)
{
	return product_route(world->product, world->now, mix((uint64_t) key));
}

static uint64_t
is_pinned(World *world, int key)
{
	return product_route(world->product, world->now, mix((uint64_t) key)) == ALL
		? ALL : 0;
}

static uint64_t
clock_2(World *world, int key)
{
	return within(world, key, 2 * SECOND) ? 0 : ALL;
}

static uint64_t
clock_5(World *world, int key)
{
	return within(world, key, 5 * SECOND) ? 0 : ALL;
}

static uint64_t
clock_15(World *world, int key)
{
	return within(world, key, 15 * SECOND) ? 0 : ALL;
}

static uint64_t
one_caught_up(World *world, int key)
{
	if (world->stuck[key] && caught_up(world, key) != 0)
		world->stuck[key] = false;
	return world->stuck[key] ? 0 : ALL;
}

static uint64_t
ttl_30(World *world, int key)
{
	return within(world, key, 30 * SECOND) ? caught_up(world, key) : ALL;
}

static uint64_t
poll_lag(World *world, int key)
{
	int64_t		polled_at = world->now / POLL_EVERY * POLL_EVERY;
	uint64_t	set = 0;

	(void) key;
	for (int i = 0; i < REPLICAS; i++)
		if (world->polled[i] + POLL_LAG >= BASE + (uint64_t) polled_at)
			set |= UINT64_C(1) << i;
	return set;
}

static uint64_t
poll_position(World *world, int key)
{
	uint64_t	set = 0;

	for (int i = 0; i < REPLICAS; i++)
		if (world->polled[i] >= needed(world, key))
			set |= UINT64_C(1) << i;
	return set;
}

static Rule rule[] = {
	{.name = "route", .allowed = route},
	{.name = "is_pinned", .allowed = is_pinned},
	{.name = "clock window of 2 s", .allowed = clock_2},
	{.name = "clock window of 5 s", .allowed = clock_5},
	{.name = "clock window of 15 s", .allowed = clock_15},
	{.name = "free when one has caught up", .allowed = one_caught_up},
	{.name = "exact positions, TTL of 30 s", .allowed = ttl_30},
	{.name = "poll at 5 s, lag below 1 s", .allowed = poll_lag},
	{.name = "poll at 5 s, positions", .allowed = poll_position},
};

#define RULES ((int) (sizeof(rule) / sizeof(rule[0])))

/* --- events in the order of their times: a heap ------------------------- */

static Event *heap = NULL;
static int	heap_count = 0;
static int	heap_room = 0;

static void
swap(int a, int b)
{
	Event		saved = heap[a];

	heap[a] = heap[b];
	heap[b] = saved;
}

static void
add_event(int64_t time, EventKind kind, int number)
{
	int			i = heap_count++;

	if (i == heap_room)
		heap = realloc(heap, (size_t) (heap_room = heap_room * 2 + 64) *
					   sizeof(Event));
	heap[i] = (Event) {time, kind, number};
	for (; i > 0 && heap[(i - 1) / 2].time > heap[i].time; i = (i - 1) / 2)
		swap(i, (i - 1) / 2);
}

static Event
next_event(void)
{
	Event		first = heap[0];
	int			i = 0;

	heap[0] = heap[--heap_count];
	for (;;)
	{
		int			least = i;

		for (int child = 2 * i + 1; child <= 2 * i + 2; child++)
			if (child < heap_count && heap[child].time < heap[least].time)
				least = child;
		if (least == i)
			return first;
		swap(i, least);
		i = least;
	}
}

/* --- what happens ------------------------------------------------------- */

static int
choose(uint64_t set, Random *random)
{
	int			nth = (int) (random_next(random) %
							 (uint64_t) __builtin_popcountll(set));

	for (int i = 0;; i++)
		if (set & (UINT64_C(1) << i) && nth-- == 0)
			return i;
}

static void
read_key(World *world, int key)
{
	uint64_t	right = caught_up(world, key);

	for (int i = 0; i < RULES; i++)
	{
		uint64_t	set = rule[i].allowed(world, key);

		if (set == 0)
			continue;
		rule[i].on_replica++;
		if (!(right & (UINT64_C(1) << choose(set, &world->random))))
			rule[i].stale++;
	}
}

static void
write_key(World *world, int key)
{
	int			reads = 1 + (int) (random_next(&world->random) % MAX_READS);

	world->written[key] = world->now;
	world->stuck[key] = true;
	product_commit(world->product, world->now, mix((uint64_t) key),
				   needed(world, key));
	for (int i = 0; i < reads; i++)
		add_event(world->now + 1 + (int64_t) (random_unit(&world->random) * THINK_TIME),
				  EVENT_READ, key);
}

static void
poll_all(World *world)
{
	for (int i = 0; i < REPLICAS; i++)
		world->polled[i] = replay_position(&world->replay[i], world->now);
	add_event(world->now + POLL_EVERY, EVENT_POLL, 0);
}

static void
happen(World *world, const Zipf *zipf, const Event *event)
{
	Random	   *random = &world->random;

	switch (event->kind)
	{
		case EVENT_READ:
			read_key(world, event->number);
			break;
		case EVENT_OTHER_READ:
			read_key(world, zipf_draw(zipf, random));
			add_event(world->now + 1 + random_exponential(random, OTHER_READS_EVERY),
					  EVENT_OTHER_READ, 0);
			break;
		case EVENT_WRITE:
			write_key(world, zipf_draw(zipf, random));
			add_event(world->now + 1 + random_exponential(random, WRITES_EVERY),
					  EVENT_WRITE, 0);
			break;
		case EVENT_POLL:
			poll_all(world);
			break;
		case EVENT_ANSWER:
			product_answer(world->product, world->now, event->number,
						   replay_position(&world->replay[event->number],
										   world->now - PRODUCT_TRAVEL));
			break;
	}
}

/* The product's question to a replica: answered after both ways. */
static void
ask(int replica, int64_t now)
{
	add_event(now + 2 * PRODUCT_TRAVEL, EVENT_ANSWER, replica);
}

static long
run(World *world, const Zipf *zipf, int64_t length)
{
	long		reads = 0;

	add_event(1, EVENT_POLL, 0);
	add_event(1, EVENT_WRITE, 0);
	add_event(1, EVENT_OTHER_READ, 0);
	for (;;)
	{
		int64_t		wake = product_wake(world->product);

		if (wake <= heap[0].time)
		{
			world->now = wake;
			product_run(world->product, wake);
		}
		else
		{
			Event		event = next_event();

			if (event.time >= length)
				return reads;
			world->now = event.time;
			reads += event.kind == EVENT_READ || event.kind == EVENT_OTHER_READ;
			happen(world, zipf, &event);
		}
	}
}

int
main(int argc, char **argv)
{
	World	   *world = calloc(1, sizeof(World));
	Zipf		zipf;
	int64_t		length;
	long		reads;

	if (argc != 3)
	{
		fprintf(stderr, "usage: offload seconds seed\n");
		return 2;
	}
	length = atoll(argv[1]) * SECOND;
	world->random.state = mix(strtoull(argv[2], NULL, 10));
	zipf_init(&zipf, KEYS, 0.99);
	for (int i = 0; i < REPLICAS; i++)
		replay_init(&world->replay[i], length, &world->random);
	world->product = product_create(KEYS, ask);
	reads = run(world, &zipf, length);
	for (int i = 0; i < RULES; i++)
		printf("%s;%ld;%ld;%ld\n", rule[i].name, reads, rule[i].on_replica,
			   rule[i].stale);
	return 0;
}
