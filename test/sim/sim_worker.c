/*-------------------------------------------------------------------------
 *
 * sim_worker.c
 *	  When the sampler's process gets to run, and what it is handed.
 *
 * One turn is two events, as in rpin_worker_main(): it reads what has arrived,
 * and then does what is due, publishes and sleeps.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "sim_check.h"

static void
next_turn(SimWorld *world, SimEventKind kind, int64_t delay)
{
	world->worker_at = world->host.now + delay;
	sim_at(world, delay, kind, 0, ++world->worker_version);
}

/* Its latch is set, or a socket is ready. */
void
sim_worker_wake(SimWorld *world)
{
	int64_t		delay = sim_between(&world->random, 10, 60);

	if (!world->worker_sleeps || world->host.now + delay >= world->worker_at)
		return;
	next_turn(world, SIM_EVENT_WORKER_READ, delay);
}

static void
note_published(SimWorld *world, uint64_t before)
{
	const SimBoard *board = &world->product.published;

	if (world->product.edition == before)
		return;
	sim_count(world, SIM_PUBLISHED);
	memcpy(world->published, world->evidence, sizeof(world->published));
	world->published_mask = 0;
	for (int i = 0; i < world->server_count; i++)
		memcpy(world->server[i].published_name, world->server[i].configured_name,
			   SIM_NAME_SIZE);
	for (int i = 0; i < board->count; i++)
	{
		world->published_mask |= 1u << sim_server_named(world, &board->row[i]);
		world->counts->state[board->row[i].replica.state]++;
	}
}

/* The setting is read, whole. */
static void
note_configured(SimWorld *world)
{
	for (int i = 0; i < world->server_count; i++)
		memcpy(world->server[i].configured_name, world->server[i].name, SIM_NAME_SIZE);
}

void
sim_worker_start(SimWorld *world, int64_t delay)
{
	world->worker_sleeps = false;
	sim_worker_disturb(world, world->host.now);
	if (delay > 0)
		next_turn(world, SIM_EVENT_WORKER_START, delay);
	else
	{
		note_configured(world);
		sim_sampler_create(&world->product);
		next_turn(world, SIM_EVENT_WORKER_RUN, 100);
	}
}

void
sim_worker_disturb(SimWorld *world, int64_t until)
{
	if (world->worker_disturbed < until)
		world->worker_disturbed = until;
}

/* Its connections end with it. */
void
sim_worker_kill(SimWorld *world)
{
	world->stalled_until = 0;
	for (int i = 0; i < SIM_LINKS; i++)
		world->link[i].closed = true;
	memset(world->link_of, 0, sizeof(world->link_of));
	memset(world->evidence, 0, sizeof(world->evidence));
	world->worker_sleeps = false;
	world->worker_version++;
	world->inbox_count = 0;
}

/* Not its turn, or it is stopped: then it goes on later where it was. */
static bool
is_held_up(SimWorld *world, SimEventKind kind)
{
	if (world->stalled_until <= world->host.now)
		return false;
	next_turn(world, kind, world->stalled_until - world->host.now);
	return true;
}

/*
 * The product was told of a position beyond this server's WAL, truly or not; that
 * lasts until it is told of another timeline.
 */
static void
note_ahead(SimWorld *world, const SimLink *link)
{
	const RpinReport *report = &link->report;
	SimServer  *s = &world->server[link->server];

	if (report->system_identifier != world->host.system_identifier ||
		!report->in_recovery || report->timeline == 0)
		return;
	if (report->timeline != world->host.timeline)
		s->seen_ahead = false;
	else if (report->replay_lsn > world->host.wal_end &&
			 report->timeline_begin ==
			 sim_truth_begin(world->truth, world->server[world->primary].line))
		s->seen_ahead = true;
}

/* What the product believes now rests on this reply, if it took it. */
static void
hand_over(SimWorld *world, const SimReply *reply)
{
	SimBoard   *board = &world->product.sampler.board;
	SimLink    *link = sim_network_find(world, reply->link);
	bool		was_closed = link == NULL || link->closed;
	uint64_t	reports[SIM_REPLICAS];
	int			index;

	for (int i = 0; i < board->count; i++)
		reports[i] = board->row[i].replica.reports;
	index = sim_sampler_ready(&world->product, reply);
	if (was_closed)
		sim_count(world, SIM_REPLY_LATE);
	if (index < 0 || link == NULL || board->row[index].replica.reports == reports[index])
		return;
	sim_count(world, SIM_REPLY);
	world->evidence[link->server] = link->evidence;
	world->evidence[link->server].open = !was_closed;
	link->answered_before = world->host.now;
	link->position_before = link->evidence.is_false ? 0 : link->evidence.taken.lsn;
	note_ahead(world, link);
}

bool
sim_worker_read(SimWorld *world, uint64_t version)
{
	if (version != world->worker_version)
		return false;
	world->worker_sleeps = false;
	if (is_held_up(world, SIM_EVENT_WORKER_READ))
		return true;
	world->product.asleep = false;
	for (int i = 0; i < world->inbox_count; i++)
		hand_over(world, &world->inbox[i]);
	world->inbox_count = 0;
	next_turn(world, SIM_EVENT_WORKER_RUN,
			  sim_once_in(&world->random, 50) ? sim_between(&world->random, 1, SIM_MS) :
			  sim_between(&world->random, 5, 50));
	return true;
}

bool
sim_worker_run(SimWorld *world, uint64_t version)
{
	uint64_t	edition = world->product.edition;
	int64_t		rest;			/* first the deadline */

	if (version != world->worker_version)
		return false;
	if (is_held_up(world, SIM_EVENT_WORKER_RUN))
		return true;
	if (world->reload)
	{
		world->reload = false;
		note_configured(world);
		sim_sampler_configure(&world->product);
		for (int i = 0; i < world->server_count; i++)
			if ((world->listed_mask & 1u << i) == 0 || world->link_of[i] == 0)
				world->server[i].seen_ahead = false;
	}
	rest = sim_sampler_run(&world->product);
	note_published(world, edition);
	rest = sim_sampler_rest(&world->product, rest);
	if (world->inbox_count > 0 || rest < 10)
		rest = 10;
	next_turn(world, SIM_EVENT_WORKER_READ, rest);
	world->worker_sleeps = true;
	return true;
}
