/*
 * history.c
 *	  The history checker: writers and readers of real clusters, and whether any
 *	  read missed what was acknowledged before its decision was asked.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hist.h"
#include "hist_count.h"
#include "hist_model.h"
#include "hist_report.h"
#include "hist_sql.h"
#include "hist_watch.h"

#define MAX_THREADS 256
#define SETUP_PATIENCE INT64_C(60000000)
#define PRIMARIES 64

static _Atomic bool stopping;
static int64_t began_at;
static _Atomic int64_t broke_at;

static pthread_mutex_t primary_mutex = PTHREAD_MUTEX_INITIALIZER;
static char *primaries[PRIMARIES];
static _Atomic unsigned primary_count;

/* --- what every thread asks ------------------------------------------------------ */

bool
hist_stopping(void)
{
	return atomic_load_explicit(&stopping, memory_order_relaxed);
}

void
hist_stop(void)
{
	atomic_store(&stopping, true);
}

int64_t
hist_began_at(void)
{
	return began_at;
}

/* When connections are old enough. */
bool
hist_warm(void)
{
	return hist_now() - began_at > hist_options.lifetime + 500000;
}

/* splitmix64 */
uint64_t
hist_random(uint64_t *state)
{
	uint64_t	z = *state += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

void
hist_thread(pthread_t *thread, void *(*run) (void *), void *argument)
{
	if (pthread_create(thread, NULL, run, argument) != 0)
	{
		perror("history: no thread");
		exit(2);
	}
}

/* None is ever freed: a connection may be opening by it. */
void
hist_primary_set(const char *conninfo)
{
	unsigned	number = atomic_load(&primary_count);

	pthread_mutex_lock(&primary_mutex);
	primaries[number % PRIMARIES] = strdup(conninfo);
	atomic_store(&primary_count, number + 1);
	pthread_mutex_unlock(&primary_mutex);
}

const char *
hist_primary(unsigned *number)
{
	const char *conninfo;
	unsigned	count;

	pthread_mutex_lock(&primary_mutex);
	count = atomic_load(&primary_count);
	conninfo = count > 0 ? primaries[(count - 1) % PRIMARIES] : NULL;
	pthread_mutex_unlock(&primary_mutex);
	if (number != NULL)
		*number = count;
	return conninfo;
}

void
hist_primary_follow(HistConn *conn, unsigned *number)
{
	if (atomic_load(&primary_count) != *number)
		hist_conn_retarget(conn, hist_primary(number));
}

void
hist_primary_broke(void)
{
	atomic_store(&broke_at, hist_now());
}

int64_t
hist_primary_broke_at(void)
{
	return atomic_load(&broke_at);
}

/* --- before and after ------------------------------------------------------------- */

static void
die(const char *what, const char *why)
{
	fprintf(stderr, "history: %s: %s\n", what, why);
	exit(2);
}

/* Runs a statement that must succeed; its value, to be freed. */
static char *
must(HistConn *conn, const char *sql)
{
	HistCall	call = hist_call_text(sql);
	PGresult   *result;
	char	   *value;

	if (!hist_conn_wait(conn, SETUP_PATIENCE) || !hist_conn_run(conn, &call, 1, &result))
		die(sql, "no answer");
	if (!hist_result_ok(result))
		die(sql, PQresultErrorMessage(result));
	value = strdup(hist_result_text(result, 0));
	PQclear(result);
	return value;
}

/* Polls until a server answers 't'. */
static void
wait_until(HistConn *conn, const char *sql)
{
	int64_t		give_up = hist_now() + SETUP_PATIENCE;
	bool		yes = false;

	while (!yes)
	{
		HistCall	call = hist_call_text(sql);
		PGresult   *result;

		if (hist_now() > give_up)
			die("waited in vain for", sql);
		if (hist_conn_wait(conn, 100000) && hist_conn_run(conn, &call, 1, &result))
		{
			yes = strcmp(hist_result_text(result, 0), "t") == 0;
			PQclear(result);
		}
		hist_pause(10000);
	}
}

static void
wait_for_replay(const char *conninfo, const char *lsn)
{
	char		sql[128];
	HistConn	conn;

	snprintf(sql, sizeof(sql), "SELECT pg_last_wal_replay_lsn() >= '%s'", lsn);
	hist_conn_init(&conn, conninfo, false);
	wait_until(&conn, sql);
	hist_conn_close(&conn);
}

/* The last replica replays two seconds late, or no longer. */
static void
delay_last(bool late)
{
	HistConn	conn;

	hist_conn_init(&conn, hist_options.replicas[hist_options.replica_count - 1].conninfo, false);
	free(must(&conn, late ? "ALTER SYSTEM SET recovery_min_apply_delay = '2s'" :
			  "ALTER SYSTEM RESET recovery_min_apply_delay"));
	free(must(&conn, "SELECT pg_reload_conf()"));
	wait_until(&conn, late ? "SELECT current_setting('recovery_min_apply_delay') = '2s'" :
			   "SELECT current_setting('recovery_min_apply_delay') <> '2s'");
	hist_conn_close(&conn);
}

static void
prepare(void)
{
	HistConn	primary;
	char	   *interval,
			   *standbys,
			   *end;

	hist_conn_init(&primary, hist_primary(NULL), false);
	for (int i = 0; hist_sql_schema[i] != NULL; i++)
		free(must(&primary, hist_sql_schema[i]));
	interval = must(&primary, "SELECT (extract(epoch FROM current_setting("
					"'replica_pin.sample_interval')::interval) * 1000000)::bigint");
	standbys = must(&primary, "SHOW synchronous_standby_names");
	end = must(&primary, "SELECT pg_current_wal_flush_lsn()");
	hist_options.interval = atoll(interval);
	hist_options.synchronous = standbys[0] != '\0';
	for (int i = 0; i < hist_options.replica_count; i++)
	{
		if (!hist_options.replicas[i].spare)
			wait_for_replay(hist_options.replicas[i].conninfo, end);
	}
	wait_until(&primary, "SELECT bool_and(eligible) FROM replica_pin.replicas"
			   " WHERE state <> 'self'");
	if (hist_options.mode->where == HIST_DELAYED)
		delay_last(true);
	hist_conn_close(&primary);
	free(interval);
	free(standbys);
	free(end);
}

static int64_t
ask_for_lost(void)
{
	HistConn	conn;
	int64_t		lost = -1;

	hist_conn_init(&conn, hist_primary(NULL), true);
	if (hist_conn_wait(&conn, SETUP_PATIENCE))
		lost = hist_model_survivors(&conn);
	hist_conn_close(&conn);
	return lost;
}

/* Until the time is over and enough was seen, or somebody says stop. */
static void
watch_the_clock(void)
{
	int64_t		end = began_at + INT64_C(1000000) * hist_options.seconds;
	int64_t		give_up = end + INT64_C(1000000) * hist_options.patience;
	int64_t		next = began_at + 1000000;

	while (!hist_stopping() && (hist_now() < end ||
								(hist_now() < give_up && !hist_report_enough())))
	{
		hist_pause(20000);
		if (!hist_options.verbose || hist_now() < next)
			continue;
		next += 1000000;
		printf("%6.1f s: %lld commits, %lld decisions, %lld reads on replicas, %lld elsewhere\n",
			   (double) (hist_now() - began_at) / 1e6,
			   (long long) hist_counted(HIST_commits),
			   (long long) hist_counted(HIST_decisions),
			   (long long) hist_counted(HIST_reads_replica),
			   (long long) hist_counted(HIST_reads_primary));
		fflush(stdout);
	}
	hist_stop();
}

static void
interrupted(int number)
{
	(void) number;
	hist_stop();
}

int
main(int argc, char **argv)
{
	pthread_t	threads[MAX_THREADS];
	int			count = 0;
	int64_t		lost;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, interrupted);
	signal(SIGTERM, interrupted);
	hist_options_read(argc, argv);
	if (hist_options.writers + hist_options.readers >= MAX_THREADS)
		die("too many", "readers and writers");
	hist_model_init(hist_options.keys);
	prepare();

	began_at = hist_now();
	hist_watch_start();
	for (int i = 0; i < hist_options.writers; i++)
		hist_thread(&threads[count++], hist_writer_main, (void *) (intptr_t) i);
	for (int i = 0; i < hist_options.readers; i++)
		hist_thread(&threads[count++], hist_reader_main, (void *) (intptr_t) i);
	if (hist_options.control != NULL)
		hist_thread(&threads[count++], hist_control_main, NULL);
	watch_the_clock();
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	hist_watch_join();

	lost = ask_for_lost();
	if (hist_options.mode->where == HIST_DELAYED)
		delay_last(false);
	return hist_report(lost) ? 0 : 1;
}
