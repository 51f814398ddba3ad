/*-------------------------------------------------------------------------
 *
 * sim_client.c
 *	  The clients: they write, ask, and read where they are sent.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "sim_check.h"

void
sim_client_next(SimWorld *world, int who, SimStage stage, int64_t shortest, int64_t longest)
{
	world->client[who].stage = stage;
	sim_at(world, sim_between(&world->random, shortest, longest), SIM_EVENT_CLIENT,
		   who, world->epoch);
}

void
sim_client_rest(SimWorld *world, int who)
{
	world->client[who].stage = SIM_STAGE_THINK;
	sim_at(world, sim_wait(&world->random, world->config.think), SIM_EVENT_CLIENT,
		   who, world->epoch);
}

void
sim_client_start(SimWorld *world, int who)
{
	world->client[who].last_key = -1;
	sim_client_rest(world, who);
}

SimSpot
sim_primary_spot(const SimWorld *world, uint64_t lsn)
{
	int			line = world->server[world->primary].line;

	return (SimSpot) {sim_truth_line_at(world->truth, line, lsn), lsn};
}

int
sim_client_choose_key(SimWorld *world, const SimClient *client)
{
	if (client->last_key >= 0 && sim_below(&world->random, 10) < 4)
		return client->last_key;
	return sim_zipf(&world->random, world->config.keys);
}

/* A token that some client carries, and what it stands for; false: none yet. */
bool
sim_client_choose_token(SimWorld *world, RpinPosition *token, SimSpot *spot)
{
	uint64_t	who = sim_below(&world->random, (uint64_t) world->config.clients);
	const SimClient *from = &world->client[who];
	bool		is_old = sim_once_in(&world->random, 3);

	*token = is_old ? from->old_token : from->token;
	*spot = is_old ? from->old_spot : from->token_spot;
	return token->lsn != 0;
}

static void
begin_question(SimWorld *world, SimQuestion *question)
{
	memset(question, 0, sizeof(*question));
	question->asked_at = world->host.now;
	question->enforced = true;
	question->by_name = true;
	question->balanced = world->listed_mask & world->published_mask &
		~(1u << world->primary) & ~(1u << world->config.servers);
}

static void
require(SimWorld *world, SimQuestion *question, SimSpot spot)
{
	if (spot.lsn > question->required.lsn)
		question->required = spot;
}

static void
add_key(SimWorld *world, SimQuestion *question, int key)
{
	question->key[question->key_count++] = key;
	require(world, question,
			sim_truth_required(world->truth, key, world->server[world->primary].line,
							   world->host.wal_end));
}

/* The share of a key does not change from start to start. */
static bool
is_enforced(const SimWorld *world, const SimQuestion *question)
{
	bool		is_in = false;

	for (int i = 0; i < question->key_count; i++)
		is_in |= rpin_decide_is_enforced(sim_mix((uint64_t) question->key[i]),
										 world->config.enforce_percent);
	return is_in || question->key_count == 0;
}

static void
look_up(SimWorld *world, SimQuestion *question)
{
	sim_demand_begin(&world->product, &question->demand, false);
	for (int i = 0; i < question->key_count; i++)
		sim_demand_add_key(&world->product, &question->demand, question->key[i]);
}

static void
decide_soon(SimWorld *world, int who)
{
	if (sim_once_in(&world->random, 3))
	{
		sim_count(world, SIM_DECISION_LATE);
		sim_client_next(world, who, SIM_STAGE_DECIDE, 1,
						sim_once_in(&world->random, 50) ? 20 * SIM_MS : 50);
	}
	else
	{
		world->client[who].stage = SIM_STAGE_DECIDE;
		sim_client_step(world, who, world->epoch);
	}
}

/* route(key), route_all(keys), is_pinned(key), is_any_pinned(keys) */
static void
ask_for_keys(SimWorld *world, int who)
{
	SimClient  *client = &world->client[who];
	SimQuestion *question = &client->question;
	int			count = sim_once_in(&world->random, 10) ? 3 : 1;

	begin_question(world, question);
	question->by_name = sim_below(&world->random, 5) < 3;
	for (int i = 0; i < count; i++)
		add_key(world, question, sim_client_choose_key(world, client));
	if (count > 1)
		sim_count(world, SIM_DECISION_MANY);
	question->enforced = is_enforced(world, question);

	/* the fast path: one key, at 100 % */
	sim_demand_begin(&world->product, &question->demand, false);
	if (question->by_name || count > 1 || world->config.enforce_percent < 100 ||
		!sim_demand_quiet(&world->product, &question->demand))
		look_up(world, question);
	sim_check_demand(world, question);
	decide_soon(world, who);
}

/* route(token) with a token that may be of a lost write, or of another timeline */
static void
ask_for_token(SimWorld *world, int who)
{
	SimQuestion *question = &world->client[who].question;
	char		text[RPIN_TOKEN_LENGTH + 1];
	RpinPosition token;
	SimSpot		spot;

	if (!sim_client_choose_token(world, &token, &spot))
	{
		sim_client_rest(world, who);
		return;
	}
	begin_question(world, question);
	question->has_token = true;
	rpin_token_format(&token, text);
	sim_demand_begin(&world->product, &question->demand, false);
	sim_demand_add_token(&world->product, &question->demand, text, RPIN_TOKEN_LENGTH);
	sim_check_resolved(world, spot, &token, question->demand.fault);
	if (sim_primary_holds(world, spot))
		require(world, question, spot);
	question->expected = question->demand.fault;	/* just checked */
	sim_check_demand(world, question);
	decide_soon(world, who);
}

/* Timelines other than ours are not condemned before their history is known. */
static RpinReason
once_known(const SimWorld *world, RpinReason reason)
{
	return world->product.published.history.timeline == world->host.timeline ?
		reason : RPIN_REASON_SAMPLES_STALE;
}

/* Questions that have a fault of their own; see sim_check_decision(). */
static void
ask_with_fault(SimWorld *world, int who)
{
	SimClient  *client = &world->client[who];
	SimQuestion *question = &client->question;
	SimDemand  *demand = &question->demand;
	RpinPosition position = {world->host.system_identifier, world->host.timeline,
	world->host.wal_end};
	uint64_t	random = sim_random(&world->random) >> 8;
	int			which = (int) sim_below(&world->random, 9);
	const RpinHistory *history = &world->product.published.history;
	char		token[RPIN_TOKEN_LENGTH + 1];

	begin_question(world, question);
	world->host.in_recovery = which == 0;
	sim_demand_begin(&world->product, demand, which == 1);
	world->host.in_recovery = false;
	question->expected = which == 0 ? RPIN_REASON_NOT_PRIMARY :
		which == 1 ? RPIN_REASON_IN_WRITE_TRANSACTION : RPIN_REASON_NO_SESSION_KEY;
	if (which == 2)
		sim_demand_add_no_key(demand);
	if (which == 4)
	{
		position.system_identifier ^= random | 1;
		question->expected = RPIN_REASON_WRONG_CLUSTER;
	}
	if (which == 5)
	{
		position.lsn += 1 + random % 1000000;
		question->expected = RPIN_REASON_POSITION_IN_FUTURE;
	}
	if (which == 6)
	{
		position.timeline += 1 + (uint32_t) random % 100;
		question->expected = once_known(world, RPIN_REASON_UNKNOWN_TIMELINE);
	}
	if (which == 7 && history->timeline == world->host.timeline && history->count > 0)
	{
		const RpinAncestor *ancestor = &history->ancestor[random % history->count];

		position.timeline = ancestor->timeline;
		position.lsn = ancestor->switch_lsn + 1 + random % 1000;
		question->expected = RPIN_REASON_WRITE_LOST;
	}
	rpin_token_format(&position, token);
	if (which == 8)
	{
		token[random % RPIN_TOKEN_LENGTH] = "xG \"/\x7f"[random % 6];
		question->expected = RPIN_REASON_TOKEN_UNREADABLE;
	}
	if (which <= 1)
		sim_demand_add_key(&world->product, demand, 0);
	else if (which == 8 || question->expected != RPIN_REASON_NO_SESSION_KEY)
		sim_demand_add_token(&world->product, demand, token, RPIN_TOKEN_LENGTH);
	decide_soon(world, who);
}

/* A server of those named, or of those behind the one endpoint; -1: the primary. */
static int
choose_target(SimWorld *world, const SimQuestion *question, const SimChoice *choice)
{
	uint32_t	servers = 0;
	int			chosen = -1;
	int			count = 0;

	if (!question->by_name)
		servers = choice->reason == RPIN_REASON_IN_SYNC ? question->balanced : 0;
	else
		for (int i = 0; i < world->product.published.count; i++)
			if (choice->named & UINT64_C(1) << i)
				servers |= 1u << sim_server_named(world, &world->product.published.row[i]);
	for (int i = 0; i < world->config.servers; i++)
		if ((servers & 1u << i) && sim_once_in(&world->random, (uint64_t) ++count))
			chosen = i;
	return chosen;
}

static void
decide(SimWorld *world, int who)
{
	SimClient  *client = &world->client[who];
	SimQuestion *question = &client->question;
	SimChoice	choice;

	sim_product_decide(&world->product, &question->demand, question->enforced, &choice);
	if (question->demand.quiet && choice.reason != RPIN_REASON_IN_SYNC)
	{
		/* the fast path does not know: the buckets decide */
		look_up(world, question);
		sim_check_demand(world, question);
		decide_soon(world, who);
		return;
	}
	question->balanced &= world->listed_mask & world->published_mask;
	sim_check_decision(world, question, &choice);
	client->target = choose_target(world, question, &choice);
	if (client->target < 0 || !question->enforced || question->required.lsn == 0)
		sim_client_rest(world, who);
	else
		sim_client_next(world, who, SIM_STAGE_READ, 50,
						sim_once_in(&world->random, 100) ? 50 * SIM_MS : 500);
}

/* --- reading ------------------------------------------------------------- */

/* CALL require(token) on a replica; true when what follows is proven to see it. */
static bool
call_require(SimWorld *world, int server, const RpinPosition *token, SimSpot spot)
{
	SimServer  *s = &world->server[server];
	int			line = sim_truth_line_at(world->truth, s->line, s->replay);
	RpinReason	reason = sim_node_compare(world->host.system_identifier,
										  world->truth->line[line].number,
										  s->replay, token);

	if (reason == RPIN_REASON_REPLICAS_BEHIND)
		sim_count(world, SIM_REQUIRE_BEHIND);
	else if (reason != RPIN_REASON_NONE)
		sim_count(world, SIM_REQUIRE_NOT_COMPARABLE);
	else
		sim_check_required(world, server, token, spot);
	return reason == RPIN_REASON_NONE;
}

/*
 * Over an old connection, as P1 (a) says; over one that is not, or that has to
 * be made first, behind require(), as P1 (b) says.
 */
static void
read_there(SimWorld *world, int who)
{
	SimClient  *client = &world->client[who];
	SimQuestion *question = &client->question;
	SimServer  *s = &world->server[client->target];
	SimConnection *connection = &client->connection[client->target];
	RpinPosition token = {world->host.system_identifier, world->host.timeline,
	question->demand.required};

	sim_client_rest(world, who);
	if (!s->up || client->target == world->primary)
		return;
	if (!connection->open || connection->life != s->life)
		*connection = (SimConnection) {true, s->life, world->host.now};
	if (question->asked_at - connection->opened_at > world->product.lifetime)
		sim_check_read(world, client->target, question->required, true);
	else if (call_require(world, client->target, &token, sim_primary_spot(world, token.lsn)))
		sim_check_read(world, client->target, question->required, false);
}

/* Token mode: any replica is asked about a token; the primary is not needed. */
static void
ask_replica(SimWorld *world, int who)
{
	int			server = (int) sim_below(&world->random, (uint64_t) world->config.servers);
	RpinPosition token;
	SimSpot		spot;

	if (sim_client_choose_token(world, &token, &spot) && server != world->primary &&
		world->server[server].up && call_require(world, server, &token, spot))
		sim_check_read(world, server, spot, false);
	sim_client_rest(world, who);
}

static void
think(SimWorld *world, int who)
{
	int			dice = (int) sim_below(&world->random, 100);

	if (dice < world->config.write_percent)
		sim_writer_begin(world, who);
	else if (sim_once_in(&world->random, 60))
		sim_writer_pin_token(world, who);
	else if (sim_once_in(&world->random, 12))
		ask_for_token(world, who);
	else if (sim_once_in(&world->random, 12))
		ask_replica(world, who);
	else if (sim_once_in(&world->random, 15))
		ask_with_fault(world, who);
	else
		ask_for_keys(world, who);
}

bool
sim_client_step(SimWorld *world, int who, uint64_t epoch)
{
	static void (*const stage[]) (SimWorld *world, int who) = {
		[SIM_STAGE_THINK] = think,
		[SIM_STAGE_PRE_COMMIT] = sim_writer_pre_commit,
		[SIM_STAGE_INSERT] = sim_writer_insert,
		[SIM_STAGE_FLUSH] = sim_writer_flush,
		[SIM_STAGE_VISIBLE] = sim_writer_become_visible,
		[SIM_STAGE_CALLBACK] = sim_writer_callback,
		[SIM_STAGE_ABORT] = sim_writer_abort,
		[SIM_STAGE_DECIDE] = decide,
		[SIM_STAGE_READ] = read_there,
	};

	if (epoch != world->epoch)
		return false;
	stage[world->client[who].stage] (world, who);
	return true;
}
