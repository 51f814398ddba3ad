/*-------------------------------------------------------------------------
 *
 * sim_weather.c
 *	  What befalls the world: storms and calm, disturbances, reloads.
 *
 * Storms show what is unsafe, calm shows what does not let go.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>

#include "sim_world.h"

void
sim_weather_change(SimWorld *world)
{
	int64_t		calm = world->config.pace.sample_lifetime + 10 * SIM_S;

	world->stormy = !world->stormy;
	sim_trace(world, world->stormy ? "storm" : "calm", 0, 0, 0);
	sim_at(world, world->stormy ? sim_between(&world->random, 5 * SIM_S, 20 * SIM_S) :
		   sim_between(&world->random, calm, calm + 10 * SIM_S),
		   SIM_EVENT_WEATHER, 0, 0);
}

/*
 * The new list: some of the servers in any order, now and then none, under other
 * names, or with one of another cluster.  Whoever balances load over the
 * replicas adds after the list and removes before it (see listed_mask).
 */
void
sim_weather_reload(SimWorld *world)
{
	static const int64_t interval[] = {50, 250, 250, 1000};
	bool		empty = world->published_mask != 0 && sim_once_in(&world->random, 25);
	int			length = 0;
	int			first = (int) sim_below(&world->random, (uint64_t) world->server_count);
	int			shift = sim_once_in(&world->random, 6);

	world->host.replicas[0] = '\0';
	world->listed_mask = 0;
	for (int i = 0; i < world->server_count && !empty; i++)
	{
		int			server = (i + first) % world->server_count;
		bool		is_in = world->server[server].stranger ?
			sim_once_in(&world->random, 10) : !sim_once_in(&world->random, 8);

		snprintf(world->server[server].name, SIM_NAME_SIZE, "replica%d%s",
				 (server + shift) % world->server_count,
				 sim_once_in(&world->random, 10) ? "b" : "");
		if (!is_in)
			continue;
		world->listed_mask |= 1u << server;
		length += snprintf(world->host.replicas + length,
						   sizeof(world->host.replicas) - (size_t) length,
						   "%s%s=10.0.0.%d", length > 0 ? ", " : "",
						   world->server[server].name, server);
	}
	world->host.pace.sample_interval = interval[sim_below(&world->random, 4)] * SIM_MS;
	world->reload = true;
	sim_worker_disturb(world, world->host.now);
	sim_trace(world, "reload", 0, world->listed_mask, 0);
	sim_worker_wake(world);
}

static int
any_server(SimWorld *world)
{
	return (int) sim_below(&world->random, (uint64_t) world->config.servers);
}

static void
crash(SimWorld *world)
{
	sim_cluster_crash(world, any_server(world));
}

/* Something between breaks the connections; the replica goes on. */
static void
cut(SimWorld *world)
{
	int			server = any_server(world);

	sim_count(world, SIM_CUT);
	sim_server_disturb(world, server);
	sim_network_break(world, server);
	for (int i = 0; i < world->config.clients; i++)
		if (sim_once_in(&world->random, 4))
			world->client[i].connection[server].open = false;
}

/* Packets are dropped: nobody learns anything, and what was sent arrives late. */
static void
silence(SimWorld *world)
{
	int			server = any_server(world);
	int64_t		time = sim_wait(&world->random, SIM_S);

	sim_count(world, SIM_SILENCE);
	sim_trace(world, "silence", server, (uint64_t) time, 0);
	world->server[server].silent_until = world->host.now + time;
	world->server[server].disturbed = world->host.now + time;
}

/*
 * The same for the sampler's present connection only: the next one is slow.  Now
 * and then the sampler stops when it has read the reply that was so long under
 * way: then all depends on how old it takes it for.
 */
static void
get_stuck(SimWorld *world)
{
	int			server = any_server(world);
	SimLink    *link = &world->link[world->link_of[server] % SIM_LINKS];
	int64_t		time = sim_wait(&world->random, 2 * SIM_S);

	if (world->link_of[server] == 0)
		return;
	sim_count(world, SIM_SILENCE);
	sim_trace(world, "stuck", server, link->id, (uint64_t) time);
	link->stuck_until = world->host.now + time;
	world->server[server].slow_until = world->host.now + time + SIM_S;
	world->server[server].disturbed = world->server[server].slow_until;
	if (sim_once_in(&world->random, 2))
		sim_at(world, time + SIM_MS, SIM_EVENT_STALL, 0, 0);
}

static void
lie(SimWorld *world)
{
	int			server = any_server(world);

	sim_server_disturb(world, server);
	world->server[server].false_replies = (int) sim_between(&world->random, 1, 6);
}

/* Often for longer than samples are believed. */
void
sim_weather_stall(SimWorld *world)
{
	int64_t		time = sim_wait(&world->random, world->product.lifetime);

	sim_count(world, SIM_STALL);
	sim_trace(world, "stall", 0, (uint64_t) time, 0);
	world->stalled_until = world->host.now + time;
	sim_worker_disturb(world, world->stalled_until);
}

static void
restart_worker(SimWorld *world)
{
	if (!world->product.sampler.running)
		return;
	sim_count(world, SIM_WORKER_RESTART);
	sim_trace(world, "sampler restarts", 0, 0, 0);
	sim_sampler_destroy(&world->product);
	sim_worker_kill(world);
	for (int i = 0; i < SIM_SERVERS; i++)
		world->published[i].open = false;
	sim_worker_start(world, sim_wait(&world->random, SIM_S));
}

static void
reload(SimWorld *world)
{
	sim_count(world, SIM_RELOAD);
	sim_weather_reload(world);
}

static const struct
{
	void		(*happen) (SimWorld *world);
	int			weight;
}			disturbance[] = {
	{crash, 8},
	{cut, 5},
	{silence, 4},
	{get_stuck, 5},
	{lie, 6},
	{sim_weather_stall, 2},
	{restart_worker, 2},
	{reload, 3},
	{sim_cluster_crash_primary, 1},
	{sim_cluster_restore, 1},
	{sim_cluster_promote, 2},
};

void
sim_weather_disturb(SimWorld *world)
{
	sim_at(world, sim_wait(&world->random, world->config.storm), SIM_EVENT_DISTURB, 0, 0);
	if (world->stormy)
	{
		int			pick = (int) sim_below(&world->random, 39);
		int			i = 0;

		while (pick >= disturbance[i].weight)
			pick -= disturbance[i++].weight;
		disturbance[i].happen(world);
	}
}
