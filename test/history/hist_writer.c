/*
 * hist_writer.c
 *	  Transactions that write a row under its session key, one after the other,
 *	  with time to think in between and inside.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hist.h"
#include "hist_count.h"
#include "hist_model.h"
#include "hist_sql.h"

/* Each the longest, in microseconds. */
#define THINK_BETWEEN 12000
#define THINK_INSIDE 2000

/* A new row, instead of a new version of one: once in so many writes. */
#define CREATE_ONE_IN 4

/* How a transaction says for which key it writes. */
static const HistSql shapes[] = {HIST_SQL_SET_KEY, HIST_SQL_PIN, HIST_SQL_PIN_ALL};

#define lengthof(array) (sizeof(array) / sizeof((array)[0]))

typedef struct Writer
{
	uint64_t	random;
	HistConn	conn;
	unsigned	primary;
	HistConn	other;			/* for HIST_CLAIM_ELSEWHERE */
	unsigned	other_primary;
	char		last_token[HIST_TOKEN_SIZE];
} Writer;

static void
think(Writer *writer, int64_t longest)
{
	hist_pause((int64_t) (hist_random(&writer->random) % (uint64_t) (longest + 1)));
}

/* The number behind the last dash; 0 for no token. */
static uint64_t
token_lsn(const char *token)
{
	return strlen(token) == HIST_TOKEN_SIZE - 1 ? strtoull(token + 26, NULL, 16) : 0;
}

static uint64_t
ask_position(HistConn *conn)
{
	HistCall	call = hist_call(HIST_SQL_INSERT_POSITION, NULL, NULL);
	PGresult   *result;
	uint64_t	lsn;

	if (!hist_conn_run(conn, &call, 1, &result))
		return 0;
	lsn = strtoull(hist_result_text(result, 0), NULL, 10);
	PQclear(result);
	return lsn;
}

/* Where a wrong rule says that the coming commit is. */
static uint64_t
claim_before(Writer *writer)
{
	switch (hist_options.mode->claim)
	{
		case HIST_CLAIM_INSIDE:
			return ask_position(&writer->conn);
		case HIST_CLAIM_ELSEWHERE:
			hist_primary_follow(&writer->other, &writer->other_primary);
			return hist_conn_wait(&writer->other, HIST_PATIENCE) ?
				ask_position(&writer->other) : 0;
		case HIST_CLAIM_LAST:
			return token_lsn(writer->last_token);
		default:
			return 0;
	}
}

/* All but the COMMIT.  False: the transaction failed. */
static bool
begin(Writer *writer, const HistWrite *write)
{
	char		session_key[32],
				key[24],
				version[24];
	HistCall	calls[3];
	PGresult   *results[3];
	bool		ok;

	snprintf(session_key, sizeof(session_key), "item:%lld", (long long) write->key);
	snprintf(key, sizeof(key), "%lld", (long long) write->key);
	snprintf(version, sizeof(version), "%lld", (long long) write->version);
	calls[0] = hist_call_text("BEGIN");
	calls[1] = hist_call(shapes[hist_random(&writer->random) % lengthof(shapes)],
						 session_key, NULL);
	calls[2] = hist_call(HIST_SQL_WRITE, key, version);
	if (!hist_conn_run(&writer->conn, calls, 3, results))
		return false;
	ok = hist_result_ok(results[2]);
	hist_conn_clear(results, 3);
	return ok;
}

/* The token that came with the last commit, if a new one came. */
static void
take_token(Writer *writer, HistCommit *commit)
{
	const char *token = PQparameterStatus(writer->conn.pg, "replica_pin.commit_token");

	if (token == NULL || strcmp(token, writer->last_token) == 0)
		return;
	snprintf(writer->last_token, sizeof(writer->last_token), "%s", token);
	snprintf(commit->token, sizeof(commit->token), "%s", token);
	commit->lsn = token_lsn(token);
}

static void
finish(Writer *writer, const HistWrite *write, uint64_t claim)
{
	HistCall	call = hist_call(HIST_SQL_COMMIT, NULL, NULL);
	HistCommit	commit = {.version = write->version};
	PGresult   *result;
	bool		committed;

	hist_model_commits(write);
	if (!hist_conn_run(&writer->conn, &call, 1, &result))
	{
		hist_count(HIST_commits_unknown);
		hist_primary_broke();
		hist_model_end(write, true, NULL, 0);
		return;
	}
	committed = hist_result_ok(result) && strcmp(PQcmdStatus(result), "COMMIT") == 0;
	PQclear(result);
	if (!committed)
	{
		hist_count(HIST_writes_failed);
		hist_model_end(write, true, NULL, 0);
		return;
	}
	take_token(writer, &commit);
	if (hist_options.mode->claim == HIST_CLAIM_COMMIT)
		claim = commit.lsn;
	hist_model_end(write, false, &commit, claim);
	hist_count(HIST_commits);
}

static void
rollback(Writer *writer)
{
	HistCall	call = hist_call_text("ROLLBACK");
	PGresult   *result;

	if (hist_conn_run(&writer->conn, &call, 1, &result))
		PQclear(result);
}

static void
write_once(Writer *writer)
{
	uint64_t	random = hist_random(&writer->random);
	HistWrite	write = hist_model_begin((int) (random % (uint64_t) hist_options.keys),
										 (random >> 32) % CREATE_ONE_IN == 0);
	uint64_t	claim;

	if (!begin(writer, &write))
	{
		hist_count(HIST_writes_failed);
		hist_model_end(&write, false, NULL, 0);
		if (writer->conn.phase != HIST_CONN_OPEN)
			hist_primary_broke();
		rollback(writer);
		return;
	}
	claim = claim_before(writer);
	if (random >> 60 & 1)
		think(writer, THINK_INSIDE);
	finish(writer, &write, claim);
}

static bool
push_tokens(Writer *writer)
{
	HistCall	call = hist_call_text("SET replica_pin.report_commit_token = on");
	PGresult   *result;
	bool		ok;

	if (!hist_conn_run(&writer->conn, &call, 1, &result))
		return false;
	ok = hist_result_ok(result);
	PQclear(result);
	writer->last_token[0] = '\0';
	return ok;
}

void *
hist_writer_main(void *number)
{
	Writer		writer = {.random = hist_options.seed * 1000 + (uint64_t) (intptr_t) number};
	int64_t		opened_at = 0;
	unsigned	unused;

	hist_conn_init(&writer.conn, hist_primary(&writer.primary), true);
	hist_conn_init(&writer.other, hist_primary(&unused), true);
	writer.other_primary = unused;
	while (!hist_stopping())
	{
		hist_primary_follow(&writer.conn, &writer.primary);
		if (!hist_conn_wait(&writer.conn, 100000))
			continue;
		if (writer.conn.opened_at != opened_at)
		{
			if (!push_tokens(&writer))
				continue;
			opened_at = writer.conn.opened_at;
		}
		write_once(&writer);
		think(&writer, THINK_BETWEEN);
	}
	hist_conn_close(&writer.conn);
	hist_conn_close(&writer.other);
	return NULL;
}
