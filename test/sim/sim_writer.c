/*-------------------------------------------------------------------------
 *
 * sim_writer.c
 *	  Clients that write: a transaction, step by step, as rpin_capture.c has it.
 *
 *-------------------------------------------------------------------------
 */
#include "sim_check.h"

/* More keys than a transaction can name, before those that matter: it pins all. */
static void
arm_too_many(SimWorld *world, SimTransaction *transaction)
{
	for (int i = 0; i <= RPIN_KEYSET_SIZE; i++)
		rpin_keyset_add(&transaction->keys, sim_random(&world->random));
}

void
sim_writer_begin(SimWorld *world, int who)
{
	SimClient  *client = &world->client[who];
	int			dice = (int) sim_below(&world->random, 100);

	client->key_count = dice < 5 ? 0 : dice < 30 ? 2 : 1;
	client->key[0] = sim_client_choose_key(world, client);
	client->key[1] = sim_zipf(&world->random, world->config.keys);
	client->flushes = dice >= 20;
	if (sim_once_in(&world->random, 8))
	{
		uint64_t	end = sim_product_pin(&world->product, &client->transaction,
										  client->key[0]);

		sim_count(world, SIM_PIN);
		sim_truth_write(world->truth, client->key[0], sim_primary_spot(world, end));
	}
	if (sim_once_in(&world->random, 1000))
		arm_too_many(world, &client->transaction);
	for (int i = 0; i < client->key_count; i++)
		rpin_keyset_add(&client->transaction.keys,
						sim_product_fingerprint(&world->product, client->key[i]));
	client->transaction.has_prepared = sim_once_in(&world->random, 30);
	sim_client_next(world, who, SIM_STAGE_PRE_COMMIT, 50, 2 * SIM_MS);
}

void
sim_writer_pre_commit(SimWorld *world, int who)
{
	sim_product_before_commit(&world->product, &world->client[who].transaction);
	sim_client_next(world, who, sim_once_in(&world->random, 10) ? SIM_STAGE_ABORT : SIM_STAGE_INSERT,
					5, 100);
}

void
sim_writer_insert(SimWorld *world, int who)
{
	SimClient  *client = &world->client[who];
	uint64_t	size = 40 + 8 * sim_below(&world->random, 50);

	if (sim_once_in(&world->random, 50))
		size += 8 * sim_below(&world->random, 100000);
	world->host.wal_end += size;
	client->commit = sim_primary_spot(world, world->host.wal_end);
	sim_trace(world, "commit record", who, client->commit.lsn,
			  client->key_count > 0 ? (uint64_t) client->key[0] : UINT64_MAX);
	sim_client_next(world, who, SIM_STAGE_FLUSH, 5, client->flushes ? SIM_MS : 20);
}

/* A process can lose its processor anywhere. */
static int64_t
preempted(SimWorld *world, int64_t usually)
{
	return sim_once_in(&world->random, 15) ? 8 * SIM_MS : usually;
}

void
sim_writer_flush(SimWorld *world, int who)
{
	SimClient  *client = &world->client[who];
	bool		waits_for_standby = client->flushes && sim_once_in(&world->random, 15);

	if (client->flushes && world->host.flushed < client->commit.lsn)
		world->host.flushed = client->commit.lsn;
	sim_client_next(world, who, SIM_STAGE_VISIBLE, 1, waits_for_standby ? 100 * SIM_MS : 30);
}

/* From here on everybody may see it on the primary: so every reader must. */
void
sim_writer_become_visible(SimWorld *world, int who)
{
	SimClient  *client = &world->client[who];

	for (int i = 0; i < client->key_count; i++)
		sim_truth_write(world->truth, client->key[i], client->commit);
	sim_trace(world, "visible", who, client->commit.lsn, 0);
	if (client->transaction.has_prepared && sim_once_in(&world->random, 3))
	{
		sim_count(world, SIM_COMMIT_PREPARED_FAILED);
		sim_client_next(world, who, SIM_STAGE_ABORT, 1, 50);
	}
	else
		sim_client_next(world, who, SIM_STAGE_CALLBACK, 1,
						client->transaction.keys.all ? 20 * SIM_MS : preempted(world, 20));
}

void
sim_writer_callback(SimWorld *world, int who)
{
	SimClient  *client = &world->client[who];
	bool		was_all = client->transaction.keys.all;

	if (sim_product_commit(&world->product, &client->transaction, client->commit.lsn))
	{
		sim_client_next(world, who, SIM_STAGE_CALLBACK, 1, preempted(world, 6));
		return;
	}
	sim_count(world, SIM_COMMIT);
	if (was_all)
		sim_count(world, SIM_COMMIT_ALL);
	if (client->key_count == 2)
		sim_count(world, SIM_COMMIT_TWO_KEYS);
	client->last_key = client->key_count > 0 ? client->key[0] : -1;
	if (sim_once_in(&world->random, 20))
	{
		client->old_spot = client->token_spot;
		client->old_token = client->token;
	}
	client->token_spot = client->commit;
	client->token = (RpinPosition)
	{
		world->host.system_identifier,
			world->host.timeline, client->commit.lsn
	};
	sim_client_rest(world, who);
}

void
sim_writer_abort(SimWorld *world, int who)
{
	sim_count(world, SIM_ABORT);
	sim_product_abort(&world->product, &world->client[who].transaction);
	sim_client_rest(world, who);
}

/* pin(key, token) */
void
sim_writer_pin_token(SimWorld *world, int who)
{
	int			key = sim_client_choose_key(world, &world->client[who]);
	RpinPosition token;
	SimSpot		spot;
	uint64_t	lsn;
	RpinReason	reason;

	if (sim_client_choose_token(world, &token, &spot))
	{
		sim_product_ensure_floor(&world->product);
		reason = sim_product_resolve(&world->product, &token, &lsn);
		sim_check_resolved(world, spot, &token, reason);
		if (reason == RPIN_REASON_NONE)
		{
			sim_count(world, SIM_PIN_TOKEN);
			sim_product_record(&world->product,
							   sim_product_fingerprint(&world->product, key), lsn);
			if (sim_primary_holds(world, spot))
				sim_truth_write(world->truth, key, spot);
		}
	}
	sim_client_rest(world, who);
}
