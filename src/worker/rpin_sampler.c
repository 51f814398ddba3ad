/*-------------------------------------------------------------------------
 *
 * rpin_sampler.c
 *	  All replicas: their state machines, their links, their rows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "common/pg_prng.h"

#include "../core/rpin_lag.h"
#include "../shmem/rpin_board.h"
#include "../shmem/rpin_clock.h"
#include "../shmem/rpin_keys.h"
#include "../shmem/rpin_wal.h"
#include "rpin_sampler.h"

struct RpinSampler
{
	const RpinLinkOps *ops;
	char	   *conninfo;
	RpinPace	pace;			/* clamped */
	RpinLag		flushed;		/* WAL flushed here: lag in time for the view */
	RpinLag		waited;			/* positions that somebody waits for: pacing */
	bool		changed;		/* the board is not published yet */
	bool		rewire;			/* a socket or its events changed */
	uint32	   *interest;		/* per row, as the wait set has it */
	RpinLink  **link;			/* per row; NULL: no connection */
	RpinBoard  *board;			/* the sampler's own copy */
	RpinBoard  *spare;			/* for configure */
};

RpinSampler *
rpin_sampler_create(const RpinLinkOps *ops)
{
	RpinSampler *sampler = palloc0(sizeof(RpinSampler));

	sampler->ops = ops;
	sampler->conninfo = pstrdup("");
	rpin_lag_init(&sampler->flushed);
	rpin_lag_init(&sampler->waited);
	sampler->interest = palloc0(rpin_max_replicas * sizeof(uint32));
	sampler->link = palloc0(rpin_max_replicas * sizeof(RpinLink *));
	sampler->board = palloc0(rpin_board_size());
	sampler->spare = palloc0(rpin_board_size());

	/*
	 * What an earlier sampler of this server left: who is ahead stays ahead.
	 * Its connections are gone, and so are the samples that came over them.
	 */
	if (!rpin_board_copy(sampler->board))
		sampler->board->count = 0;
	for (int i = 0; i < sampler->board->count; i++)
		rpin_replica_restart(&sampler->board->row[i].replica,
							 rpin_clock_now());
	rpin_wal_read_history(GetWALInsertionTimeLine(), &sampler->board->history);
	sampler->changed = true;
	return sampler;
}

static void
close_link(RpinSampler *sampler, int index)
{
	if (sampler->link[index] == NULL)
		return;
	sampler->ops->close(sampler->link[index]);
	sampler->link[index] = NULL;
	sampler->board->row[index].connected_at = 0;
	sampler->rewire = true;
}

static void
log_state(const RpinBoardRow *row)
{
	ereport(LOG,
			(errmsg("replica_pin: replica \"%s\" (host \"%s\", port %d) is now %s",
					row->address.name, row->address.host, row->address.port,
					rpin_state_name(row->replica.state)),
			 errdetail("%s%s%s", rpin_state_meaning(row->replica.state),
					   row->error[0] != '\0' ? ": " : "", row->error)));
}

/* Hands an event to a replica's machine and carries out what it answers. */
static void
step(RpinSampler *sampler, int index, RpinEvent event)
{
	RpinBoardRow *row = &sampler->board->row[index];
	RpinState	before = row->replica.state;
	RpinLink   *link = sampler->link[index];

	event.random = pg_prng_uint32(&pg_global_prng_state);
	switch (rpin_replica_step(&row->replica, &event, &sampler->pace))
	{
		case RPIN_ACTION_CONNECT:
			sampler->link[index] =
				sampler->ops->open(&row->address, sampler->conninfo,
								   &sampler->pace);
			sampler->rewire = true;
			break;
		case RPIN_ACTION_PREPARE:
			row->connected_at = event.now;
			sampler->ops->prepare(link);
			break;
		case RPIN_ACTION_REQUEST:
			sampler->ops->request(link);
			break;
		case RPIN_ACTION_CLOSE:
			close_link(sampler, index);
			break;
		case RPIN_ACTION_NONE:
			break;
	}
	sampler->changed = true;
	if (row->replica.state != before)
		log_state(row);
}

static void
take_report(RpinSampler *sampler, int index, const RpinReport *report)
{
	RpinBoardRow *row = &sampler->board->row[index];

	/* The end of our WAL is read after the answer came: it only grows. */
	RpinIdentity identity = {
		.system_identifier = GetSystemIdentifier(),
		.node_id = rpin_board_node_id(),
		.end = rpin_wal_end(),
		.history = &sampler->board->history,
	};
	RpinEvent	event = {
		.kind = RPIN_EVENT_REPORT,
		.now = rpin_clock_now(),
		.report = report,
		.identity = &identity,
	};

	row->error[0] = '\0';
	strlcpy(row->library_version, report->library_version, RPIN_VERSION_SIZE);
	step(sampler, index, event);
	rpin_lag_note(&sampler->flushed, GetFlushRecPtr(NULL), event.now);
	row->behind_since = rpin_lag_since(&sampler->flushed, report->replay_lsn);
}

static void
take_failure(RpinSampler *sampler, int index, RpinState failure,
			 const char *message)
{
	RpinEvent	event = {
		.kind = RPIN_EVENT_FAILURE,
		.now = rpin_clock_now(),
		.failure = failure,
	};

	strlcpy(sampler->board->row[index].error, message, RPIN_ERROR_SIZE);
	step(sampler, index, event);
}

static void
take_progress(RpinSampler *sampler, int index, RpinEventKind kind)
{
	RpinEvent	event = {
		.kind = kind,
		.now = rpin_clock_now(),
	};

	step(sampler, index, event);
}

/* The wait set follows what the link wants to wait for. */
static void
note_interest(RpinSampler *sampler, int index)
{
	uint32		wanted;

	if (sampler->link[index] == NULL)
		return;
	wanted = sampler->ops->interest(sampler->link[index]);
	if (sampler->interest[index] == wanted)
		return;
	sampler->interest[index] = wanted;
	sampler->rewire = true;
}

void
rpin_sampler_ready(RpinSampler *sampler, int index)
{
	RpinLink   *link = sampler->link[index];
	RpinReport	report;

	if (link == NULL)
		return;
	if (sampler->board->row[index].replica.phase == RPIN_PHASE_CONNECTING)
		sampler->rewire = true;
	switch (sampler->ops->advance(link, &report))
	{
		case RPIN_PROGRESS_NONE:
			break;
		case RPIN_PROGRESS_CONNECTED:
			take_progress(sampler, index, RPIN_EVENT_CONNECTED);
			break;
		case RPIN_PROGRESS_PREPARED:
			take_progress(sampler, index, RPIN_EVENT_PREPARED);
			break;
		case RPIN_PROGRESS_REPORT:
			take_report(sampler, index, &report);
			break;
		case RPIN_PROGRESS_FAILED:
			take_failure(sampler, index, sampler->ops->failure(link),
						 sampler->ops->message(link));
			break;
	}
	note_interest(sampler, index);
}

/* For how long something that is waited for has been beyond the replica. */
static int64
waiting_time(const RpinSampler *sampler, const RpinReplica *replica, int64 now)
{
	int64		since;

	if (!replica->sample_valid || replica->state != RPIN_STATE_SAMPLED)
		return -1;
	since = rpin_lag_since(&sampler->waited, replica->replay_lsn);
	return since < 0 ? -1 : now - since;
}

static void
time_out(RpinSampler *sampler, int index)
{
	RpinBoardRow *row = &sampler->board->row[index];

	if (row->replica.phase != RPIN_PHASE_RESTING &&
		row->replica.phase != RPIN_PHASE_IDLE)
		snprintf(row->error, RPIN_ERROR_SIZE,
				 "no answer to %s within %d ms",
				 row->replica.phase == RPIN_PHASE_CONNECTING ?
				 "the connection attempt" : "the question",
				 (int) (sampler->pace.sample_timeout / 1000));
	take_progress(sampler, index, RPIN_EVENT_TIMER);
	if (sampler->link[index] != NULL &&
		sampler->ops->socket(sampler->link[index]) < 0)
		rpin_sampler_ready(sampler, index); /* failed at once */
	note_interest(sampler, index);
}

int64
rpin_sampler_run(RpinSampler *sampler)
{
	int64		now = rpin_clock_now();
	int64		next = now + sampler->pace.sample_interval;

	rpin_lag_note(&sampler->waited, rpin_keys_greatest(), now);
	rpin_lag_note(&sampler->flushed, GetFlushRecPtr(NULL), now);
	for (int i = 0; i < sampler->board->count; i++)
	{
		RpinReplica *replica = &sampler->board->row[i].replica;
		int64		lag = waiting_time(sampler, replica, now);

		rpin_replica_schedule(replica,
							  rpin_pace_interval(&sampler->pace, lag,
												 sampler->board->count));
		if (replica->deadline <= now)
			time_out(sampler, i);
		next = Min(next, replica->deadline);
	}
	if (sampler->changed)
		rpin_board_publish(sampler->board);
	sampler->changed = false;
	return next;
}

bool
rpin_sampler_wants_news(const RpinSampler *sampler)
{
	int64		now = rpin_clock_now();
	int64		soon = now + sampler->pace.min_sample_interval;

	for (int i = 0; i < sampler->board->count; i++)
	{
		const RpinReplica *replica = &sampler->board->row[i].replica;

		if (rpin_replica_wants_news(replica,
									waiting_time(sampler, replica, now), soon))
			return true;
	}
	return false;
}

bool
rpin_sampler_is_current(const RpinSampler *sampler)
{
	XLogRecPtr	greatest = rpin_keys_greatest();

	return sampler->waited.count == 0 ? greatest == 0 :
		sampler->waited.entry[sampler->waited.count - 1].position >= greatest;
}

static bool
is_same_definition(const RpinAddress *a, const RpinAddress *b)
{
	return strcmp(a->name, b->name) == 0 && strcmp(a->host, b->host) == 0 &&
		a->port == b->port;
}

/* Fills a row of the new list: the old one of this definition, or a new one. */
static RpinLink *
adopt_row(RpinSampler *sampler, const RpinAddress *address, RpinBoardRow *row)
{
	for (int i = 0; i < sampler->board->count; i++)
	{
		RpinLink   *link = sampler->link[i];

		if (!is_same_definition(&sampler->board->row[i].address, address))
			continue;
		*row = sampler->board->row[i];
		sampler->link[i] = NULL;
		return link;
	}
	memset(row, 0, sizeof(*row));
	row->address = *address;
	row->behind_since = -1;
	rpin_replica_init(&row->replica, rpin_clock_now());
	return NULL;
}

static void
apply_list(RpinSampler *sampler, const char *list)
{
	RpinAddress *address = palloc(rpin_max_replicas * sizeof(RpinAddress));
	RpinLink  **link = palloc0(rpin_max_replicas * sizeof(RpinLink *));
	RpinBoard  *board = sampler->spare;
	RpinListError error;
	int			count = rpin_list_parse(list, address, rpin_max_replicas,
										&error);

	/* The setting was checked; a list that cannot be read names nobody. */
	board->history = sampler->board->history;
	board->count = Max(count, 0);
	for (int i = 0; i < board->count; i++)
		link[i] = adopt_row(sampler, &address[i], &board->row[i]);
	for (int i = 0; i < sampler->board->count; i++)
		close_link(sampler, i);

	memcpy(sampler->link, link, rpin_max_replicas * sizeof(RpinLink *));
	memset(sampler->interest, 0, rpin_max_replicas * sizeof(uint32));
	sampler->spare = sampler->board;
	sampler->board = board;
	pfree(link);
	pfree(address);
}

static void
restart_all(RpinSampler *sampler)
{
	for (int i = 0; i < sampler->board->count; i++)
	{
		close_link(sampler, i);
		rpin_replica_restart(&sampler->board->row[i].replica,
							 rpin_clock_now());
	}
}

void
rpin_sampler_configure(RpinSampler *sampler,
					   const RpinSamplerSettings *settings)
{
	int			clamped;

	sampler->pace = settings->pace;
	clamped = rpin_pace_clamp(&sampler->pace);
	if (strcmp(sampler->conninfo, settings->conninfo) != 0)
	{
		pfree(sampler->conninfo);
		sampler->conninfo = pstrdup(settings->conninfo);
		restart_all(sampler);
	}
	apply_list(sampler, settings->replicas);
	sampler->board->clamped = clamped;
	for (int i = 0; i < sampler->board->count; i++)
		note_interest(sampler, i);
	sampler->rewire = true;
	sampler->changed = true;
}

int
rpin_sampler_count(const RpinSampler *sampler)
{
	return sampler->board->count;
}

int
rpin_sampler_socket(const RpinSampler *sampler, int index)
{
	return sampler->link[index] == NULL ? -1 :
		sampler->ops->socket(sampler->link[index]);
}

uint32
rpin_sampler_interest(const RpinSampler *sampler, int index)
{
	return sampler->interest[index];
}

bool
rpin_sampler_take_rewire(RpinSampler *sampler)
{
	bool		rewire = sampler->rewire;

	sampler->rewire = false;
	return rewire;
}

void
rpin_sampler_destroy(RpinSampler *sampler)
{
	restart_all(sampler);
	rpin_board_publish(sampler->board);
}
