/*
 * hist_ask.c
 *	  One question of a reader to one server.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hist_count.h"
#include "hist_reader.h"
#include "hist_sql.h"

/* How long require() waits, in milliseconds. */
#define WAIT_MS "5"

static void
format_key(const HistReader *reader, char *text, size_t size, const char *prefix)
{
	snprintf(text, size, "%s%lld", prefix, (long long) reader->read.demand.key);
}

/* --- decisions ----------------------------------------------------------------- */

static void
name_replica(HistReader *reader, const char *name, size_t length)
{
	for (int i = 0; i < hist_options.replica_count; i++)
	{
		const char *known = hist_options.replicas[i].name;

		if (strlen(known) == length && strncmp(known, name, length) == 0)
		{
			reader->read.named |= 1u << i;
			return;
		}
	}
	hist_count(HIST_unnamed);
}

static bool
decide(HistReader *reader, HistSql statement, PGresult **result)
{
	char		key[32] = "";
	HistCall	call = hist_call(statement, key, NULL);
	HistRead   *read = &reader->read;

	format_key(reader, key, sizeof(key), "item:");
	read->named = 0;
	read->reason[0] = '\0';
	read->required[0] = '\0';
	read->route = statement == HIST_SQL_ROUTE;
	read->asked_at = hist_now();
	if (!hist_conn_run(&reader->primary, &call, 1, result))
	{
		hist_primary_broke();
		return false;
	}
	read->answered_at = hist_now();
	if (hist_result_ok(*result))
		return true;
	PQclear(*result);
	return false;
}

bool
hist_ask_route(HistReader *reader)
{
	PGresult   *result;
	const char *name;

	if (!decide(reader, HIST_SQL_ROUTE, &result))
		return false;
	snprintf(reader->read.reason, sizeof(reader->read.reason), "%s",
			 hist_result_text(result, 1));
	snprintf(reader->read.required, sizeof(reader->read.required), "%s",
			 hist_result_text(result, 3));
	name = hist_result_text(result, 0)[0] ? hist_result_text(result, 2) : "";
	while (*name != '\0')
	{
		size_t		length = strcspn(name, ",");

		name_replica(reader, name, length);
		name += length + (name[length] == ',');
	}
	PQclear(result);
	return true;
}

bool
hist_ask_is_pinned(HistReader *reader)
{
	PGresult   *result;

	if (!decide(reader, HIST_SQL_IS_PINNED, &result))
		return false;
	for (int i = 0; i < hist_options.replica_count; i++)
	{
		if (strcmp(hist_result_text(result, 0), "f") == 0 && !hist_options.replicas[i].spare)
			reader->read.named |= 1u << i;
	}
	PQclear(result);
	return true;
}

bool
hist_ask_eligible(HistReader *reader)
{
	HistCall	call = hist_call(HIST_SQL_ELIGIBLE, NULL, NULL);
	PGresult   *result;
	bool		eligible;

	if (!hist_conn_run(&reader->primary, &call, 1, &result))
		return false;
	eligible = strcmp(hist_result_text(result, 0), "t") == 0;
	PQclear(result);
	return eligible;
}

uint64_t
hist_ask_position(HistReader *reader, int replica)
{
	HistCall	call = hist_call(HIST_SQL_POSITION, NULL, NULL);
	HistConn   *conn = &reader->direct[replica];
	PGresult   *result;
	uint64_t	lsn;

	if (!hist_conn_ready(conn) || !hist_conn_run(conn, &call, 1, &result))
		return 0;
	lsn = strtoull(hist_result_text(result, 0), NULL, 10);
	PQclear(result);
	return lsn;
}

/* The board is read later than the decision, so its sample is not an older one. */
void
hist_ask_board(HistReader *reader, int replica)
{
	bool		old = reader->direct[replica].phase == HIST_CONN_OPEN &&
		reader->direct[replica].opened_at + hist_options.lifetime < reader->read.asked_at;

	HistCall	call = hist_call(HIST_SQL_BOARD, hist_options.replicas[replica].name, NULL);
	PGresult   *result;

	if (!hist_conn_run(&reader->primary, &call, 1, &result))
		return;
	/* no age: the sample was voided meanwhile */
	if (hist_result_ok(result) && hist_result_text(result, 1)[0] != '\0')
		hist_judge_sample(&reader->read, replica,
						  strtoull(hist_result_text(result, 0), NULL, 10),
						  old ? hist_ask_position(reader, replica) : 0);
	PQclear(result);
}

/* --- reads --------------------------------------------------------------------- */

static void
take_row(HistReader *reader, int replica, const PGresult *result)
{
	reader->read.replica = replica;
	reader->read.version = atoll(hist_result_text(result, 0));
	reader->read.lsn = strtoull(hist_result_text(result, 1), NULL, 10);
}

HistOutcome
hist_ask_primary(HistReader *reader)
{
	char		key[32] = "";
	HistCall	call = hist_call(HIST_SQL_READ, key, NULL);
	PGresult   *result;
	bool		ok;

	if (!hist_conn_ready(&reader->primary))
		return HIST_FAILED;
	format_key(reader, key, sizeof(key), "");
	reader->read.sent_at = hist_now();
	if (!hist_conn_run(&reader->primary, &call, 1, &result))
	{
		hist_primary_broke();
		return HIST_FAILED;
	}
	ok = hist_result_ok(result);
	if (ok)
		take_row(reader, HIST_PRIMARY, result);
	PQclear(result);
	return ok ? HIST_SERVED : HIST_FAILED;
}

static void
count_error(const char *state)
{
	char		name[32];

	snprintf(name, sizeof(name), "read error %s", state);
	hist_count_reason(name);
}

static HistOutcome
outcome_of(const PGresult *proof)
{
	const char *state = hist_result_state(proof);

	if (strcmp(state, "RP001") == 0)
		return HIST_BEHIND;
	if (strcmp(state, "RP002") == 0)
		return HIST_NOT_COMPARABLE;
	count_error(state);
	return HIST_FAILED;
}

static void
carry_token(HistReader *reader, const char *token)
{
	if (strlen(token) == HIST_TOKEN_SIZE - 1 && strcmp(token, reader->carried) > 0)
		snprintf(reader->carried, sizeof(reader->carried), "%s", token);
}

/*
 * Proof, row and the token that covers it are one pipeline with one Sync, so one
 * transaction.  With a token of "" there is nothing to prove.
 */
HistOutcome
hist_ask_replica(HistReader *reader, HistConn *conn, int replica, const char *token,
				 bool carry)
{
	char		key[32];
	HistCall	calls[3];
	PGresult   *results[3];
	int			count = 0,
				row;
	HistOutcome outcome = HIST_FAILED;

	format_key(reader, key, sizeof(key), "");
	if (token[0] != '\0')
		calls[count++] = hist_call(HIST_SQL_REQUIRE, token, WAIT_MS);
	row = count;
	calls[count++] = hist_call(HIST_SQL_READ, key, NULL);
	if (carry)
		calls[count++] = hist_call(HIST_SQL_CURRENT_TOKEN, NULL, NULL);

	reader->read.sent_at = hist_now();
	if (!hist_conn_run(conn, calls, count, results))
		return HIST_FAILED;
	if (hist_result_ok(results[row]))
	{
		take_row(reader, replica, results[row]);
		if (carry)
			carry_token(reader, hist_result_text(results[count - 1], 0));
		outcome = HIST_SERVED;
	}
	else
		outcome = outcome_of(results[0]);
	hist_conn_clear(results, count);
	return outcome;
}

bool
hist_ask_renew(HistReader *reader, char *token)
{
	HistCall	call = hist_call(HIST_SQL_RENEW, token, NULL);
	PGresult   *result;
	bool		ok;

	if (!hist_conn_ready(&reader->primary) ||
		!hist_conn_run(&reader->primary, &call, 1, &result))
		return false;
	ok = hist_result_ok(result);
	if (ok)
		snprintf(token, HIST_TOKEN_SIZE, "%s", hist_result_text(result, 0));
	PQclear(result);
	return ok;
}
