/*
 * hist_judge.c
 *	  Judges decisions and reads.
 */
#include "hist_judge.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "hist.h"
#include "hist_control.h"
#include "hist_count.h"
#include "hist_watch.h"

#define EVENTS 8192
#define FRESH INT64_C(200000)

/* A fault may delay the answer that everybody is there. */
#define QUIET INT64_C(15000000)

typedef struct Event
{
	HistViolation kind;
	int64_t		high;			/* HIST_MONOTONIC: what had been read */
	HistRead	read;
} Event;

const char *const hist_violation_names[] = {
	[HIST_STALE] = "stale",
	[HIST_LOST_PIN] = "lost_pin",
	[HIST_MONOTONIC] = "monotonic",
	[HIST_DIVERGENT] = "divergent",
	[HIST_FALSE_PIN] = "false_pin"
};

static Event events[EVENTS];
static int	event_count;
static pthread_mutex_t events_mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int64_t raw[HIST_VIOLATION_KINDS];

static void
violation(HistViolation kind, const HistRead *read, int64_t high)
{
	atomic_fetch_add(&raw[kind], 1);
	pthread_mutex_lock(&events_mutex);
	if (event_count < EVENTS)
	{
		Event	   *event = &events[event_count++];

		event->kind = kind;
		event->high = high;
		event->read = *read;
	}
	else
		hist_count(HIST_events_dropped);
	pthread_mutex_unlock(&events_mutex);
}

/* --- decisions ----------------------------------------------------------------- */

/* No write of the key is under way, nor was one since the read's demand. */
static bool
nobody_writes(const HistRead *read)
{
	HistDemand	now;

	hist_model_demand(read->demand.slot, &now);
	return read->demand.settled && now.settled && now.key == read->demand.key &&
		now.commit.version == read->demand.commit.version &&
		now.seen <= now.commit.version;
}

/*
 * Everybody was there three sample intervals before the question, and no write
 * is under way.  After a restart of the primary a key counts as written then,
 * which is what it says it requires.  is_pinned() asks for the spare ones too.
 */
static bool
all_were_there(const HistRead *read)
{
	uint64_t	lsn = read->demand.commit.lsn;
	int64_t		when = read->asked_at - 3 * hist_options.interval;

	if (lsn == 0 || !nobody_writes(read))
		return false;
	if (hist_primary_broke_at() >= read->demand.acked_at && read->required[0] != '\0')
		lsn = strtoull(read->required + 26, NULL, 16);
	for (int i = 0; i < hist_options.replica_count; i++)
	{
		bool		counts = !hist_options.replicas[i].spare || !read->route;

		if (counts && !hist_watch_was_there(i, lsn, when))
			return false;
	}
	return true;
}

void
hist_judge_token(const HistRead *read, bool served)
{
	hist_count(HIST_decisions);
	hist_count(served ? HIST_decisions_replica : HIST_decisions_primary);
	if (served)
		hist_count_of(read->replica, HIST_REPLICA_named);
}

void
hist_judge_false_pin(const HistRead *read)
{
	hist_count(HIST_false_pins);
	if (read->asked_at - hist_control_last_mark() > QUIET)
		violation(HIST_FALSE_PIN, read, 0);
}

bool
hist_judge_decision(const HistRead *read)
{
	bool		unsampled = strcmp(read->reason, "samples_stale") == 0 ||
		strcmp(read->reason, "no_replicas") == 0;

	hist_count(HIST_decisions);
	hist_count(read->named ? HIST_decisions_replica : HIST_decisions_primary);
	if (read->reason[0] != '\0')
		hist_count_reason(read->reason);
	for (int i = 0; i < hist_options.replica_count; i++)
	{
		if (read->named & 1u << i)
			hist_count_of(i, HIST_REPLICA_named);
	}
	if (unsampled)
		hist_count(HIST_unsampled);
	if (unsampled || !all_were_there(read))
		return false;
	hist_count(HIST_passed);
	return read->named == 0 &&
		hist_watch_was_steady(read->asked_at - 3 * hist_options.interval, hist_options.interval / 4);
}

void
hist_judge_refusal(const HistRead *read, int replica, uint64_t lsn)
{
	if (lsn == 0 || lsn >= read->demand.commit.lsn)
		return;
	hist_count(HIST_refusals_short);
	hist_count_of(replica, HIST_REPLICA_short_refused);
}

/*
 * The sample must cover what is required, and the replica must really have been
 * there: in one life it is never short of what it said before.
 */
void
hist_judge_sample(const HistRead *read, int replica, uint64_t sample, uint64_t lsn)
{
	HistRead	audited = *read;

	hist_count(HIST_audits);
	audited.replica = replica;
	audited.lsn = lsn != 0 ? lsn : sample;
	audited.sent_at = hist_now();
	if (sample < read->demand.commit.lsn || (lsn != 0 && lsn < sample))
		violation(HIST_LOST_PIN, &audited, 0);
}

/* --- reads --------------------------------------------------------------------- */

static void
judge_replica_read(const HistRead *read, bool stale)
{
	uint64_t	needed = read->demand.commit.lsn;
	int64_t		crossing = hist_watch_crossing(read->replica, needed);

	hist_count(HIST_reads_replica);
	hist_count_of(read->replica, HIST_REPLICA_reads);
	if (crossing > 0 && read->sent_at - crossing <= INT64_C(1000) * hist_options.near_ms)
	{
		hist_count(HIST_near);
		hist_count_of(read->replica, HIST_REPLICA_near);
	}
	if (read->asked_at - read->demand.created_at <= FRESH)
	{
		hist_count_of(read->replica, HIST_REPLICA_fresh);
		if (stale)
			hist_count_of(read->replica, HIST_REPLICA_fresh_stale);
	}
	if (stale)
		hist_count_of(read->replica, HIST_REPLICA_stale);
}

/*
 * What somebody saw before its COMMIT was answered binds decisions about the key
 * as well.  The primary may hide it still, while the commit waits for a standby.
 */
static bool
binds_what_was_seen(const HistRead *read)
{
	return read->replica != HIST_PRIMARY && read->named != 0;
}

void
hist_judge_read(const HistRead *read)
{
	const HistDemand *demand = &read->demand;
	int64_t		needed = demand->commit.version;
	bool		stale;

	if (binds_what_was_seen(read) && demand->seen > needed)
		needed = demand->seen;
	stale = read->version < needed;

	hist_count(HIST_reads);
	if (read->version > demand->commit.version)
		hist_count(HIST_ahead);
	if (read->replica == HIST_PRIMARY)
		hist_count(HIST_reads_primary);
	else
	{
		judge_replica_read(read, stale);
		if (read->lsn != 0 && read->lsn < demand->commit.lsn)
			violation(HIST_LOST_PIN, read, 0);
	}
	if (stale)
		violation(HIST_STALE, read, 0);
	if (hist_model_lacks(read->version) && read->asked_at > hist_control_failover_at())
		violation(HIST_DIVERGENT, read, 0);
	hist_model_saw(demand, read->version);
}

/*
 * With synchronous replication a replica shows what the primary does not show
 * yet.
 */
void
hist_judge_monotonic(const HistRead *read, int64_t high, bool high_on_replica)
{
	if (high == 0)
		return;
	hist_count(HIST_hops);
	if (read->version >= high)
		return;
	if (read->replica == HIST_PRIMARY && high_on_replica)
	{
		hist_count(HIST_back_on_primary);
		if (hist_options.synchronous)
			return;
	}
	violation(HIST_MONOTONIC, read, high);
}

/* --- what stands at the end ------------------------------------------------------ */

static int64_t
surviving_demand(const HistRead *read)
{
	const HistDemand *demand = &read->demand;
	int64_t		needed = 0;

	for (int i = 0; i < demand->count; i++)
	{
		if (!hist_model_lacks(demand->versions[i]))
			needed = demand->versions[i];
	}
	/* older ones are not remembered, and one of them may have survived */
	if (needed == 0 && demand->count == HIST_COMMITS)
		needed = demand->versions[0];
	if (binds_what_was_seen(read) && demand->seen > needed &&
		!hist_model_lacks(demand->seen))
		needed = demand->seen;
	return needed;
}

static bool
stands(const Event *event)
{
	const HistRead *read = &event->read;

	switch (event->kind)
	{
		case HIST_STALE:
			return read->version < surviving_demand(read);
		case HIST_LOST_PIN:
			return !hist_model_lacks(read->demand.commit.version);
		case HIST_MONOTONIC:
			return !hist_model_lacks(event->high);
		case HIST_DIVERGENT:
			return hist_model_lacks(read->version);
		default:
			return true;
	}
}

int64_t
hist_judge_raw(HistViolation kind)
{
	return atomic_load(&raw[kind]);
}

/* What was not kept is not taken back. */
int64_t
hist_judge_final(HistViolation kind)
{
	int64_t		standing = hist_judge_raw(kind);

	for (int i = 0; i < event_count; i++)
		standing -= events[i].kind == kind && !stands(&events[i]);
	return standing;
}

void
hist_judge_show(FILE *file, int count)
{
	for (int i = 0; i < event_count && count > 0; i++)
	{
		const HistRead *read = &events[i].read;

		if (!stands(&events[i]))
			continue;
		count--;
		fprintf(file, "%s at %.3f s on %s: item:%lld, read version %lld at %llX;"
				" acknowledged %lld (%s) %.1f ms before, seen %lld, read before %lld;"
				" named %x, %s, required %s, asked for %lld us, read %lld us later\n",
				hist_violation_names[events[i].kind],
				(double) (read->asked_at - hist_began_at()) / 1e6,
				read->replica == HIST_PRIMARY ? "primary" : hist_options.replicas[read->replica].name,
				(long long) read->demand.key, (long long) read->version,
				(unsigned long long) read->lsn,
				(long long) read->demand.commit.version, read->demand.commit.token,
				(double) (read->asked_at - read->demand.acked_at) / 1e3,
				(long long) read->demand.seen, (long long) events[i].high,
				read->named, read->reason, read->required,
				(long long) (read->answered_at - read->asked_at),
				(long long) (read->sent_at - read->answered_at));
	}
}
