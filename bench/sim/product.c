/*-------------------------------------------------------------------------
 *
 * product.c
 *	  The extension in virtual time.
 *
 *-------------------------------------------------------------------------
 */
#include "product.h"

#include <stdlib.h>

#include "rpin_decide.h"
#include "rpin_lag.h"
#include "rpin_replica.h"
#include "rpin_table.h"
#include "trace.h"

struct Product
{
	RpinTable  *table;
	RpinReplica replica[REPLICAS];
	RpinLag		waited;
	RpinHistory history;
	RpinPace	pace;
	int64_t		wake;
	void		(*ask) (int replica, int64_t now);
};

/* The settings' defaults. */
static const RpinPace default_pace = {
	.sample_interval = 250 * MS,
	.min_sample_interval = 2 * MS,
	.sample_timeout = SECOND,
	.sample_lifetime = 5 * SECOND,
};

Product *
product_create(uint64_t keys, void (*ask) (int replica, int64_t now))
{
	Product    *product = calloc(1, sizeof(Product));

	product->table = aligned_alloc(RPIN_CACHE_LINE,
								   (rpin_table_size(keys) + 63) / 64 * 64);
	rpin_table_init(product->table, keys);
	rpin_table_raise_floor(product->table, 1);
	rpin_lag_init(&product->waited);
	product->history.timeline = 1;
	product->pace = default_pace;
	product->ask = ask;
	for (int i = 0; i < REPLICAS; i++)
		rpin_replica_init(&product->replica[i], 0);
	return product;
}

static void
step(Product *product, int i, RpinEvent event)
{
	switch (rpin_replica_step(&product->replica[i], &event, &product->pace))
	{
		case RPIN_ACTION_CONNECT:
			event.kind = RPIN_EVENT_CONNECTED;
			step(product, i, event);
			break;
		case RPIN_ACTION_PREPARE:
			event.kind = RPIN_EVENT_PREPARED;
			step(product, i, event);
			break;
		case RPIN_ACTION_REQUEST:
			product->ask(i, event.now);
			break;
		case RPIN_ACTION_CLOSE:
		case RPIN_ACTION_NONE:
			break;
	}
}

void
product_answer(Product *product, int64_t now, int replica, uint64_t replay_lsn)
{
	RpinReport	report = {
		.system_identifier = 1,
		.in_recovery = true,
		.timeline = 1,
		.replay_lsn = replay_lsn,
	};
	RpinIdentity identity = {
		.system_identifier = 1,
		.end = BASE + (uint64_t) now,
		.history = &product->history,
	};
	RpinEvent	event = {
		.kind = RPIN_EVENT_REPORT,
		.now = now,
		.report = &report,
		.identity = &identity,
	};

	step(product, replica, event);
	product->wake = now;
}

/* rpin_sampler_run(), and the sleep after it, which is of whole milliseconds */
void
product_run(Product *product, int64_t now)
{
	int64_t		next = now + product->pace.sample_interval;
	RpinEvent	timer = {.kind = RPIN_EVENT_TIMER, .now = now};

	rpin_lag_note(&product->waited, rpin_table_greatest(product->table), now);
	for (int i = 0; i < REPLICAS; i++)
	{
		RpinReplica *replica = &product->replica[i];
		int64_t		since = !replica->sample_valid ? -1 :
			rpin_lag_since(&product->waited, replica->replay_lsn);

		rpin_replica_schedule(replica,
							  rpin_pace_interval(&product->pace,
												 since < 0 ? -1 : now - since,
												 REPLICAS));
		if (replica->deadline <= now)
			step(product, i, timer);
		if (next > replica->deadline)
			next = replica->deadline;
	}
	product->wake = now + (next - now + MS - 1) / MS * MS;
	if (product->wake == now)
		product->wake = now + MS;
}

int64_t
product_wake(const Product *product)
{
	return product->wake;
}

/* rpin_sampler_wants_news() */
static bool
wants_news(const Product *product, int64_t now)
{
	for (int i = 0; i < REPLICAS; i++)
		if (product->replica[i].phase == RPIN_PHASE_IDLE &&
			product->replica[i].deadline > now + product->pace.min_sample_interval)
			return true;
	return false;
}

void
product_commit(Product *product, int64_t now, uint64_t fingerprint, uint64_t lsn)
{
	rpin_table_pending_up(product->table, fingerprint);
	(void) rpin_table_record(product->table, fingerprint, lsn);
	if (rpin_table_raise_greatest(product->table, lsn) &&
		wants_news(product, now))
		product->wake = now;
	rpin_table_pending_down(product->table, fingerprint);
}

uint64_t
product_route(const Product *product, int64_t now, uint64_t fingerprint)
{
	RpinCandidate candidate[REPLICAS];
	RpinLookup	lookup = rpin_table_lookup(product->table, fingerprint);

	for (int i = 0; i < REPLICAS; i++)
	{
		const RpinReplica *replica = &product->replica[i];

		candidate[i].self = false;
		candidate[i].eligible = rpin_replica_eligible(replica, now,
													  product->pace.sample_lifetime);
		candidate[i].replay_lsn = replica->replay_lsn;
	}
	return rpin_decide(lookup.lsn, lookup.pending, candidate, REPLICAS).safe;
}
