/*-------------------------------------------------------------------------
 *
 * sim_check.c
 *	  The checks.
 *
 *-------------------------------------------------------------------------
 */
#include "sim_check.h"

#include <string.h>

/* Replies take this long at most when nothing is disturbed, with the sampler's turns. */
#define SIM_SLACK (5 * SIM_MS + 10 * world->config.trip)

/* After a disturbance it may take that long until a replica is sampled again. */
#define SIM_SETTLED (RPIN_BACKOFF_CAP * 5 / 4 + 3 * SIM_S)

static void
fail(SimWorld *world, const char *what, int who, uint64_t a, uint64_t b)
{
	sim_trace(world, what, who, a, b);
	if (world->failure == NULL)
		world->failure = what;
}

/* Said to be ahead once, perhaps falsely: that lasts, and is not held against P10. */
static bool
is_condemned(SimWorld *world, int server)
{
	const SimBoard *board = &world->product.sampler.board;

	for (int i = 0; i < board->count; i++)
		if (board->row[i].address.host[strlen("10.0.0.")] - '0' == server)
			return board->row[i].replica.ahead_timeline != 0;
	return false;
}

void
sim_check_demand(SimWorld *world, const SimQuestion *question)
{
	const SimDemand *demand = &question->demand;

	if (demand->fault != RPIN_REASON_NONE || demand->pending)
		return;
	if (demand->required < question->required.lsn)
		fail(world, "P3: less is demanded than became visible", question->key[0],
			 demand->required, question->required.lsn);
	if (demand->required > world->host.wal_end)
		fail(world, "P10: more is demanded than was ever written", question->key[0],
			 demand->required, world->host.wal_end);
}

/*
 * Of a write that is lost by a number that says nothing of it (see sim_truth.h)
 * anything may be said.
 */
void
sim_check_resolved(SimWorld *world, SimSpot spot, const RpinPosition *position,
				   RpinReason reason)
{
	bool		known = world->product.published.history.timeline == world->host.timeline;

	if (sim_primary_holds(world, spot))
	{
		sim_count(world, SIM_TOKEN_HELD);
		if (reason != RPIN_REASON_NONE &&
			!(reason == RPIN_REASON_SAMPLES_STALE && !known))
			fail(world, "P8: a token is condemned whose write is here", reason,
				 position->lsn, position->timeline);
	}
	else if (position->timeline != world->host.timeline)
	{
		const SimLine *line = &world->truth->line[world->server[world->primary].line];
		uint64_t	kept = UINT64_MAX;

		sim_count(world, SIM_TOKEN_LOST);
		for (; line->number > position->timeline; line = &world->truth->line[line->parent])
			if (line->switch_lsn < kept)
				kept = line->switch_lsn;
		if (reason == RPIN_REASON_NONE && position->lsn > kept)
			fail(world, "P8: a token of a lost write is taken for a position", reason,
				 position->lsn, position->timeline);
	}
}

/* A replica whose WAL is not the primary's, by the same timeline number. */
static bool
is_ghost(SimWorld *world, int server)
{
	return world->server[server].ghost;
}

/* The same of a sample: its replica may have been built anew since. */
static bool
was_ghost(SimWorld *world, SimSpot taken)
{
	int			line = world->server[world->primary].line;

	return !sim_primary_holds(world, taken) &&
		world->truth->line[taken.line].number == world->truth->line[line].number &&
		sim_truth_begin(world->truth, taken.line) == sim_truth_begin(world->truth, line);
}

static void
check_named(SimWorld *world, const SimQuestion *question, int server)
{
	const SimEvidence *evidence = &world->published[server];
	const SimServer *s = &world->server[server];
	SimSpot		required = question->required;
	SimSpot		asked = {evidence->taken.line, evidence->replay_asked};

	sim_count(world, SIM_NAMED);
	if (!evidence->open)
		fail(world, "P1: a replica is named whose connection is gone", server,
			 evidence->link, 0);
	if (evidence->is_false)
		fail(world, "P2: a replica is named for what it said falsely", server,
			 evidence->taken.lsn, 0);
	if (world->host.now - evidence->asked_at >= world->product.lifetime)
		fail(world, "P1: a replica is named by a sample that is too old", server,
			 (uint64_t) evidence->asked_at, (uint64_t) evidence->taken_at);
	if (is_ghost(world, server) || was_ghost(world, evidence->taken))
	{
		/* the product cannot know, unless it has seen it ahead once */
		if (s->seen_ahead)
			fail(world, "P8: a replica is named that was seen ahead", server,
				 s->replay, world->host.wal_end);
		return;
	}
	if (!sim_primary_holds(world, evidence->taken))
		fail(world, "P8: a replica of another timeline is named", server,
			 evidence->taken.lsn, (uint64_t) evidence->taken.line);
	if (required.lsn == 0)
		return;
	if (!sim_truth_holds(world->truth, evidence->taken.line, evidence->taken.lsn, required))
		fail(world, "P1: a replica is named that had not replayed it", server,
			 evidence->taken.lsn, required.lsn);
	if (!sim_truth_holds(world->truth, asked.line, asked.lsn, required))
		sim_count(world, SIM_NAMED_FRESHER);

	/* whoever has an old connection to it reads there, now */
	if (s->up && s->life_start < question->asked_at - world->product.lifetime &&
		!sim_server_holds(world, server, required))
		fail(world, "P1: a read on an old connection would be stale", server,
			 s->replay, required.lsn);
}

/* Is everything as it was for long, and has every replica had time? */
static bool
must_let_go(SimWorld *world, uint64_t required)
{
	const SimBoard *board = &world->product.published;
	int64_t		now = world->host.now;
	int			replicas = 0;

	if (now - world->worker_disturbed < SIM_SETTLED)
		return false;
	for (int i = 0; i < board->count; i++)
	{
		int			server = sim_server_named(world, &board->row[i]);
		const SimServer *s = &world->server[server];

		/* the primary itself is left out once it is known to be that */
		if (now - s->disturbed < SIM_SETTLED || s->false_replies > 0)
			return false;
		if (server == world->primary)
			continue;
		replicas++;
		if (s->stranger || !s->up || !s->streaming || s->ghost || is_condemned(world, server) ||
			sim_past_at(&s->past, now - world->product.sampler.pace.sample_interval -
						SIM_SLACK) < required)
			return false;
	}
	return replicas > 0;
}

/* The primary answers, although every replica would do. */
static bool
is_false_pin(SimWorld *world, const SimQuestion *question)
{
	for (int i = 0; i < world->config.servers; i++)
		if ((question->balanced & 1u << i) && !sim_server_holds(world, i, question->required))
			return false;
	return question->balanced != 0;
}

/* One that has a fault says which, and names nobody. */
static void
check_fault(SimWorld *world, const SimQuestion *question, const SimChoice *choice)
{
	if (choice->reason != question->expected)
		fail(world, "P2: a question with a fault has another reason", question->expected,
			 choice->reason, 0);
	if (choice->named != 0)
		fail(world, "P2: a question with a fault names a replica", question->expected,
			 choice->named, 0);
}

static void
check_reason(SimWorld *world, const SimQuestion *question, const SimChoice *choice)
{
	bool		to_primary = !rpin_reason_names_replica(choice->reason) ||
		(!question->by_name && choice->reason != RPIN_REASON_IN_SYNC);

	if (rpin_reason_names_replica(choice->reason) != (choice->named != 0))
		fail(world, "P2: reason and replicas do not fit", choice->reason,
			 choice->named, 0);
	if (!question->demand.pending && choice->reason != RPIN_REASON_IN_SYNC &&
		must_let_go(world, question->demand.required))
		fail(world, "P10: a pin outlives its cause", choice->reason,
			 question->demand.required, 0);
	if (choice->reason == RPIN_REASON_IN_SYNC &&
		must_let_go(world, question->demand.required))
		sim_count(world, SIM_LET_GO);
	if (to_primary && is_false_pin(world, question))
		sim_count(world, SIM_FALSE_PIN);
}

void
sim_check_decision(SimWorld *world, const SimQuestion *question,
				   const SimChoice *choice)
{
	const SimBoard *board = &world->product.published;

	sim_count(world, SIM_DECISION);
	if (question->demand.quiet)
		sim_count(world, SIM_DECISION_QUIET);
	world->counts->reason[choice->found]++;
	if (!question->enforced)
	{
		sim_count(world, SIM_NOT_ENFORCED);
		world->counts->reason[choice->reason] += choice->reason == RPIN_REASON_NOT_ENFORCED;
		return;
	}
	if (question->expected != RPIN_REASON_NONE)
	{
		check_fault(world, question, choice);
		return;
	}
	check_reason(world, question, choice);
	for (int i = 0; i < board->count; i++)
		if (choice->named & UINT64_C(1) << i)
			check_named(world, question, sim_server_named(world, &board->row[i]));
	if (choice->reason == RPIN_REASON_IN_SYNC)
		for (int i = 0; i < world->config.servers; i++)
			if (question->balanced & 1u << i)
				check_named(world, question, i);
}

/* A write that is lost meanwhile need not be seen any more. */
void
sim_check_read(SimWorld *world, int server, SimSpot required, bool old_connection)
{
	sim_count(world, old_connection ? SIM_READ_OLD_CONNECTION : SIM_READ_REQUIRED);
	if (sim_primary_holds(world, required) && !is_ghost(world, server) &&
		!sim_server_holds(world, server, required))
		fail(world, old_connection ? "P1: a read on an old connection is stale" :
			 "P1: a read behind require() is stale", server,
			 world->server[server].replay, required.lsn);
}

/* What require() proves holds also where the primary has lost it. */
void
sim_check_required(SimWorld *world, int server, const RpinPosition *token,
				   SimSpot spot)
{
	uint32_t	number = world->truth->line[spot.line].number;

	if (number == token->timeline && !is_ghost(world, server) &&
		sim_primary_holds(world, spot) && !sim_server_holds(world, server, spot))
		fail(world, "P8: require() proves what is not there", server,
			 world->server[server].replay, spot.lsn);
}

/*
 * While something that is waited for is beyond the replica's last sample, the
 * next request follows in a tenth of the time waited.
 */
void
sim_check_pace(SimWorld *world, const SimLink *link)
{
	const RpinPace *pace = &world->product.sampler.pace;
	int64_t		now = world->host.now;
	int64_t		since = sim_past_exceeded(&world->greatest, link->position_before);
	int64_t		due = link->asked_before + pace->sample_interval;
	const SimServer *s = &world->server[link->server];

	if (!s->streaming || s->stranger || s->ghost || is_condemned(world, link->server))
		return;
	if (link->asked_before == 0 || link->position_before == 0 ||
		world->worker_disturbed + SIM_S > link->asked_before ||
		now - s->disturbed < SIM_SETTLED)
		return;
	if (since >= 0)
	{
		int64_t		tenth = (now - since) / 10;
		int64_t		wait = tenth > pace->min_sample_interval ? tenth : pace->min_sample_interval;

		if (due > link->asked_before + wait)
			due = link->asked_before + wait;
		if (due < since + pace->min_sample_interval)
			due = since + pace->min_sample_interval;
	}
	if (due < link->answered_before)
		due = link->answered_before;
	sim_count(world, SIM_PACED);
	if (now > due + SIM_SLACK)
		fail(world, "P10: a replica is asked too late", link->server, (uint64_t) now,
			 (uint64_t) due);
}

/* The table is never below the unbounded map, and every mark belongs to a commit. */
void
sim_check_table(SimWorld *world)
{
	SimProduct *product = &world->product;
	uint64_t	marks = 0;

	for (int i = 0; i < world->config.clients; i++)
		marks += world->client[i].transaction.marked +
			world->client[i].transaction.marked_all;
	if (marks != rpin_table_pending(product->table))
		fail(world, "P10: a pending mark belongs to no commit", 0, marks,
			 rpin_table_pending(product->table));
	world->counts->count[SIM_EVICTION] += product->evictions;
	product->evictions = 0;
	if (rpin_table_floor(product->table) == 0)
		return;
	for (int i = 0; i < 64; i++)
	{
		int			key = (int) sim_below(&world->random, (uint64_t) world->config.keys);
		SimSpot		required = sim_truth_required(world->truth, key,
												  world->server[world->primary].line,
												  world->host.wal_end);
		RpinLookup	lookup = rpin_table_lookup(product->table,
											   sim_product_fingerprint(product, key));

		sim_count(world, SIM_KEPT_KEY);
		if (!lookup.pending && lookup.lsn < required.lsn)
			fail(world, "P3: a key is forgotten", key, lookup.lsn, required.lsn);
	}
}
