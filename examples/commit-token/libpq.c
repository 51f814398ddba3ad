/*
 * libpq.c
 *	  The token of a commit, with libpq.
 *
 * usage: libpq id		(the server is that of PGHOST, PGPORT, ...)
 */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 42 characters and the end of the string */
#define TOKEN_SIZE 43

static PGresult *
run(PGconn *conn, const char *sql, const char *parameter)
{
	PGresult   *result = PQexecParams(conn, sql, parameter ? 1 : 0, NULL,
									  &parameter, NULL, NULL, 0);

	if (PQresultStatus(result) != PGRES_COMMAND_OK &&
		PQresultStatus(result) != PGRES_TUPLES_OK)
	{
		fprintf(stderr, "%s", PQerrorMessage(conn));
		exit(1);
	}
	return result;
}

/* A copy: libpq frees its own when the next one arrives. */
static void
last_token(PGconn *conn, char *token)
{
	const char *value = PQparameterStatus(conn, "replica_pin.commit_token");

	snprintf(token, TOKEN_SIZE, "%s", value ? value : "");
}

/*
 * Runs a statement in a transaction, and puts the token of its commit in place
 * of the one that is carried. libpq keeps the last token until the next one
 * comes: if it is still the one of before, this commit wrote nothing, and what
 * is carried stays.
 */
static void
commit(PGconn *conn, const char *sql, const char *parameter, char *carried)
{
	char		before[TOKEN_SIZE];
	char		after[TOKEN_SIZE];

	last_token(conn, before);
	PQclear(run(conn, "BEGIN", NULL));
	PQclear(run(conn, "SET LOCAL replica_pin.report_commit_token = on", NULL));
	PQclear(run(conn, sql, parameter));
	PQclear(run(conn, "COMMIT", NULL));
	last_token(conn, after);

	if (strcmp(after, before) != 0)
		strcpy(carried, after);
	printf("%s %s\n", strcmp(after, before) != 0 ? "token" : "no new token, carry",
		   carried);
}

int
main(int argc, char **argv)
{
	PGconn	   *conn = PQconnectdb("");
	PGresult   *decision;
	char		carried[TOKEN_SIZE] = "";

	if (argc != 2)
		return 2;
	commit(conn, "INSERT INTO note (id) VALUES ($1)", argv[1], carried);

	/* Where may this user's next read go? No replica is the primary. */
	decision = run(conn, "SELECT coalesce(replica, 'primary'), reason"
				   " FROM replica_pin.route(token => $1)", carried);
	printf("read on %s, %s\n", PQgetvalue(decision, 0, 0), PQgetvalue(decision, 0, 1));
	PQclear(decision);

	commit(conn, "UPDATE note SET body = '' WHERE id = $1 AND false", argv[1], carried);
	PQfinish(conn);
	return 0;
}
