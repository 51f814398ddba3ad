/*
 * hist_conn.c
 *	  A connection that never blocks without a deadline.
 */
#define _GNU_SOURCE
#include "hist_conn.h"

#include <poll.h>
#include <string.h>
#include <time.h>

#include "hist_sql.h"

#define FIRST_PAUSE INT64_C(10000)
#define LONGEST_PAUSE INT64_C(500000)

int64_t
hist_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void
hist_pause(int64_t microseconds)
{
	struct timespec pause = {microseconds / 1000000, microseconds % 1000000 * 1000};

	ppoll(NULL, 0, &pause, NULL);
}

HistCall
hist_call(int statement, const char *first, const char *second)
{
	HistCall	call = {.statement = statement};

	call.values[0] = first;
	call.values[1] = second;
	call.count = (first != NULL) + (second != NULL);
	return call;
}

HistCall
hist_call_text(const char *text)
{
	HistCall	call = {.text = text};

	return call;
}

void
hist_conn_init(HistConn *conn, const char *conninfo, bool prepares)
{
	memset(conn, 0, sizeof(*conn));
	conn->conninfo = conninfo;
	conn->prepares = prepares;
	conn->pause = FIRST_PAUSE;
}

void
hist_conn_close(HistConn *conn)
{
	if (conn->pg != NULL)
		PQfinish(conn->pg);
	conn->pg = NULL;
	conn->phase = HIST_CONN_CLOSED;
	conn->prepared = 0;
}

/* The next attempts are ever further apart. */
static void
lose(HistConn *conn)
{
	hist_conn_close(conn);
	conn->next_try = hist_now() + conn->pause;
	conn->pause = conn->pause * 2 < LONGEST_PAUSE ? conn->pause * 2 : LONGEST_PAUSE;
}

void
hist_conn_retarget(HistConn *conn, const char *conninfo)
{
	hist_conn_close(conn);
	conn->conninfo = conninfo;
	conn->next_try = 0;
	conn->pause = FIRST_PAUSE;
}

/* True: the socket is ready; false: the time is over. */
static bool
wait_for_socket(HistConn *conn, short events, int64_t deadline)
{
	struct pollfd socket = {.fd = PQsocket(conn->pg), .events = events};
	int64_t		left = deadline - hist_now();
	struct timespec timeout;

	if (socket.fd < 0)
		return false;
	left = left > 0 ? left : 0;
	timeout.tv_sec = left / 1000000;
	timeout.tv_nsec = left % 1000000 * 1000;
	return ppoll(&socket, 1, &timeout, NULL) > 0;
}

static void
begin_to_open(HistConn *conn)
{
	conn->pg = PQconnectStart(conn->conninfo);
	conn->phase = HIST_CONN_OPENING;
	conn->deadline = hist_now() + HIST_PATIENCE;
	conn->wants_write = true;
	if (conn->pg == NULL || PQstatus(conn->pg) == CONNECTION_BAD)
		lose(conn);
}

static void
go_on_opening(HistConn *conn)
{
	PostgresPollingStatusType polling = PQconnectPoll(conn->pg);

	conn->wants_write = polling == PGRES_POLLING_WRITING;
	if (polling == PGRES_POLLING_FAILED)
		lose(conn);
	else if (polling == PGRES_POLLING_OK)
	{
		if (PQsetnonblocking(conn->pg, 1) != 0 || !PQenterPipelineMode(conn->pg))
		{
			lose(conn);
			return;
		}
		conn->phase = HIST_CONN_OPEN;
		conn->opened_at = hist_now();
	}
}

/* One step towards being open, waiting until `until` at most. */
static bool
advance(HistConn *conn, int64_t until)
{
	if (conn->phase == HIST_CONN_CLOSED && hist_now() >= conn->next_try)
		begin_to_open(conn);
	if (conn->phase == HIST_CONN_OPENING)
	{
		if (wait_for_socket(conn, conn->wants_write ? POLLOUT : POLLIN, until))
			go_on_opening(conn);
		else if (hist_now() > conn->deadline)
			lose(conn);
	}
	return conn->phase == HIST_CONN_OPEN;
}

bool
hist_conn_ready(HistConn *conn)
{
	return advance(conn, 0);
}

bool
hist_conn_wait(HistConn *conn, int64_t patience)
{
	int64_t		until = hist_now() + patience;

	while (!advance(conn, until))
	{
		int64_t		now = hist_now();

		if (now >= until)
			return false;
		if (conn->phase == HIST_CONN_CLOSED && conn->next_try > now)
			hist_pause(conn->next_try < until ? conn->next_try - now : until - now);
	}
	return true;
}

static bool
send_call(HistConn *conn, const HistCall *call)
{
	const char *text = call->text ? call->text : hist_sql[call->statement];
	char		name[] = {'s', (char) ('a' + call->statement), '\0'};

	if (call->text != NULL || !conn->prepares)
		return PQsendQueryParams(conn->pg, text, call->count, NULL, call->values,
								 NULL, NULL, 0);
	if (!(conn->prepared & 1u << call->statement) &&
		!PQsendPrepare(conn->pg, name, text, 0, NULL))
		return false;
	return PQsendQueryPrepared(conn->pg, name, call->count, call->values, NULL,
							   NULL, 0);
}

static bool
flush(HistConn *conn, int64_t deadline)
{
	int			left;

	while ((left = PQflush(conn->pg)) == 1)
	{
		if (!wait_for_socket(conn, POLLIN | POLLOUT, deadline) ||
			!PQconsumeInput(conn->pg))
			return false;
	}
	return left == 0;
}

/* False: nothing more will come. */
static bool
next_result(HistConn *conn, int64_t deadline, PGresult **result)
{
	while (PQisBusy(conn->pg))
	{
		if (!wait_for_socket(conn, POLLIN, deadline) || !PQconsumeInput(conn->pg))
			return false;
	}
	*result = PQgetResult(conn->pg);
	return PQstatus(conn->pg) == CONNECTION_OK;
}

/* The result of one statement, and the NULL that ends it. */
static bool
receive(HistConn *conn, int64_t deadline, PGresult **result)
{
	PGresult   *end = NULL;

	*result = NULL;
	return next_result(conn, deadline, result) && *result != NULL &&
		next_result(conn, deadline, &end) && end == NULL;
}

static bool
receive_call(HistConn *conn, const HistCall *call, int64_t deadline, PGresult **result)
{
	uint32_t	bit = call->text ? 0 : 1u << call->statement;

	if (conn->prepares && bit != 0 && !(conn->prepared & bit))
	{
		if (!receive(conn, deadline, result))
			return false;
		if (hist_result_ok(*result))
			conn->prepared |= bit;
		PQclear(*result);
	}
	return receive(conn, deadline, result);
}

static bool
exchange(HistConn *conn, const HistCall *calls, int count, PGresult **results)
{
	int64_t		deadline = hist_now() + HIST_PATIENCE;
	PGresult   *sync = NULL;
	bool		synced;

	for (int i = 0; i < count; i++)
	{
		if (!send_call(conn, &calls[i]))
			return false;
	}
	if (!PQpipelineSync(conn->pg) || !flush(conn, deadline))
		return false;
	for (int i = 0; i < count; i++)
	{
		if (!receive_call(conn, &calls[i], deadline, &results[i]))
			return false;
	}
	synced = next_result(conn, deadline, &sync) &&
		PQresultStatus(sync) == PGRES_PIPELINE_SYNC;
	PQclear(sync);
	return synced;
}

bool
hist_conn_run(HistConn *conn, const HistCall *calls, int count, PGresult **results)
{
	memset(results, 0, sizeof(PGresult *) * count);
	if (conn->phase == HIST_CONN_OPEN && exchange(conn, calls, count, results))
	{
		conn->pause = FIRST_PAUSE;
		return true;
	}
	hist_conn_clear(results, count);
	if (conn->phase == HIST_CONN_OPEN)
		lose(conn);
	return false;
}

void
hist_conn_clear(PGresult **results, int count)
{
	for (int i = 0; i < count; i++)
	{
		PQclear(results[i]);
		results[i] = NULL;
	}
}

bool
hist_result_ok(const PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

const char *
hist_result_state(const PGresult *result)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	return state ? state : "";
}

const char *
hist_result_text(const PGresult *result, int column)
{
	if (PQntuples(result) < 1 || PQnfields(result) <= column)
		return "";
	return PQgetvalue(result, 0, column);
}
