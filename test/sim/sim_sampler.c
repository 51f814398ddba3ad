/*-------------------------------------------------------------------------
 *
 * sim_sampler.c
 *	  The sampler process: the glue of src/worker, and publishing the board.
 *
 *-------------------------------------------------------------------------
 */
#include "sim_product.h"

#include <string.h>

/*
 * rpin_board_publish(): the board changes for all readers at once.
 */
static void
publish(SimProduct *product)
{
	product->published = product->sampler.board;
	product->edition++;
}

static void
restart_all(SimProduct *product, bool with_links)
{
	SimSampler *sampler = &product->sampler;

	for (int i = 0; i < sampler->board.count; i++)
	{
		if (with_links && sampler->link[i] != 0)
			product->host->close(product->host->world, sampler->link[i]);
		sampler->link[i] = 0;
		rpin_replica_restart(&sampler->board.row[i].replica, product->host->now);
	}
}

/*
 * start() and rpin_sampler_create(): the floor first; what an earlier sampler
 * left stays, but for the samples.
 */
void
sim_sampler_create(SimProduct *product)
{
	SimSampler *sampler = &product->sampler;
	SimHost    *host = product->host;

	sim_product_ensure_floor(product);
	memset(sampler, 0, sizeof(*sampler));
	sampler->running = true;
	rpin_lag_init(&sampler->waited);
	sampler->board = product->published;
	restart_all(product, false);
	(void) rpin_history_parse(host->history, host->history_length,
							  host->timeline, &sampler->board.history);
	sampler->changed = true;
	sim_sampler_configure(product);
}

/* rpin_sampler_destroy(), at the end of the process */
void
sim_sampler_destroy(SimProduct *product)
{
	restart_all(product, true);
	publish(product);
	product->sampler.running = false;
	product->asleep = false;
}

/* close_link() */
static void
close_link(SimProduct *product, int index)
{
	SimSampler *sampler = &product->sampler;

	if (sampler->link[index] == 0)
		return;
	product->host->close(product->host->world, sampler->link[index]);
	sampler->link[index] = 0;
}

/* step() */
static void
step(SimProduct *product, int index, RpinEvent event)
{
	SimSampler *sampler = &product->sampler;
	SimRow	   *row = &sampler->board.row[index];
	SimHost    *host = product->host;

	event.now = host->now;
	event.random = host->random;
	switch (rpin_replica_step(&row->replica, &event, &sampler->pace))
	{
		case RPIN_ACTION_CONNECT:
			sampler->link[index] = host->open(host->world, &row->address);
			break;
		case RPIN_ACTION_PREPARE:
			host->prepare(host->world, sampler->link[index]);
			break;
		case RPIN_ACTION_REQUEST:
			host->request(host->world, sampler->link[index]);
			break;
		case RPIN_ACTION_CLOSE:
			close_link(product, index);
			break;
		case RPIN_ACTION_NONE:
			break;
	}
	sampler->changed = true;
}

/* take_report(): the end of WAL is read after the answer came */
static void
take_report(SimProduct *product, int index, const RpinReport *report)
{
	SimHost    *host = product->host;
	RpinIdentity identity = {
		.system_identifier = host->system_identifier,
		.node_id = host->node_id,
		.end = host->wal_end,
		.history = &product->sampler.board.history,
	};
	RpinEvent	event = {
		.kind = RPIN_EVENT_REPORT,
		.report = report,
		.identity = &identity,
	};

	step(product, index, event);
}

/*
 * Whose reply is it?  In the server a connection that was closed has no replies
 * any more; here its number is not that of a row's connection any more.
 */
static int
find_row(const SimProduct *product, const SimReply *reply)
{
	const SimSampler *sampler = &product->sampler;

	for (int i = 0; i < sampler->board.count; i++)
		if (sampler->link[i] == reply->link)
			return i;
	return -1;
}

/* rpin_sampler_ready(): the row that took the reply, -1: nobody any more */
int
sim_sampler_ready(SimProduct *product, const SimReply *reply)
{
	static const RpinEventKind kind[] = {
		[SIM_PROGRESS_CONNECTED] = RPIN_EVENT_CONNECTED,
		[SIM_PROGRESS_PREPARED] = RPIN_EVENT_PREPARED,
		[SIM_PROGRESS_FAILED] = RPIN_EVENT_FAILURE,
	};
	int			index = find_row(product, reply);

	if (index < 0)
		return -1;
	if (reply->progress == SIM_PROGRESS_REPORT)
		take_report(product, index, &reply->report);
	else
	{
		RpinEvent	event = {
			.kind = kind[reply->progress],
			.failure = reply->failure,
		};

		step(product, index, event);
	}
	return index;
}

/* waiting_time() */
static int64_t
waiting_time(const SimSampler *sampler, const RpinReplica *replica, int64_t now)
{
	int64_t		since;

	if (!replica->sample_valid || replica->state != RPIN_STATE_SAMPLED)
		return -1;
	since = rpin_lag_since(&sampler->waited, replica->replay_lsn);
	return since < 0 ? -1 : now - since;
}

/* rpin_sampler_run(): does what is due, publishes, answers the next deadline */
int64_t
sim_sampler_run(SimProduct *product)
{
	SimSampler *sampler = &product->sampler;
	int64_t		now = product->host->now;
	int64_t		next = now + sampler->pace.sample_interval;

	rpin_lag_note(&sampler->waited, rpin_table_greatest(product->table), now);
	for (int i = 0; i < sampler->board.count; i++)
	{
		RpinReplica *replica = &sampler->board.row[i].replica;
		int64_t		lag = waiting_time(sampler, replica, now);

		rpin_replica_schedule(replica,
							  rpin_pace_interval(&sampler->pace, lag,
												 sampler->board.count));
		if (replica->deadline <= now)
			step(product, i, (RpinEvent) {.kind = RPIN_EVENT_TIMER});
		if (next > replica->deadline)
			next = replica->deadline;
	}
	if (sampler->changed)
		publish(product);
	sampler->changed = false;
	return next;
}

/* rpin_sampler_wants_news() */
static bool
wants_news(const SimProduct *product)
{
	const SimSampler *sampler = &product->sampler;
	int64_t		now = product->host->now;
	int64_t		soon = now + sampler->pace.min_sample_interval;

	for (int i = 0; i < sampler->board.count; i++)
	{
		const RpinReplica *replica = &sampler->board.row[i].replica;

		if (rpin_replica_wants_news(replica,
									waiting_time(sampler, replica, now), soon))
			return true;
	}
	return false;
}

/* rpin_sampler_is_current() */
static bool
is_current(const SimProduct *product)
{
	const RpinLag *waited = &product->sampler.waited;
	uint64_t	greatest = rpin_table_greatest(product->table);

	return waited->count == 0 ? greatest == 0 :
		waited->entry[waited->count - 1].position >= greatest;
}

/*
 * wait_for_work(): for how long it sleeps, in whole milliseconds.  Asleep is
 * announced before the last look for news.
 */
int64_t
sim_sampler_rest(SimProduct *product, int64_t deadline)
{
	int64_t		rest = deadline - product->host->now;

	if (wants_news(product))
	{
		product->asleep = true;
		if (!is_current(product))
			rest = 0;
	}
	return rest > 0 ? (rest + 999) / 1000 * 1000 : 0;
}

static bool
is_same_definition(const RpinAddress *a, const RpinAddress *b)
{
	return strcmp(a->name, b->name) == 0 && strcmp(a->host, b->host) == 0 &&
		a->port == b->port;
}

/* adopt_row() */
static uint64_t
adopt_row(SimProduct *product, const RpinAddress *address, SimRow *row)
{
	SimSampler *sampler = &product->sampler;

	for (int i = 0; i < sampler->board.count; i++)
	{
		uint64_t	link = sampler->link[i];

		if (!is_same_definition(&sampler->board.row[i].address, address))
			continue;
		*row = sampler->board.row[i];
		sampler->link[i] = 0;
		return link;
	}
	memset(row, 0, sizeof(*row));
	row->address = *address;
	rpin_replica_init(&row->replica, product->host->now);
	return 0;
}

/* rpin_sampler_configure() and apply_list() */
void
sim_sampler_configure(SimProduct *product)
{
	SimSampler *sampler = &product->sampler;
	SimBoard   *board = &sampler->spare;
	RpinAddress address[SIM_REPLICAS];
	uint64_t	link[SIM_REPLICAS] = {0};
	RpinListError error;
	int			count;

	sampler->pace = product->host->pace;
	board->clamped = rpin_pace_clamp(&sampler->pace);
	count = rpin_list_parse(product->host->replicas, address, SIM_REPLICAS,
							&error);
	board->history = sampler->board.history;
	board->count = count > 0 ? count : 0;
	for (int i = 0; i < board->count; i++)
		link[i] = adopt_row(product, &address[i], &board->row[i]);
	for (int i = 0; i < sampler->board.count; i++)
		close_link(product, i);
	memcpy(sampler->link, link, sizeof(link));
	sampler->board = *board;
	sampler->changed = true;
}
