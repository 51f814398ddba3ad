/*-------------------------------------------------------------------------
 *
 * sim_network.c
 *	  The sampler's connections, and what arrives over them.
 *
 * A connection keeps its order, as TCP does, and each has its own number: what
 * still arrives for one that was closed names that one.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_check.h"

SimLink *
sim_network_find(SimWorld *world, uint64_t id)
{
	SimLink    *link = &world->link[id % SIM_LINKS];

	return link->id == id ? link : NULL;
}

static int64_t
trip(SimWorld *world, int server)
{
	int64_t		time = sim_between(&world->random, world->config.trip,
								   2 * world->config.trip);

	return world->server[server].slow_until > world->host.now ? 50 * time : time;
}

/* Something sent now by a replica arrives; not before what it sent earlier. */
static void
arrive(SimWorld *world, SimLink *link, SimProgress progress)
{
	int64_t		silent_until = world->server[link->server].silent_until;
	int64_t		at = world->host.now + trip(world, link->server);

	if (at < silent_until)
		at = silent_until;
	if (at < link->stuck_until)
		at = link->stuck_until;
	if (at < link->last_arrival)
		at = link->last_arrival;
	link->last_arrival = at;
	sim_at(world, at - world->host.now, SIM_EVENT_ARRIVE, (int) progress, link->id);
}

/* Hosts are named by the number of their server. */
static int
server_of(const char *host)
{
	return atoi(host + strlen("10.0.0."));
}

static uint64_t
open_link(void *argument, const RpinAddress *address)
{
	SimWorld   *world = argument;
	uint64_t	id = ++world->link_count;
	SimLink    *link = &world->link[id % SIM_LINKS];

	memset(link, 0, sizeof(*link));
	link->id = id;
	link->server = server_of(address->host);
	link->life = world->server[link->server].life;
	link->broken = !world->server[link->server].up;
	link->failure = sim_once_in(&world->random, 2) ? RPIN_STATE_UNREACHABLE :
		RPIN_STATE_STARTING_UP;
	memcpy(link->host, address->host, sizeof(link->host));
	world->link_of[link->server] = id;
	world->evidence[link->server].open = false;
	sim_count(world, SIM_LINK);
	sim_trace(world, "connect", link->server, id, 0);
	arrive(world, link, SIM_PROGRESS_CONNECTED);
	return id;
}

static void
close_link(void *argument, uint64_t id)
{
	SimWorld   *world = argument;
	SimLink    *link = sim_network_find(world, id);

	link->closed = true;
	sim_trace(world, "close", link->server, id, 0);
	if (world->link_of[link->server] == id)
		world->link_of[link->server] = 0;
	if (world->evidence[link->server].link == id)
		world->evidence[link->server].open = false;
}

static void
prepare(void *argument, uint64_t id)
{
	SimWorld   *world = argument;

	arrive(world, sim_network_find(world, id), SIM_PROGRESS_PREPARED);
}

/* The request is on its way; the replica reads its position when it arrives. */
static void
request(void *argument, uint64_t id)
{
	SimWorld   *world = argument;
	SimLink    *link = sim_network_find(world, id);

	sim_check_pace(world, link);
	link->asked_before = world->host.now;
	link->evidence = (SimEvidence)
	{
		.link = id,
			.asked_at = world->host.now,
			.replay_asked = world->server[link->server].replay,
	};
	sim_at(world, trip(world, link->server), SIM_EVENT_TAKE, 0, id);
}

static void
wake(void *argument)
{
	sim_worker_wake(argument);
}

void
sim_network_install(SimWorld *world)
{
	world->host.open = open_link;
	world->host.close = close_link;
	world->host.prepare = prepare;
	world->host.request = request;
	world->host.wake = wake;
}

/* Lies that a replica may tell, each to be seen through.  That it is the primary
 * is none of them: nobody else knows the random number that this is told by. */
static void
falsify(SimWorld *world, SimLink *link)
{
	RpinReport *report = &link->report;
	uint64_t	random = sim_random(&world->random);

	switch (random % 7)
	{
		case 0:
			report->system_identifier++;
			break;
		case 1:
			report->in_recovery = false;
			break;
		case 2:
			report->timeline += 1 + (uint32_t) (random >> 40);
			break;
		case 3:
			report->timeline_begin = random >> 30;
			break;
		case 4:
			report->replay_lsn = 0;
			break;
		case 5:
			report->replay_lsn = world->host.wal_end + SIM_S * SIM_S;
			break;
		default:
			report->timeline = 0;
			break;
	}
	link->evidence.is_false = true;
	sim_count(world, SIM_REPLY_FALSE);
}

/* The server takes the sample, if the connection and it still live. */
void
sim_network_take(SimWorld *world, uint64_t id)
{
	SimLink    *link = sim_network_find(world, id);
	SimServer  *s;

	if (link == NULL || link->broken)
		return;
	s = &world->server[link->server];
	if (s->silent_until > world->host.now)
	{
		sim_at(world, s->silent_until - world->host.now, SIM_EVENT_TAKE, 0, id);
		return;
	}
	if (!s->up || s->life != link->life)
		return;
	link->evidence.taken_at = world->host.now;
	link->evidence.taken = sim_server_spot(world, link->server);
	link->evidence.is_false = s->stranger || link->server == world->primary;
	link->report = (RpinReport)
	{
		.system_identifier = world->host.system_identifier + s->stranger,
			.node_id = s->node_id,
			.in_recovery = link->server != world->primary,
			.timeline = world->truth->line[link->evidence.taken.line].number,
			.timeline_begin = sim_truth_begin(world->truth, link->evidence.taken.line),
			.replay_lsn = s->replay,
	};
	link->twice = false;
	if (s->false_replies > 0)
	{
		s->false_replies--;
		sim_server_disturb(world, link->server);
		if (sim_once_in(&world->random, 4))
			link->twice = true;
		else if (sim_once_in(&world->random, 5))
		{
			/* what cannot be read at all */
			link->failure = RPIN_STATE_NONSENSE;
			arrive(world, link, SIM_PROGRESS_FAILED);
			return;
		}
		else
			falsify(world, link);
	}
	arrive(world, link, SIM_PROGRESS_REPORT);
}

static void
put_into_inbox(SimWorld *world, const SimLink *link, SimProgress progress)
{
	SimReply	reply = {
		.link = link->id,
		.host = link->host,
		.progress = progress,
		.report = link->report,
		.failure = link->failure,
	};

	if (world->inbox_count < SIM_LINKS)
		world->inbox[world->inbox_count++] = reply;
}

bool
sim_network_arrive(SimWorld *world, int progress, uint64_t id)
{
	SimLink    *link = sim_network_find(world, id);

	if (link == NULL)
		return false;
	if (progress == SIM_PROGRESS_CONNECTED || progress == SIM_PROGRESS_PREPARED)
	{
		/* silence, not refusal, is the answer of a machine that is off */
		if (link->broken || world->server[link->server].life != link->life)
		{
			if (progress == SIM_PROGRESS_PREPARED || sim_once_in(&world->random, 4))
				return true;
			progress = SIM_PROGRESS_FAILED;
		}
	}
	put_into_inbox(world, link, (SimProgress) progress);
	if (progress == SIM_PROGRESS_REPORT && link->twice)
	{
		put_into_inbox(world, link, SIM_PROGRESS_REPORT);
		sim_count(world, SIM_REPLY_TWICE);
	}
	sim_worker_wake(world);
	return true;
}

/* All connections to a server break, and say so. */
void
sim_network_break(SimWorld *world, int server)
{
	for (int i = 0; i < SIM_LINKS; i++)
	{
		SimLink    *link = &world->link[i];

		if (link->id == 0 || link->server != server || link->closed || link->broken)
			continue;
		link->broken = true;
		link->failure = RPIN_STATE_CONNECTION_LOST;
		arrive(world, link, SIM_PROGRESS_FAILED);
	}
}
