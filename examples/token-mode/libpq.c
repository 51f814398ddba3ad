/*
 * libpq.c
 *	  Token mode with libpq: the read is asked of the replica itself, in one
 *	  round trip; the primary is not needed.
 *
 * usage: libpq write PRIMARY ID			prints the token
 *		  libpq read TOKEN ID PRIMARY REPLICA...
 *
 * PRIMARY and REPLICA are connection strings. A read prints where it was served,
 * whether the row was there, and the token to carry on with. With the name of a
 * file in TOKEN_MODE_TRACE the messages of the reads are traced there.
 */
#include <libpq-fe.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MS "50"
#define READ_NOTE "SELECT id FROM note WHERE id = $1"

/* 42 characters and the end of the string */
#define TOKEN_SIZE 43

/* Of a read: how many rows, and the SQLSTATE, '' if it succeeded. */
typedef struct
{
	int			rows;
	char		sqlstate[6];
} Answer;

static void
fail(PGconn *conn)
{
	fprintf(stderr, "%s", PQerrorMessage(conn));
	exit(1);
}

static PGconn *
connect_to(const char *address)
{
	PGconn	   *conn = PQconnectdb(address);

	if (PQstatus(conn) != CONNECTION_OK)
		fail(conn);
	return conn;
}

static PGresult *
run(PGconn *conn, const char *sql, const char *parameter)
{
	PGresult   *result = PQexecParams(conn, sql, parameter ? 1 : 0, NULL,
									  &parameter, NULL, NULL, 0);

	if (PQresultStatus(result) != PGRES_COMMAND_OK &&
		PQresultStatus(result) != PGRES_TUPLES_OK)
		fail(conn);
	return result;
}

static void
write_note(const char *primary, const char *note)
{
	PGconn	   *conn = connect_to(primary);

	PQclear(run(conn, "BEGIN", NULL));
	PQclear(run(conn, "SET LOCAL replica_pin.report_commit_token = on", NULL));
	PQclear(run(conn, "INSERT INTO note (id) VALUES ($1)", note));
	PQclear(run(conn, "COMMIT", NULL));
	printf("%s\n", PQparameterStatus(conn, "replica_pin.commit_token"));
	PQfinish(conn);
}

/* What a pipeline answers, to its Sync: the first error, or the last rows. */
static Answer
receive(PGconn *conn)
{
	Answer		answer = {0};
	bool		synced = false;

	while (!synced)
	{
		PGresult   *result = PQgetResult(conn);

		/* NULL ends the results of one statement */
		if (result == NULL)
		{
			if (PQstatus(conn) != CONNECTION_OK)
				fail(conn);
			continue;
		}
		if (PQresultStatus(result) == PGRES_FATAL_ERROR)
		{
			const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

			if (state == NULL)
				fail(conn);
			snprintf(answer.sqlstate, sizeof(answer.sqlstate), "%s", state);
		}
		if (PQresultStatus(result) == PGRES_TUPLES_OK)
			answer.rows = PQntuples(result);
		synced = PQresultStatus(result) == PGRES_PIPELINE_SYNC;
		PQclear(result);
	}
	return answer;
}

/*
 * The read, in one pipeline with the proof: one Sync, so one transaction, and
 * when require() fails the server skips the read.
 */
static Answer
read_behind(PGconn *conn, const char *token, const char *note)
{
	const char *proof[] = {token, WAIT_MS};
	Answer		answer;

	if (!PQenterPipelineMode(conn) ||
		!PQsendQueryParams(conn, "CALL replica_pin.require($1, $2)", 2, NULL,
						   proof, NULL, NULL, 0) ||
		!PQsendQueryParams(conn, READ_NOTE, 1, NULL, &note, NULL, NULL, 0) ||
		!PQpipelineSync(conn))
		fail(conn);
	answer = receive(conn);
	PQexitPipelineMode(conn);
	return answer;
}

/*
 * What to carry instead of a token that a replica cannot compare. No replica can
 * ever have a write that a failover lost (required is NULL): begin anew.
 */
static void
renew(const char *primary, char *token)
{
	PGconn	   *conn = connect_to(primary);
	PGresult   *result = run(conn, "SELECT coalesce(required, replica_pin.current_token())"
							 " FROM replica_pin.route(token => $1)", token);

	snprintf(token, TOKEN_SIZE, "%s", PQgetvalue(result, 0, 0));
	PQclear(result);
	PQfinish(conn);
}

static int
read_on_primary(const char *primary, const char *note)
{
	PGconn	   *conn = connect_to(primary);
	PGresult   *result = run(conn, READ_NOTE, note);
	int			rows = PQntuples(result);

	PQclear(result);
	PQfinish(conn);
	return rows;
}

/*
 * RP001: the next replica, then the primary, and the token stays. RP002: the
 * primary renews it, once.
 */
static void
read_note(char *token, const char *note, const char *primary,
		  PGconn **replicas, int count)
{
	bool		renewed = false;
	int			i = 0;

	while (i < count)
	{
		Answer		answer = read_behind(replicas[i], token, note);

		if (answer.sqlstate[0] == '\0')
		{
			printf("r%d %d %s\n", i + 1, answer.rows, token);
			return;
		}
		if (strcmp(answer.sqlstate, "RP002") == 0 && !renewed)
		{
			renew(primary, token);
			renewed = true;
		}
		else if (strncmp(answer.sqlstate, "RP00", 4) == 0)
			i++;
		else
			fail(replicas[i]);
	}
	printf("primary %d %s\n", read_on_primary(primary, note), token);
}

int
main(int argc, char **argv)
{
	PGconn	   *replicas[8];
	char		token[TOKEN_SIZE];
	int			count = argc - 5;
	char	   *trace = getenv("TOKEN_MODE_TRACE");

	if (argc == 4 && strcmp(argv[1], "write") == 0)
	{
		write_note(argv[2], argv[3]);
		return 0;
	}
	if (count < 1 || count > 8)
		return 2;
	for (int i = 0; i < count; i++)
	{
		replicas[i] = connect_to(argv[5 + i]);
		if (trace != NULL)
			PQtrace(replicas[i], fopen(trace, "a"));
	}
	snprintf(token, sizeof(token), "%s", argv[2]);
	read_note(token, argv[3], argv[4], replicas, count);
	for (int i = 0; i < count; i++)
		PQfinish(replicas[i]);
	return 0;
}
