/*-------------------------------------------------------------------------
 *
 * sim_product.c
 *	  Recording and deciding: the glue of src/shmem and src/sql.
 *
 *-------------------------------------------------------------------------
 */
#include "sim_product.h"

#include <stdlib.h>
#include <string.h>

#include "sim_base.h"

void
sim_product_start(SimProduct *product, SimHost *host, uint64_t keys,
				  uint64_t seed)
{
	memset(product, 0, sizeof(*product));
	product->host = host;
	product->lifetime = host->pace.sample_lifetime;
	product->seed = seed;
	product->table = aligned_alloc(RPIN_CACHE_LINE, rpin_table_size(keys));
	if (product->table == NULL)
		abort();
	rpin_table_init(product->table, keys);
}

void
sim_product_stop(SimProduct *product)
{
	free(product->table);
	product->table = NULL;
}

/* rpin_keys_fingerprint(): seeded anew at each start */
uint64_t
sim_product_fingerprint(const SimProduct *product, int key)
{
	return sim_mix(product->seed ^ (uint64_t) key);
}

/* rpin_keys_ensure_floor() */
void
sim_product_ensure_floor(SimProduct *product)
{
	if (rpin_table_floor(product->table) == 0)
		rpin_table_raise_floor(product->table, product->host->wal_end);
}

/* rpin_board_wake_worker(): at most once a sleep */
static void
wake_worker(SimProduct *product)
{
	if (!product->asleep)
		return;
	product->asleep = false;
	product->host->wake(product->host->world);
}

/* rpin_keys_record(): the bucket under its lock, then `greatest`, then the latch */
void
sim_product_record(SimProduct *product, uint64_t fingerprint, uint64_t lsn)
{
	if (rpin_table_record(product->table, fingerprint, lsn) == RPIN_RECORDED_EVICTED)
		product->evictions++;
	if (rpin_table_raise_greatest(product->table, lsn))
		wake_worker(product);
}

/* rpin_keys_record_all() */
static void
record_all(SimProduct *product, uint64_t lsn)
{
	rpin_table_raise_floor(product->table, lsn);
	wake_worker(product);
}

/* pin_now_and_at_commit(); what it answers is what the key is pinned to now */
uint64_t
sim_product_pin(SimProduct *product, SimTransaction *transaction, int key)
{
	uint64_t	fingerprint = sim_product_fingerprint(product, key);
	uint64_t	end = product->host->wal_end;

	sim_product_ensure_floor(product);
	sim_product_record(product, fingerprint, end);
	rpin_keyset_add(&transaction->keys, fingerprint);
	return end;
}

/*
 * before_commit(): the marks are up before the commit record is written, so
 * before anybody can see a row (P1).
 */
void
sim_product_before_commit(SimProduct *product, SimTransaction *transaction)
{
	RpinKeyset *keys = &transaction->keys;

	if (keys->all && !transaction->marked_all)
	{
		transaction->marked_all = true;
		rpin_table_pending_all_up(product->table);
	}
	while (transaction->marked < keys->count)
		rpin_table_pending_up(product->table,
							  keys->fingerprint[transaction->marked++]);
}

/* unmark_pending(), one lock at a time; false when no mark is up any more */
static bool
unmark_one(SimProduct *product, SimTransaction *transaction)
{
	RpinKeyset *keys = &transaction->keys;

	if (transaction->marked > 0)
		rpin_table_pending_down(product->table,
								keys->fingerprint[--transaction->marked]);
	else if (transaction->marked_all)
	{
		rpin_table_pending_all_down(product->table);
		transaction->marked_all = false;
	}
	else
		return false;
	return true;
}

/* forget() */
static void
forget(SimTransaction *transaction)
{
	rpin_keyset_clear(&transaction->keys);
	transaction->has_prepared = false;
	transaction->recorded = 0;
}

/*
 * after_commit(), one table lock at a time, since others run in between.  All
 * positions are recorded before the first mark goes down.  False when done.
 */
bool
sim_product_commit(SimProduct *product, SimTransaction *transaction,
				   uint64_t lsn)
{
	RpinKeyset *keys = &transaction->keys;

	if (keys->all && transaction->recorded == 0)
	{
		record_all(product, lsn);
		transaction->recorded = keys->count;
		return true;
	}
	if (transaction->recorded < keys->count)
	{
		sim_product_record(product, keys->fingerprint[transaction->recorded++],
						   lsn);
		return true;
	}
	if (unmark_one(product, transaction))
		return true;
	forget(transaction);
	return false;
}

/*
 * after_abort(): a COMMIT PREPARED that failed may have committed all the same.
 */
void
sim_product_abort(SimProduct *product, SimTransaction *transaction)
{
	if (transaction->has_prepared)
	{
		if (transaction->keys.all)
			record_all(product, product->host->wal_end);
		for (uint32_t i = 0; i < transaction->keys.count; i++)
			sim_product_record(product, transaction->keys.fingerprint[i],
							   product->host->wal_end);
	}
	while (unmark_one(product, transaction))
		continue;
	forget(transaction);
}

/* rpin_demand_begin() */
void
sim_demand_begin(SimProduct *product, SimDemand *demand, bool has_written)
{
	memset(demand, 0, sizeof(*demand));
	if (product->host->in_recovery)
		demand->fault = RPIN_REASON_NOT_PRIMARY;
	else if (has_written)
		demand->fault = RPIN_REASON_IN_WRITE_TRANSACTION;
	else
		sim_product_ensure_floor(product);
}

static void
add_fault(SimDemand *demand, RpinReason fault)
{
	if (demand->fault == RPIN_REASON_NONE)
		demand->fault = fault;
}

static void
add_position(SimDemand *demand, uint64_t lsn)
{
	demand->given = true;
	if (demand->required < lsn)
		demand->required = lsn;
}

/* rpin_demand_add_key() */
void
sim_demand_add_key(SimProduct *product, SimDemand *demand, int key)
{
	RpinLookup	lookup;

	if (demand->fault != RPIN_REASON_NONE)
		return;
	lookup = rpin_table_lookup(product->table,
							   sim_product_fingerprint(product, key));
	add_position(demand, lookup.lsn);
	demand->pending |= lookup.pending;
}

/* an empty key, or an empty array */
void
sim_demand_add_no_key(SimDemand *demand)
{
	add_fault(demand, RPIN_REASON_NO_SESSION_KEY);
}

/* rpin_demand_add_token() and rpin_demand_add_position() */
void
sim_demand_add_token(SimProduct *product, SimDemand *demand,
					 const char *token, size_t length)
{
	RpinPosition position;
	RpinReason	fault;
	uint64_t	lsn;

	if (!rpin_token_parse(token, length, &position))
	{
		add_fault(demand, RPIN_REASON_TOKEN_UNREADABLE);
		return;
	}
	if (demand->fault == RPIN_REASON_NOT_PRIMARY ||
		demand->fault == RPIN_REASON_IN_WRITE_TRANSACTION)
		return;
	fault = sim_product_resolve(product, &position, &lsn);
	if (fault == RPIN_REASON_NONE)
		add_position(demand, lsn);
	else
		add_fault(demand, fault);
}

/* The first half of rpin_decision_is_nothing_pinned(). */
bool
sim_demand_quiet(SimProduct *product, SimDemand *demand)
{
	demand->quiet = demand->fault == RPIN_REASON_NONE &&
		rpin_table_quiet(product->table, &demand->required);
	demand->given = demand->quiet;
	return demand->quiet;
}

/* list_candidates(), decide_once() and rpin_decision_make() */
void
sim_product_decide(const SimProduct *product, const SimDemand *demand,
				   bool enforced, SimChoice *choice)
{
	const SimBoard *board = &product->published;
	RpinCandidate candidate[SIM_REPLICAS];
	RpinReason	fault = demand->fault;
	RpinDecision decision;

	if (fault == RPIN_REASON_NONE && !demand->given)
		fault = RPIN_REASON_NO_SESSION_KEY;
	for (int i = 0; i < board->count; i++)
	{
		const RpinReplica *replica = &board->row[i].replica;

		candidate[i].self = replica->state == RPIN_STATE_SELF;
		candidate[i].eligible = rpin_replica_eligible(replica, product->host->now,
													  product->lifetime);
		candidate[i].replay_lsn = replica->replay_lsn;
	}
	decision = rpin_decide(demand->required, demand->pending, candidate,
						   board->count);
	if (decision.reason == RPIN_REASON_NO_REPLICAS && board->history.timeline == 0)
		decision.reason = RPIN_REASON_SAMPLES_STALE;
	if (fault != RPIN_REASON_NONE)
	{
		decision.reason = fault;
		decision.safe = 0;
	}
	choice->found = decision.reason;
	if (!enforced)
		decision = rpin_decide_unenforced(decision);
	choice->reason = decision.reason;
	choice->named = decision.safe;
}

/* rpin_board_resolve() */
RpinReason
sim_product_resolve(const SimProduct *product, const RpinPosition *position,
					uint64_t *lsn)
{
	const RpinHistory *history = &product->published.history;
	RpinHistory own = {.timeline = product->host->timeline};
	bool		known = history->timeline == own.timeline;
	RpinReason	reason = rpin_history_resolve(known ? history : &own,
											  product->host->system_identifier,
											  product->host->wal_end,
											  position, lsn);

	if (reason == RPIN_REASON_UNKNOWN_TIMELINE && !known)
		return RPIN_REASON_SAMPLES_STALE;
	return reason;
}

/* rpin_node_compare() of a node in recovery */
RpinReason
sim_node_compare(uint64_t system_identifier, uint32_t timeline, uint64_t lsn,
				 const RpinPosition *position)
{
	RpinHistory own = {.timeline = timeline};
	uint64_t	ignored;
	RpinReason	reason = rpin_history_resolve(&own, system_identifier, lsn,
											  position, &ignored);

	return reason == RPIN_REASON_POSITION_IN_FUTURE ?
		RPIN_REASON_REPLICAS_BEHIND : reason;
}
