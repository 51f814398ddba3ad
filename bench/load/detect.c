/*-------------------------------------------------------------------------
 *
 * detect.c
 *	  How soon after replay a key is free, by several ways of knowing.
 *
 *	detect seconds pause_ms primary replica...
 *
 * Event after event: one commit under the key; then rounds of questions to
 * everybody, sent together, until every replica has replayed the commit and each
 * way knows it.  With a pause, replay is paused before the commit and resumed so
 * much later: that is the lag then.
 *
 * Meanwhile a second thread polls the replicas' positions every 100 ms, 1 s,
 * 5 s and 10 s, as tools do; what such a tool would have known is seen from its
 * own readings afterwards.
 *
 * Prints a line an event, in milliseconds: from the commit to replay on the last
 * replica; from there until the key is free, until pg_stat_replication shows it,
 * until each poll knows it (-1: not in this run).
 *
 *-------------------------------------------------------------------------
 */
#include <libpq-fe.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_REPLICAS 8
#define POLLS 4
#define MAX_READINGS 100000
#define MAX_EVENTS 100000

/* Between two rounds of questions, in microseconds. */
#define PAUSE 200

typedef struct Reading
{
	double		time;
	uint64_t	lsn;			/* of the replica that is furthest behind */
} Reading;

typedef struct Poll
{
	double		period;
	int			count;
	Reading		reading[MAX_READINGS];
} Poll;

typedef struct Event
{
	uint64_t	lsn;
	double		commit;
	double		replayed;
	double		free;
	double		shown;			/* in pg_stat_replication */
} Event;

/* A question that is asked again and again. */
typedef struct Watch
{
	PGconn	   *connection;
	bool		is_position;	/* the answer is an LSN, else a boolean */
	double		since;			/* when it held first; 0: not yet */
} Watch;

static Poll poll_of[POLLS] = {{.period = 0.1}, {.period = 1}, {.period = 5}, {.period = 10}};
static Event event[MAX_EVENTS];
static const char *primary_dsn;
static const char *replica_dsn[MAX_REPLICAS];
static int	replicas = 0;
static volatile bool over = false;

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

static void
die(const char *what, const char *detail)
{
	fprintf(stderr, "detect: %s: %s\n", what, detail);
	exit(1);
}

static PGconn *
open_connection(const char *dsn)
{
	PGconn	   *connection = PQconnectdb(dsn);

	if (PQstatus(connection) != CONNECTION_OK)
		die("connect", PQerrorMessage(connection));
	return connection;
}

static uint64_t
parse_lsn(const char *text)
{
	unsigned int high = 0;
	unsigned int low = 0;

	if (sscanf(text, "%X/%X", &high, &low) != 2)
		die("not a position", text);
	return (uint64_t) high << 32 | low;
}

static void
run(PGconn *connection, const char *sql)
{
	PGresult   *result = PQexec(connection, sql);
	ExecStatusType status = PQresultStatus(result);

	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
		die(sql, PQerrorMessage(connection));
	PQclear(result);
}

/* The position of the commit that was just answered: pushed with it. */
static uint64_t
committed(PGconn *connection)
{
	const char *token = PQparameterStatus(connection, "replica_pin.commit_token");

	if (token == NULL || strlen(token) != 42)
		die("token", "none was pushed");
	return strtoull(token + 26, NULL, 16);
}

/* --- the tools that poll ------------------------------------------------ */

static uint64_t
least_position(PGconn **connection)
{
	uint64_t	least = UINT64_MAX;

	for (int i = 0; i < replicas; i++)
	{
		PGresult   *result = PQexec(connection[i],
									"SELECT pg_last_wal_replay_lsn()");
		uint64_t	lsn;

		if (PQresultStatus(result) != PGRES_TUPLES_OK)
			die("poll", PQerrorMessage(connection[i]));
		lsn = parse_lsn(PQgetvalue(result, 0, 0));
		if (lsn < least)
			least = lsn;
		PQclear(result);
	}
	return least;
}

/* Each begins somewhere in its first period. */
static void *
poll_replicas(void *argument)
{
	PGconn	   *connection[MAX_REPLICAS];
	double		due[POLLS];

	(void) argument;
	for (int i = 0; i < replicas; i++)
		connection[i] = open_connection(replica_dsn[i]);
	for (int i = 0; i < POLLS; i++)
		due[i] = now() + poll_of[i].period * (double) rand() / RAND_MAX;
	while (!over)
	{
		for (int i = 0; i < POLLS; i++)
		{
			Poll	   *p = &poll_of[i];

			if (now() < due[i] || p->count == MAX_READINGS)
				continue;
			p->reading[p->count].lsn = least_position(connection);
			p->reading[p->count++].time = now();
			due[i] += p->period;
		}
		usleep(1000);
	}
	return NULL;
}

static double
known_by_poll(const Poll *p, const Event *e)
{
	for (int i = 0; i < p->count; i++)
		if (p->reading[i].time >= e->replayed && p->reading[i].lsn >= e->lsn)
			return p->reading[i].time;
	return -1;
}

/* --- one event ---------------------------------------------------------- */

/* Sends every question that is still open, and takes the answers as they come. */
static void
ask_all(Watch *watch, int count, uint64_t lsn)
{
	struct pollfd fd[MAX_REPLICAS + 2];
	bool		asked[MAX_REPLICAS + 2] = {false};
	int			open = 0;

	for (int i = 0; i < count; i++)
	{
		fd[i].fd = -1;
		fd[i].events = POLLIN;
		if (watch[i].since > 0)
			continue;
		if (!PQsendQueryPrepared(watch[i].connection, "q", 0, NULL, NULL, NULL, 0))
			die("ask", PQerrorMessage(watch[i].connection));
		fd[i].fd = PQsocket(watch[i].connection);
		asked[i] = true;
		open++;
	}
	while (open > 0)
	{
		(void) poll(fd, (nfds_t) count, 1000);
		for (int i = 0; i < count; i++)
		{
			PGresult   *result;

			if (!asked[i] || !(fd[i].revents & (POLLIN | POLLHUP)))
				continue;
			if (!PQconsumeInput(watch[i].connection))
				die("answer", PQerrorMessage(watch[i].connection));
			if (PQisBusy(watch[i].connection))
				continue;
			result = PQgetResult(watch[i].connection);
			if (PQresultStatus(result) != PGRES_TUPLES_OK)
				die("answer", PQerrorMessage(watch[i].connection));
			if (watch[i].is_position
				? parse_lsn(PQgetvalue(result, 0, 0)) >= lsn
				: PQgetvalue(result, 0, 0)[0] == 't')
				watch[i].since = now();
			PQclear(result);
			while ((result = PQgetResult(watch[i].connection)) != NULL)
				PQclear(result);
			fd[i].fd = -1;
			asked[i] = false;
			open--;
		}
	}
}

static void
prepare_watch(Watch *watch, const char *dsn, const char *statement,
			  bool is_position)
{
	PGresult   *result;

	watch->connection = open_connection(dsn);
	watch->is_position = is_position;
	result = PQprepare(watch->connection, "q", statement, 0, NULL);
	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		die("prepare", PQerrorMessage(watch->connection));
	PQclear(result);
}

static void
pause_replay(Watch *watch)
{
	for (int i = 0; i < replicas; i++)
		run(watch[i].connection, "SELECT pg_wal_replay_pause()");
	for (int i = 0; i < replicas; i++)
		for (bool paused = false; !paused;)
		{
			PGresult   *result = PQexec(watch[i].connection,
										"SELECT pg_get_wal_replay_pause_state()");

			paused = strcmp(PQgetvalue(result, 0, 0), "paused") == 0;
			PQclear(result);
			usleep(1000);
		}
}

/* The watches: the replicas, then the key, then the view. */
static void
one_event(PGconn *writer, Watch *watch, int pause, Event *e)
{
	int			count = replicas + 2;

	if (pause > 0)
		pause_replay(watch);
	for (int i = 0; i < count; i++)
		watch[i].since = 0;
	run(writer, "INSERT INTO bench_event VALUES (1)");
	e->commit = now();
	e->lsn = committed(writer);
	if (pause > 0)
	{
		usleep((useconds_t) pause * 1000);
		for (int i = 0; i < replicas; i++)
			run(watch[i].connection, "SELECT pg_wal_replay_resume()");
	}
	for (bool done = false; !done;)
	{
		ask_all(watch, count, e->lsn);
		done = true;
		for (int i = 0; i < count; i++)
			done = done && watch[i].since > 0;
		if (!done)
			usleep(PAUSE);
	}
	for (int i = 0; i < replicas; i++)
		if (e->replayed < watch[i].since)
			e->replayed = watch[i].since;
	e->free = watch[replicas].since;
	e->shown = watch[replicas + 1].since;
}

/* --- all of them -------------------------------------------------------- */

static void
print_event(const Event *e)
{
	printf("%.3f %.3f %.3f", (e->replayed - e->commit) * 1e3,
		   (e->free - e->replayed) * 1e3, (e->shown - e->replayed) * 1e3);
	for (int i = 0; i < POLLS; i++)
	{
		double		known = known_by_poll(&poll_of[i], e);

		printf(" %.3f", known < 0 ? -1.0 : (known - e->replayed) * 1e3);
	}
	printf("\n");
}

int
main(int argc, char **argv)
{
	Watch		watch[MAX_REPLICAS + 2];
	PGconn	   *writer;
	pthread_t	poller;
	double		end;
	int			pause;
	int			events = 0;

	if (argc < 5 || argc - 4 > MAX_REPLICAS)
		die("usage", "detect seconds pause_ms primary replica...");
	pause = atoi(argv[2]);
	primary_dsn = argv[3];
	for (int i = 4; i < argc; i++)
		replica_dsn[replicas++] = argv[i];

	writer = open_connection(primary_dsn);
	run(writer, "SET replica_pin.session_key = 'bench:detect'");
	run(writer, "SET replica_pin.report_commit_token = on");
	run(writer, "CREATE TABLE IF NOT EXISTS bench_event (n integer)");
	for (int i = 0; i < replicas; i++)
		prepare_watch(&watch[i], replica_dsn[i],
					  "SELECT pg_last_wal_replay_lsn()", true);
	prepare_watch(&watch[replicas], primary_dsn,
				  "SELECT NOT replica_pin.is_pinned('bench:detect')", false);
	prepare_watch(&watch[replicas + 1], primary_dsn,
				  "SELECT min(replay_lsn) FROM pg_stat_replication", true);

	srand((unsigned int) getpid());
	if (pthread_create(&poller, NULL, poll_replicas, NULL) != 0)
		die("thread", "cannot start");
	end = now() + atof(argv[1]);
	while (now() < end && events < MAX_EVENTS)
	{
		usleep((useconds_t) (5000 + rand() % 40000));
		one_event(writer, watch, pause, &event[events++]);
	}
	/* let the slower polls have their say */
	for (double wait = now() + (pause > 0 ? 0 : 5); now() < wait;)
		usleep(10000);
	over = true;
	pthread_join(poller, NULL);
	for (int i = 0; i < events; i++)
		print_event(&event[i]);
	return 0;
}
