/*-------------------------------------------------------------------------
 *
 * sim_world.c
 *	  The world as a whole: its making, and its events one by one.
 *
 *-------------------------------------------------------------------------
 */
#include "sim_world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_check.h"

/* Settings that leave something to see for every rule, small and large. */
void
sim_config_draw(SimConfig *config, uint64_t seed)
{
	SimRandom	random = {sim_mix(seed)};
	static const int clients[] = {8, 24, 64, 128};
	static const int table_keys[] = {3, 48, 300, 3000};
	static const int percent[] = {100, 100, 100, 50};
	static const int write_percent[] = {1, 5, 15, 40};
	static const int64_t lifetime[] = {1, 2, 5};

	memset(config, 0, sizeof(*config));
	config->seed = seed;
	config->servers = (int) sim_between(&random, 3, SIM_SERVERS);
	config->clients = clients[sim_below(&random, 4)];
	config->keys = (int) sim_between(&random, 100, 20000);
	config->table_keys = table_keys[sim_below(&random, 4)];
	config->write_percent = write_percent[sim_below(&random, 4)];
	config->enforce_percent = percent[sim_below(&random, 4)];
	config->think = sim_between(&random, 5 * SIM_MS, 50 * SIM_MS);
	config->trip = sim_between(&random, 30, 800);
	config->storm = sim_between(&random, 50 * SIM_MS, 600 * SIM_MS);
	config->pace = (RpinPace)
	{
		.sample_interval = 250 * SIM_MS,
			.min_sample_interval = 2 * SIM_MS,
			.sample_timeout = SIM_S,
			.sample_lifetime = lifetime[sim_below(&random, 3)] * SIM_S,
	};
}

SimWorld *
sim_world_create(const SimConfig *config, SimCounts *counts)
{
	SimWorld   *world = calloc(1, sizeof(SimWorld));

	if (world == NULL)
		abort();
	world->config = *config;
	world->counts = counts;
	world->random.state = sim_mix(config->seed ^ UINT64_C(0x73696D));
	world->truth = sim_truth_create(config->keys);
	world->client = calloc((size_t) config->clients, sizeof(SimClient));
	if (world->client == NULL)
		abort();
	world->host.world = world;
	world->host.now = SIM_S;
	world->host.pace = config->pace;
	sim_network_install(world);
	sim_cluster_start(world);
	sim_weather_reload(world);
	sim_worker_start(world, 10 * SIM_MS);
	for (int i = 0; i < config->clients; i++)
		sim_client_start(world, i);
	sim_at(world, SIM_MS, SIM_EVENT_FLUSH, 0, 0);
	sim_at(world, SIM_MS, SIM_EVENT_SWEEP, 0, 0);
	if (config->storm > 0)
	{
		sim_at(world, 5 * SIM_S, SIM_EVENT_WEATHER, 0, 0);
		sim_at(world, 5 * SIM_S, SIM_EVENT_DISTURB, 0, 0);
	}
	return world;
}

void
sim_world_free(SimWorld *world)
{
	sim_product_stop(&world->product);
	sim_truth_free(world->truth);
	sim_queue_free(&world->queue);
	free(world->client);
	free(world);
}

void
sim_at(SimWorld *world, int64_t delay, SimEventKind kind, int who,
	   uint64_t what)
{
	sim_queue_add(&world->queue, world->host.now + delay, kind, who, what);
}

void
sim_count(SimWorld *world, SimCount count)
{
	world->counts->count[count]++;
}

void
sim_trace(SimWorld *world, const char *what, int who, uint64_t a, uint64_t b)
{
	world->trace[world->trace_count++ % SIM_TRACE] =
		(SimTrace) {world->counts->steps, world->host.now, what, who, a, b};
}

void
sim_world_print_trace(const SimWorld *world, uint64_t count)
{
	uint64_t	end = world->trace_count;

	if (count > SIM_TRACE)
		count = SIM_TRACE;
	for (uint64_t i = end > count ? end - count : 0; i < end; i++)
	{
		const SimTrace *trace = &world->trace[i % SIM_TRACE];

		printf("  step %" PRIu64 "  %" PRId64 ".%06" PRId64 " s  %s %d  %" PRIX64 " %" PRIX64 "\n",
			   trace->step, trace->now / SIM_S, trace->now % SIM_S,
			   trace->what, trace->who, trace->a, trace->b);
	}
}

SimSpot
sim_server_spot(const SimWorld *world, int server)
{
	const SimServer *s = &world->server[server];

	return (SimSpot) {sim_truth_line_at(world->truth, s->line, s->replay), s->replay};
}

bool
sim_server_holds(const SimWorld *world, int server, SimSpot spot)
{
	const SimServer *s = &world->server[server];

	return !s->stranger && sim_truth_holds(world->truth, s->line, s->replay, spot);
}

bool
sim_primary_holds(const SimWorld *world, SimSpot spot)
{
	return sim_truth_holds(world->truth, world->server[world->primary].line,
						   world->host.wal_end, spot);
}

int
sim_server_named(const SimWorld *world, const SimRow *row)
{
	for (int i = 0; i < world->server_count; i++)
		if (strcmp(world->server[i].published_name, row->address.name) == 0)
			return i;
	abort();
}

void
sim_server_disturb(SimWorld *world, int server)
{
	world->server[server].disturbed = world->host.now;
}

/* False: it was of a life that is over. */
static bool
handle(SimWorld *world, const SimEvent *event)
{
	int			who = event->who;
	uint64_t	what = event->what;

	switch ((SimEventKind) event->kind)
	{
		case SIM_EVENT_CLIENT:
			return sim_client_step(world, who, what);
		case SIM_EVENT_REPLAY:
			return sim_cluster_replay(world, who, what);
		case SIM_EVENT_TAKE:
			sim_network_take(world, what);
			break;
		case SIM_EVENT_ARRIVE:
			return sim_network_arrive(world, who, what);
		case SIM_EVENT_WORKER_READ:
			return sim_worker_read(world, what);
		case SIM_EVENT_WORKER_RUN:
			return sim_worker_run(world, what);
		case SIM_EVENT_WORKER_START:
			if (what != world->worker_version)
				return false;
			sim_worker_start(world, 0);
			break;
		case SIM_EVENT_REPLAYS:
			sim_cluster_replays(world, who);
			break;
		case SIM_EVENT_FLUSH:
			sim_cluster_flush(world);
			break;
		case SIM_EVENT_WEATHER:
			sim_weather_change(world);
			break;
		case SIM_EVENT_DISTURB:
			sim_weather_disturb(world);
			break;
		case SIM_EVENT_STALL:
			sim_weather_stall(world);
			break;
		case SIM_EVENT_REOPEN:
			return sim_cluster_reopen(world, who, what);
		case SIM_EVENT_FOLLOW:
			return sim_cluster_follow(world, who, what);
		case SIM_EVENT_REBUILD:
			return sim_cluster_rebuild(world, who, what);
		case SIM_EVENT_SWEEP:
			sim_check_table(world);
			sim_at(world, sim_wait(&world->random, 20 * SIM_MS), SIM_EVENT_SWEEP, 0, 0);
			break;
		case SIM_EVENT_COUNT:
			break;
	}
	return true;
}

bool
sim_world_step(SimWorld *world)
{
	SimEvent	event;
	bool		was_alive;

	do
	{
		event = sim_queue_take(&world->queue);
		world->counts->virtual_time += event.at - world->host.now;
		world->host.now = event.at;
		world->host.random = (uint32_t) sim_random(&world->random);
		was_alive = handle(world, &event);
	} while (!was_alive && world->failure == NULL);
	sim_past_note(&world->greatest, world->host.now,
				  rpin_table_greatest(world->product.table));
	world->counts->steps++;
	return world->failure == NULL;
}
