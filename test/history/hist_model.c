/*
 * hist_model.c
 *	  What was written, as its writers know it.
 */
#include "hist_model.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Memory for it is taken only as versions are used. */
#define MOST_VERSIONS (INT64_C(1) << 28)
#define RECENT 16
#define LOG_CHUNK 50000

typedef struct Slot
{
	pthread_mutex_t mutex;
	int64_t		key;
	int64_t		acked_at;
	int64_t		created_at;
	int64_t		seen;
	uint64_t	claim;
	int			under_way;
	bool		unknown;		/* a commit without an answer, since the last
								 * one */
	int			count;			/* of commits, in ascending order of versions */
	HistCommit	commits[HIST_COMMITS];
} Slot;

static Slot *slots;
static int	slot_count;
static _Atomic int64_t next_version = 1;
static _Atomic int64_t next_key = 1;
static _Atomic uint8_t *fates;
static _Atomic int recent[RECENT];
static _Atomic unsigned recent_next;

void
hist_model_init(int count)
{
	slot_count = count;
	slots = calloc(count, sizeof(Slot));
	fates = calloc(MOST_VERSIONS, 1);
	if (slots == NULL || fates == NULL)
		abort();
	for (int i = 0; i < count; i++)
		pthread_mutex_init(&slots[i].mutex, NULL);
}

HistWrite
hist_model_begin(int number, bool create)
{
	Slot	   *slot = &slots[number];
	HistWrite	write = {.slot = number};

	pthread_mutex_lock(&slot->mutex);
	write.key = create || slot->key == 0 ? atomic_fetch_add(&next_key, 1) : slot->key;
	write.version = atomic_fetch_add(&next_version, 1);
	slot->under_way++;
	pthread_mutex_unlock(&slot->mutex);
	if (write.version >= MOST_VERSIONS)
		abort();
	return write;
}

void
hist_model_commits(const HistWrite *write)
{
	atomic_store(&fates[write->version], HIST_FATE_TRIED);
}

/* The commits stay in order; the least one gives way. */
static void
remember(Slot *slot, const HistCommit *commit)
{
	int			place;

	if (slot->count == HIST_COMMITS)
	{
		if (commit->version < slot->commits[0].version)
			return;
		memmove(slot->commits, slot->commits + 1,
				sizeof(HistCommit) * (HIST_COMMITS - 1));
		slot->count--;
	}
	for (place = slot->count; place > 0; place--)
	{
		if (slot->commits[place - 1].version < commit->version)
			break;
		slot->commits[place] = slot->commits[place - 1];
	}
	slot->commits[place] = *commit;
	slot->count++;
}

static void
acknowledge(Slot *slot, const HistWrite *write, const HistCommit *commit,
			uint64_t claim)
{
	bool		greatest;

	if (write->key > slot->key)
	{
		slot->key = write->key;
		slot->created_at = hist_now();
		slot->seen = 0;
		slot->count = 0;
	}
	greatest = slot->count == 0 ||
		commit->version >= slot->commits[slot->count - 1].version;
	remember(slot, commit);
	if (greatest)
	{
		slot->claim = claim;
		slot->unknown = false;
		slot->acked_at = hist_now();
	}
}

void
hist_model_end(const HistWrite *write, bool unknown, const HistCommit *commit,
			   uint64_t claim)
{
	Slot	   *slot = &slots[write->slot];

	if (commit != NULL || unknown)
		atomic_store(&fates[write->version], commit ? HIST_FATE_ACKED : HIST_FATE_UNKNOWN);
	pthread_mutex_lock(&slot->mutex);
	slot->under_way--;
	if (unknown && write->key == slot->key)
		slot->unknown = true;
	if (commit != NULL && write->key >= slot->key)
	{
		acknowledge(slot, write, commit, claim);
		recent[atomic_fetch_add(&recent_next, 1) % RECENT] = write->slot;
	}
	pthread_mutex_unlock(&slot->mutex);
}

void
hist_model_demand(int number, HistDemand *demand)
{
	Slot	   *slot = &slots[number];

	pthread_mutex_lock(&slot->mutex);
	demand->slot = number;
	demand->key = slot->key;
	demand->acked_at = slot->acked_at;
	demand->created_at = slot->created_at;
	demand->seen = slot->seen;
	demand->claim = slot->claim;
	demand->settled = slot->under_way == 0 && !slot->unknown;
	demand->count = slot->count;
	for (int i = 0; i < slot->count; i++)
		demand->versions[i] = slot->commits[i].version;
	if (slot->count > 0)
		demand->commit = slot->commits[slot->count - 1];
	else
		memset(&demand->commit, 0, sizeof(demand->commit));
	pthread_mutex_unlock(&slot->mutex);
}

void
hist_model_saw(const HistDemand *demand, int64_t version)
{
	Slot	   *slot = &slots[demand->slot];

	if (version <= demand->seen)
		return;
	pthread_mutex_lock(&slot->mutex);
	if (slot->key == demand->key && version > slot->seen)
		slot->seen = version;
	pthread_mutex_unlock(&slot->mutex);
}

/* Mostly one of the last two that were written. */
int
hist_model_pick(uint64_t random)
{
	unsigned	last = atomic_load(&recent_next);
	unsigned	back = 1 + (random >> 8) % (random & 3 ? 2 : RECENT);

	if (last < RECENT || random % 11 == 0)
		return (int) ((random >> 8) % slot_count);
	return recent[(last - back) % RECENT];
}

HistFate
hist_model_fate(int64_t version)
{
	if (version <= 0 || version >= MOST_VERSIONS)
		return HIST_FATE_NONE;
	return (HistFate) atomic_load(&fates[version]);
}

int64_t
hist_model_last_version(void)
{
	return atomic_load(&next_version) - 1;
}

bool
hist_model_lacks(int64_t version)
{
	return hist_model_fate(version) >= HIST_FATE_GONE;
}

/* --- what a failover lost ---------------------------------------------------- */

/* What becomes of a commit that the primary has, and of one that it lacks. */
static const HistFate found[] = {
	[HIST_FATE_NONE] = HIST_FATE_NONE,
	[HIST_FATE_TRIED] = HIST_FATE_TRIED,
	[HIST_FATE_UNKNOWN] = HIST_FATE_UNKNOWN,
	[HIST_FATE_ACKED] = HIST_FATE_ACKED,
	[HIST_FATE_GONE] = HIST_FATE_UNKNOWN,
	[HIST_FATE_LOST] = HIST_FATE_ACKED
};
static const HistFate missing[] = {
	[HIST_FATE_NONE] = HIST_FATE_NONE,
	[HIST_FATE_TRIED] = HIST_FATE_TRIED,
	[HIST_FATE_UNKNOWN] = HIST_FATE_GONE,
	[HIST_FATE_ACKED] = HIST_FATE_LOST,
	[HIST_FATE_GONE] = HIST_FATE_GONE,
	[HIST_FATE_LOST] = HIST_FATE_LOST
};

/* Marks in `there` the versions that the primary has. */
static bool
ask_primary(HistConn *primary, bool *there, int64_t limit)
{
	for (int64_t from = 1; from <= limit; from += LOG_CHUNK)
	{
		char		sql[128];
		HistCall	call = hist_call_text(sql);
		PGresult   *result;
		bool		ok;

		snprintf(sql, sizeof(sql), "SELECT version FROM history_log WHERE version"
				 " BETWEEN %lld AND %lld", (long long) from,
				 (long long) (from + LOG_CHUNK - 1));
		if (!hist_conn_run(primary, &call, 1, &result))
			return false;
		ok = hist_result_ok(result);
		for (int i = 0; ok && i < PQntuples(result); i++)
		{
			int64_t		version = atoll(PQgetvalue(result, i, 0));

			if (version <= limit)
				there[version] = true;
		}
		PQclear(result);
		if (!ok)
			return false;
	}
	return true;
}

static void
forget_lost(Slot *slot)
{
	int			kept = 0;

	pthread_mutex_lock(&slot->mutex);
	for (int i = 0; i < slot->count; i++)
	{
		if (!hist_model_lacks(slot->commits[i].version))
			slot->commits[kept++] = slot->commits[i];
	}
	slot->count = kept;
	if (hist_model_lacks(slot->seen))
		slot->seen = 0;
	pthread_mutex_unlock(&slot->mutex);
}

/*
 * Judged is what was known before the log was looked at: what was acknowledged
 * meanwhile may be there by now.
 */
int64_t
hist_model_survivors(HistConn *primary)
{
	int64_t		limit = hist_model_last_version();
	uint8_t    *fate = malloc(limit + 1);
	bool	   *there = calloc(limit + 1, sizeof(bool));
	int64_t		lost = 0;
	bool		asked;

	if (fate == NULL || there == NULL)
		abort();
	for (int64_t version = 1; version <= limit; version++)
		fate[version] = atomic_load(&fates[version]);
	asked = ask_primary(primary, there, limit);
	for (int64_t version = 1; asked && version <= limit; version++)
	{
		HistFate	now = (there[version] ? found : missing)[fate[version]];

		if (now != (HistFate) fate[version])
			atomic_store(&fates[version], (uint8_t) now);
		lost += now == HIST_FATE_LOST;
	}
	free(fate);
	free(there);
	for (int i = 0; asked && i < slot_count; i++)
		forget_lost(&slots[i]);
	return asked ? lost : -1;
}
