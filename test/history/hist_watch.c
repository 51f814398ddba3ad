/*
 * hist_watch.c
 *	  Where every replica is.
 */
#include "hist_watch.h"

#include <pthread.h>
#include <stdlib.h>

#include "hist.h"
#include "hist_conn.h"
#include "hist_sql.h"

#define RING 8192				/* some seconds */
#define PERIOD 1000

typedef struct Observation
{
	int64_t		asked;
	int64_t		answered;
	uint64_t	lsn;
} Observation;

typedef struct Watch
{
	pthread_t	thread;
	pthread_mutex_t mutex;
	const char *conninfo;
	uint64_t	count;			/* observation n is at n mod RING */
	Observation ring[RING];
} Watch;

static Watch watches[HIST_MAX_REPLICAS];

static void
observe(Watch *watch, const Observation *observation)
{
	pthread_mutex_lock(&watch->mutex);
	if (observation == NULL)
		watch->count = 0;
	else
		watch->ring[watch->count++ % RING] = *observation;
	pthread_mutex_unlock(&watch->mutex);
}

/* False: the life is over, or this is no replica. */
static bool
look(HistConn *conn, Observation *observation)
{
	HistCall	call = hist_call(HIST_SQL_POSITION, NULL, NULL);
	PGresult   *result;

	observation->asked = hist_now();
	if (!hist_conn_run(conn, &call, 1, &result))
		return false;
	observation->answered = hist_now();
	observation->lsn = strtoull(hist_result_text(result, 0), NULL, 10);
	PQclear(result);
	return observation->lsn != 0;
}

static void *
watch_main(void *argument)
{
	Watch	   *watch = argument;
	HistConn	conn;
	Observation observation;

	hist_conn_init(&conn, watch->conninfo, true);
	while (!hist_stopping())
	{
		if (!hist_conn_wait(&conn, 100000))
			continue;
		if (look(&conn, &observation))
			observe(watch, &observation);
		else
			observe(watch, NULL);
		hist_pause(PERIOD);
	}
	hist_conn_close(&conn);
	return NULL;
}

void
hist_watch_start(void)
{
	for (int i = 0; i < hist_options.replica_count; i++)
	{
		Watch	   *watch = &watches[i];

		watch->conninfo = hist_options.replicas[i].conninfo;
		pthread_mutex_init(&watch->mutex, NULL);
		hist_thread(&watch->thread, watch_main, watch);
	}
}

void
hist_watch_join(void)
{
	for (int i = 0; i < hist_options.replica_count; i++)
		pthread_join(watches[i].thread, NULL);
}

/* --- looking back -------------------------------------------------------------- */

static const Observation *
at(const Watch *watch, uint64_t number)
{
	return &watch->ring[number % RING];
}

static uint64_t
oldest(const Watch *watch)
{
	return watch->count > RING ? watch->count - RING : 0;
}

/*
 * The first observation that is there, or the count.  Positions are in ascending
 * order, as moments are.
 */
static uint64_t
first_there(const Watch *watch, uint64_t lsn)
{
	uint64_t	low = oldest(watch),
				high = watch->count;

	while (low < high)
	{
		uint64_t	middle = low + (high - low) / 2;

		if (at(watch, middle)->lsn >= lsn)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

bool
hist_watch_was_there(int replica, uint64_t lsn, int64_t when)
{
	Watch	   *watch = &watches[replica];
	uint64_t	there;
	bool		proven;

	pthread_mutex_lock(&watch->mutex);
	there = first_there(watch, lsn);
	proven = there < watch->count && at(watch, there)->answered <= when;
	pthread_mutex_unlock(&watch->mutex);
	return proven;
}

static bool
was_steady(Watch *watch, int64_t when, int64_t longest)
{
	int64_t		next = hist_now();
	bool		steady = true;

	pthread_mutex_lock(&watch->mutex);
	for (uint64_t number = watch->count; steady && next > when && number > oldest(watch); number--)
	{
		const Observation *observation = at(watch, number - 1);

		steady = next - observation->answered <= longest &&
			observation->answered - observation->asked <= longest;
		next = observation->asked;
	}
	pthread_mutex_unlock(&watch->mutex);
	return steady;
}

bool
hist_watch_was_steady(int64_t when, int64_t longest)
{
	for (int i = 0; i < hist_options.replica_count; i++)
	{
		if (!hist_options.replicas[i].spare && !was_steady(&watches[i], when, longest))
			return false;
	}
	return true;
}

int64_t
hist_watch_crossing(int replica, uint64_t lsn)
{
	Watch	   *watch = &watches[replica];
	uint64_t	there;
	int64_t		when = 0;

	pthread_mutex_lock(&watch->mutex);
	there = first_there(watch, lsn);
	if (there > oldest(watch))
		when = at(watch, there - 1)->asked;
	pthread_mutex_unlock(&watch->mutex);
	return when;
}
