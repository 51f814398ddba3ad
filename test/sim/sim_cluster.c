/*-------------------------------------------------------------------------
 *
 * sim_cluster.c
 *	  The cluster's servers: WAL, replay, and what becomes of both when a server
 *	  fails.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "sim_world.h"

#define SIM_WAL_BEGIN UINT64_C(0x1000000)

/* How often a replica replays, and how many of a hundred bytes that it has. */
static const struct
{
	int64_t		shortest;
	int64_t		longest;
	int			percent;
	int			weight;
}			manner[SIM_REPLAY_COUNT] = {
	[SIM_REPLAY_PROMPT] = {200, 3 * SIM_MS, 100, 10},
	[SIM_REPLAY_LAGGING] = {2 * SIM_MS, 40 * SIM_MS, 100, 5},
	[SIM_REPLAY_TRICKLING] = {500, 5 * SIM_MS, 30, 2},
	[SIM_REPLAY_BURSTS] = {50 * SIM_MS, 1500 * SIM_MS, 100, 3},
	[SIM_REPLAY_PAUSED] = {2 * SIM_S, 9 * SIM_S, 100, 1},
};

static void
begin_life(SimWorld *world, int server)
{
	SimServer  *s = &world->server[server];

	s->up = true;
	s->life_start = world->host.now;
	s->node_id = sim_random(&world->random) | 1;
	sim_past_clear(&s->past);
	sim_past_note(&s->past, world->host.now, s->replay);
	sim_at(world, 1, SIM_EVENT_REPLAY, server, s->life);
}

/* The connections break, now or never: a machine without power says nothing. */
static void
end_life(SimWorld *world, int server, bool silently)
{
	SimServer  *s = &world->server[server];

	if (!silently)
		sim_network_break(world, server);
	s->up = false;
	s->life++;
	sim_server_disturb(world, server);
}

/* What the product's server knows of itself. */
static void
tell_host(SimWorld *world)
{
	SimServer  *s = &world->server[world->primary];
	SimHost    *host = &world->host;

	host->node_id = s->node_id;
	host->timeline = world->truth->line[s->line].number;
	host->history_length = sim_truth_history(world->truth, s->line, host->history,
											 sizeof(host->history));
	s->replay = host->wal_end;
}

/* The primary starts: its shared memory is empty. */
static void
start_primary(SimWorld *world)
{
	uint64_t	seed = sim_random(&world->random);

	world->epoch++;
	tell_host(world);
	sim_product_start(&world->product, &world->host,
					  (uint64_t) world->config.table_keys, seed);
	sim_past_clear(&world->greatest);
	memset(world->published, 0, sizeof(world->published));
	world->published_mask = 0;
	for (int i = 0; i < world->server_count; i++)
	{
		world->server[i].seen_ahead = false;
		sim_server_disturb(world, i);
	}
}

/* It is gone, with all that stood in its memory. */
static void
stop_primary(SimWorld *world)
{
	sim_worker_kill(world);
	sim_product_stop(&world->product);
}

/*
 * The clients of a primary that is gone: a commit that had its record, and that
 * is not lost, is visible from now on.
 */
static void
begin_again(SimWorld *world, int64_t downtime)
{
	for (int i = 0; i < world->config.clients; i++)
	{
		SimClient  *client = &world->client[i];

		if ((client->stage == SIM_STAGE_FLUSH || client->stage == SIM_STAGE_VISIBLE) &&
			sim_primary_holds(world, client->commit))
			for (int k = 0; k < client->key_count; k++)
				sim_truth_write(world->truth, client->key[k], client->commit);
		sim_at(world, downtime, SIM_EVENT_CLIENT, i, world->epoch);
		client->stage = SIM_STAGE_THINK;
		memset(&client->transaction, 0, sizeof(client->transaction));
	}
	sim_worker_start(world, downtime + SIM_MS);
}

void
sim_cluster_start(SimWorld *world)
{
	world->server_count = world->config.servers + 1;
	world->youngest = 1;
	world->host.system_identifier = sim_random(&world->random);
	world->host.wal_end = world->host.flushed = SIM_WAL_BEGIN * 2;
	for (int i = 0; i < world->server_count; i++)
	{
		SimServer  *s = &world->server[i];

		s->replay = s->received = world->host.wal_end;
		s->stranger = i == world->config.servers;
		s->streaming = !s->stranger;
		begin_life(world, i);
		sim_at(world, sim_wait(&world->random, SIM_S), SIM_EVENT_REPLAYS, i, 0);
	}
	start_primary(world);
}

void
sim_cluster_replays(SimWorld *world, int server)
{
	int			pick = (int) sim_below(&world->random, 21);
	int			i = 0;

	while (pick >= manner[i].weight)
		pick -= manner[i++].weight;
	world->server[server].replays = (SimReplay) i;
	sim_at(world, sim_wait(&world->random, 3 * SIM_S), SIM_EVENT_REPLAYS, server, 0);
}

/* A ghost stands still until the primary's numbers have overtaken it. */
bool
sim_cluster_replay(SimWorld *world, int server, uint64_t life)
{
	SimServer  *s = &world->server[server];
	uint64_t	end = s->streaming || s->stranger ? world->host.flushed : s->received;
	int64_t		wait;

	if (s->life != life || server == world->primary)
		return false;
	if (end > s->replay)
	{
		uint64_t	backlog = end - s->replay;

		if (manner[s->replays].percent < 100)
			backlog = backlog * (uint64_t) manner[s->replays].percent / 100 + 1;
		s->replay += backlog;
		sim_past_note(&s->past, world->host.now, s->replay);
		sim_trace(world, "replay", server, s->replay, (uint64_t) s->line);
	}
	wait = sim_between(&world->random, manner[s->replays].shortest,
					   manner[s->replays].longest);
	sim_at(world, wait, SIM_EVENT_REPLAY, server, life);
	return true;
}

/* The WAL writer, with some WAL of nobody's. */
void
sim_cluster_flush(SimWorld *world)
{
	if (sim_once_in(&world->random, 3))
		world->host.wal_end += sim_below(&world->random, 64) * 8;
	world->host.flushed = world->host.wal_end;
	sim_at(world, sim_between(&world->random, SIM_MS, 40 * SIM_MS),
		   SIM_EVENT_FLUSH, 0, 0);
}

/* A replica crashes, and reopens at a consistency point behind where it was. */
void
sim_cluster_crash(SimWorld *world, int server)
{
	SimServer  *s = &world->server[server];

	if (server == world->primary || !s->up)
		return;
	sim_count(world, SIM_CRASH);
	sim_trace(world, "crash", server, s->replay, s->life);
	end_life(world, server, sim_once_in(&world->random, 3));
	if (!s->streaming || s->ghost)
		sim_at(world, sim_wait(&world->random, 2 * SIM_S), SIM_EVENT_FOLLOW, server, s->life);
	sim_at(world, sim_wait(&world->random, 300 * SIM_MS), SIM_EVENT_REOPEN, server, s->life);
}

bool
sim_cluster_reopen(SimWorld *world, int server, uint64_t life)
{
	SimServer  *s = &world->server[server];

	if (s->life != life || s->up || server == world->primary)
		return false;
	if (!sim_once_in(&world->random, 3))
	{
		uint64_t	back = sim_below(&world->random, 300000);

		sim_count(world, SIM_REGRESS);
		s->replay = s->replay - back > SIM_WAL_BEGIN ? s->replay - back : SIM_WAL_BEGIN;
	}
	sim_trace(world, "reopen", server, s->replay, s->life);
	begin_life(world, server);
	sim_server_disturb(world, server);
	return true;
}

/*
 * Follows the primary's timeline, if all that it has is part of it; else it is
 * stuck, until somebody builds it anew.
 */
bool
sim_cluster_follow(SimWorld *world, int server, uint64_t life)
{
	SimServer  *s = &world->server[server];

	if (s->life != life || (s->streaming && !s->ghost) || server == world->primary)
		return false;
	sim_server_disturb(world, server);
	if (s->ghost || !sim_primary_holds(world, sim_server_spot(world, server)))
	{
		sim_at(world, sim_wait(&world->random, 4 * SIM_S), SIM_EVENT_REBUILD, server, life);
		return true;
	}
	sim_count(world, SIM_FOLLOW);
	sim_trace(world, "follow", server, s->replay, 0);
	s->line = world->server[world->primary].line;
	s->streaming = true;
	if (!s->up)
		sim_at(world, SIM_MS, SIM_EVENT_REOPEN, server, life);
	return true;
}

bool
sim_cluster_rebuild(SimWorld *world, int server, uint64_t life)
{
	SimServer  *s = &world->server[server];

	if (s->life != life || server == world->primary)
		return false;
	sim_count(world, SIM_REBUILD);
	if (s->up)
		end_life(world, server, false);
	else
		s->life++;
	s->ghost = false;
	s->streaming = true;
	s->line = world->server[world->primary].line;
	s->replay = world->host.flushed;
	sim_trace(world, "rebuild", server, s->replay, s->life);
	sim_at(world, sim_wait(&world->random, 200 * SIM_MS), SIM_EVENT_REOPEN, server, s->life);
	return true;
}

/*
 * The primary goes on from an earlier position, under the same timeline number,
 * so on another line.  Replicas that have no more than that do not notice.
 */
static void
go_on_from(SimWorld *world, uint64_t position)
{
	SimServer  *primary = &world->server[world->primary];
	int			before = primary->line;

	stop_primary(world);
	end_life(world, world->primary, false);
	primary->line = sim_truth_branch(world->truth, before, position,
									 world->truth->line[before].number);
	world->host.wal_end = world->host.flushed = position;
	for (int i = 0; i < world->config.servers; i++)
	{
		SimServer  *s = &world->server[i];

		if (i == world->primary || !s->streaming || s->ghost)
			continue;
		if (s->replay <= position)
			s->line = primary->line;
		else
		{
			s->ghost = true;
			sim_at(world, sim_wait(&world->random, 8 * SIM_S), SIM_EVENT_REBUILD, i, s->life);
		}
	}
	begin_life(world, world->primary);
	start_primary(world);
	begin_again(world, sim_wait(&world->random, 200 * SIM_MS));
}

/* What was not flushed is lost. */
void
sim_cluster_crash_primary(SimWorld *world)
{
	sim_count(world, SIM_PRIMARY_CRASH);
	sim_trace(world, "primary restarts", world->primary, world->host.wal_end,
			  world->host.flushed);
	go_on_from(world, world->host.flushed);
}

void
sim_cluster_restore(SimWorld *world)
{
	uint64_t	begin = world->truth->line[world->server[world->primary].line].switch_lsn;
	uint64_t	back = sim_below(&world->random, 100000);

	if (begin < SIM_WAL_BEGIN)
		begin = SIM_WAL_BEGIN;
	if (world->host.flushed <= begin + back)
		return;
	sim_count(world, SIM_RESTORE);
	sim_trace(world, "primary restored", world->primary, world->host.flushed, back);
	go_on_from(world, world->host.flushed - back);
}

/* The primary that was: a standby of what it wrote, if it comes back at all. */
static void
demote(SimWorld *world, int server)
{
	SimServer  *s = &world->server[server];

	end_life(world, server, sim_once_in(&world->random, 2));
	s->replay = s->received = world->host.flushed;
	s->streaming = s->ghost = false;
	if (sim_once_in(&world->random, 2))
		sim_at(world, sim_wait(&world->random, SIM_S), SIM_EVENT_REOPEN, server, s->life);
	sim_at(world, sim_wait(&world->random, 4 * SIM_S), SIM_EVENT_FOLLOW, server, s->life);
}

static int
choose_successor(SimWorld *world)
{
	int			chosen = -1;
	int			candidates = 0;

	for (int i = 0; i < world->config.servers; i++)
	{
		SimServer  *s = &world->server[i];

		if (i == world->primary || !s->up || !s->streaming || s->ghost)
			continue;
		if (sim_once_in(&world->random, (uint64_t) ++candidates))
			chosen = i;
	}
	return chosen;
}

/* Everybody has received something, of which nobody needs to have replayed all. */
static void
part_from_primary(SimWorld *world)
{
	for (int i = 0; i < world->config.servers; i++)
	{
		SimServer  *s = &world->server[i];

		if (i == world->primary || !s->streaming || s->ghost)
			continue;
		s->received = s->replay +
			sim_below(&world->random, world->host.flushed - s->replay + 1);
		s->streaming = false;
		sim_at(world, sim_wait(&world->random, SIM_S), SIM_EVENT_FOLLOW, i, s->life);
	}
}

void
sim_cluster_promote(SimWorld *world)
{
	int			before = world->primary;
	int			after = choose_successor(world);
	SimServer  *s = &world->server[after >= 0 ? after : 0];

	if (after < 0)
		return;
	sim_count(world, SIM_PROMOTION);
	part_from_primary(world);
	stop_primary(world);
	demote(world, before);

	s->replay = s->received;
	s->line = sim_truth_branch(world->truth, s->line, s->replay, ++world->youngest);
	for (int i = 0; i < world->config.clients; i++)
		if (world->client[i].token.lsn > s->replay)
			sim_count(world, SIM_PROMOTION_LOSS);
	world->primary = after;
	sim_trace(world, "promotion", after, s->replay, world->youngest);
	world->host.wal_end = world->host.flushed = s->replay + 120;
	start_primary(world);
	begin_again(world, sim_wait(&world->random, 100 * SIM_MS));
}
