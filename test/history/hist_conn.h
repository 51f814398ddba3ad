/*
 * hist_conn.h
 *	  A connection that never blocks without a deadline, knows since when it is
 *	  open, and comes back by itself.
 *
 * Everything goes through a pipeline: a batch of statements with one Sync, which
 * is one transaction unless the batch itself says BEGIN.
 */
#ifndef HIST_CONN_H
#define HIST_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include <libpq-fe.h>

/* How long a batch may take, and an attempt to connect. */
#define HIST_PATIENCE INT64_C(3000000)

typedef enum HistConnPhase
{
	HIST_CONN_CLOSED,			/* until next_try */
	HIST_CONN_OPENING,			/* until deadline */
	HIST_CONN_OPEN				/* until something goes wrong with it */
} HistConnPhase;

typedef struct HistConn
{
	const char *conninfo;
	bool		prepares;		/* not through a pooler */
	PGconn	   *pg;
	HistConnPhase phase;
	int64_t		opened_at;
	int64_t		deadline;
	int64_t		next_try;
	int64_t		pause;
	bool		wants_write;
	uint32_t	prepared;		/* bit n: statement n is */
} HistConn;

/* A statement of hist_sql.c, or text of one's own, and its parameters. */
typedef struct HistCall
{
	int			statement;
	const char *text;
	int			count;
	const char *values[2];
} HistCall;

/* With two parameters, one or none (NULL); and any text, without. */
extern HistCall hist_call(int statement, const char *first, const char *second);
extern HistCall hist_call_text(const char *text);

/* Microseconds of the one clock that everything here goes by. */
extern int64_t hist_now(void);
extern void hist_pause(int64_t microseconds);

extern void hist_conn_init(HistConn *conn, const char *conninfo, bool prepares);

/* Begins or goes on with connecting, without waiting.  True: it is open. */
extern bool hist_conn_ready(HistConn *conn);

/* The same, waiting for it. */
extern bool hist_conn_wait(HistConn *conn, int64_t patience);

extern void hist_conn_close(HistConn *conn);

/* Goes to another server from now on. */
extern void hist_conn_retarget(HistConn *conn, const char *conninfo);

/*
 * Runs a batch.  False: the connection is lost or did not answer in time, and is
 * closed; nothing is known of what became of it.  Else the results are those of
 * the calls, to be cleared with hist_conn_clear().
 */
extern bool hist_conn_run(HistConn *conn, const HistCall *calls, int count,
						  PGresult **results);
extern void hist_conn_clear(PGresult **results, int count);

/* Of a result: did it succeed, its SQLSTATE ("" if it did), a value ("" for NULL) */
extern bool hist_result_ok(const PGresult *result);
extern const char *hist_result_state(const PGresult *result);
extern const char *hist_result_text(const PGresult *result, int column);

#endif							/* HIST_CONN_H */
