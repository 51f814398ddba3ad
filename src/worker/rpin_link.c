/*-------------------------------------------------------------------------
 *
 * rpin_link.c
 *	  A connection to a replica over libpq.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "libpq-fe.h"
#include "storage/fd.h"
#include "storage/latch.h"

#include "rpin_conninfo.h"
#include "rpin_link.h"
#include "rpin_report.h"

#define RPIN_MESSAGE_SIZE 256

typedef enum RpinLinkStage
{
	RPIN_STAGE_CONNECTING,
	RPIN_STAGE_PREPARING,
	RPIN_STAGE_READY,
	RPIN_STAGE_REQUESTED
} RpinLinkStage;

struct RpinLink
{
	PGconn	   *conn;
	bool		has_descriptor; /* counted with the server's file descriptors */
	RpinLinkStage stage;
	uint32		interest;
	RpinProgress outcome;		/* of the statement, told when it is over */
	RpinReport	report;
	bool		broken;			/* failed; nothing more is asked of it */
	RpinState	failure;
	char		message[RPIN_MESSAGE_SIZE];
};

/*
 * The five characters of SQLSTATE in a verbose libpq message, "SEVERITY:
 * 28P01: text", or NULL.  libpq has no other way to tell why a server refused a
 * connection, and texts may be in any language.
 */
static const char *
find_sqlstate(const char *message)
{
	for (const char *p = message; (p = strstr(p, ":  ")) != NULL; p++)
	{
		const char *code = p + 3;

		if (strspn(code, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5 &&
			code[5] == ':' && code[6] == ' ')
			return code;
	}
	return NULL;
}

/* Keeps the first line, ASCII only: it goes into databases of any encoding. */
static void
keep_message(RpinLink *link, const char *reason)
{
	int			length = 0;

	for (; *reason != '\0' && *reason != '\n' && length < RPIN_MESSAGE_SIZE - 1; reason++)
		link->message[length++] = *reason >= ' ' && *reason <= '~' ? *reason : '?';
	link->message[length] = '\0';
}

/*
 * A notice would go to the server's log, once for each that a replica sends.
 */
static void
ignore_notice(void *arg, const PGresult *result)
{
}

static RpinProgress
fail(RpinLink *link, RpinState failure, const char *reason)
{
	link->broken = true;
	link->failure = failure;
	keep_message(link, reason);
	return RPIN_PROGRESS_FAILED;
}

/* What a connection attempt ended with. */
static RpinProgress
fail_to_connect(RpinLink *link)
{
	const char *reason = PQerrorMessage(link->conn);
	const char *code = find_sqlstate(reason);

	if (PQconnectionNeedsPassword(link->conn))
		return fail(link, RPIN_STATE_AUTHENTICATION, code != NULL ? code + 7 : reason);
	if (code == NULL)
		return fail(link, RPIN_STATE_UNREACHABLE, reason);
	if (strncmp(code, "28", 2) == 0)
		return fail(link, RPIN_STATE_AUTHENTICATION, code + 7);
	if (strncmp(code, "57P03", 5) == 0)
		return fail(link, RPIN_STATE_STARTING_UP, code + 7);
	return fail(link, RPIN_STATE_REFUSED, code + 7);
}

static RpinProgress
fail_as_lost(RpinLink *link)
{
	return fail(link, RPIN_STATE_CONNECTION_LOST, PQerrorMessage(link->conn));
}

/* What an error of the statement means, by the beginning of its SQLSTATE. */
static const struct
{
	const char *code;
	RpinState	state;
}			result_states[] = {
	{"57P", RPIN_STATE_CONNECTION_LOST},	/* it shuts down, or crashed */
	{"42883", RPIN_STATE_EXTENSION_MISSING},	/* no such function */
	{"3F000", RPIN_STATE_EXTENSION_MISSING},	/* no such schema */
	{"58P01", RPIN_STATE_EXTENSION_MISSING},	/* no such file */
	{"42501", RPIN_STATE_NO_PRIVILEGE},
};

/* An error of the statement itself. */
static RpinProgress
fail_by_result(RpinLink *link, const PGresult *result)
{
	const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *reason = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	RpinState	state = RPIN_STATE_QUERY_FAILED;

	if (PQstatus(link->conn) == CONNECTION_BAD)
		return fail_as_lost(link);
	if (code == NULL)
		return fail(link, RPIN_STATE_NONSENSE, "the answer is not one of the protocol");
	for (int i = 0; i < (int) lengthof(result_states); i++)
		if (strncmp(code, result_states[i].code, strlen(result_states[i].code)) == 0)
			state = result_states[i].state;
	return fail(link, state, reason != NULL ? reason : code);
}

static void
close_link(RpinLink *link)
{
	if (link->conn != NULL)
	{
		/* Unread bytes would make a reset of the end, in the replica's log. */
		if (PQstatus(link->conn) == CONNECTION_OK)
			(void) PQconsumeInput(link->conn);
		PQfinish(link->conn);
	}
	if (link->has_descriptor)
		ReleaseExternalFD();
	free(link);
}

static RpinLink *
open_link(const RpinAddress *address, const char *conninfo,
		  const RpinPace *pace)
{
	RpinLink   *link = calloc(1, sizeof(RpinLink));
	RpinConnectParams params;

	if (link == NULL)
		return NULL;
	link->stage = RPIN_STAGE_CONNECTING;
	link->interest = WL_SOCKET_WRITEABLE;
	link->has_descriptor = AcquireExternalFD();
	if (!link->has_descriptor)
	{
		fail(link, RPIN_STATE_UNREACHABLE, "no file descriptor is free here");
		return link;
	}
	if (!rpin_conninfo_build(conninfo, address, pace, &params))
	{
		fail(link, RPIN_STATE_UNREACHABLE, "out of memory");
		return link;
	}
	link->conn = PQconnectStartParams(params.keyword, params.value, 0);
	rpin_conninfo_free(&params);
	if (link->conn == NULL)
	{
		fail(link, RPIN_STATE_UNREACHABLE, "out of memory");
		return link;
	}
	PQsetErrorVerbosity(link->conn, PQERRORS_VERBOSE);
	PQsetNoticeReceiver(link->conn, ignore_notice, NULL);
	if (PQstatus(link->conn) == CONNECTION_BAD)
		fail_to_connect(link);
	return link;
}

/* Sends what waits to be sent; the socket is watched for writing meanwhile. */
static void
flush(RpinLink *link)
{
	int			rest = PQflush(link->conn);

	if (rest < 0)
		fail_as_lost(link);
	link->interest = WL_SOCKET_READABLE | (rest > 0 ? WL_SOCKET_WRITEABLE : 0);
}

static void
send_statement(RpinLink *link, int sent, RpinLinkStage stage)
{
	link->stage = stage;
	if (!sent)
		fail_as_lost(link);
	else
		flush(link);
}

static void
prepare(RpinLink *link)
{
	if (!link->broken)
		send_statement(link, PQsendPrepare(link->conn, RPIN_REPORT_STATEMENT,
										   RPIN_REPORT_QUERY, 0, NULL),
					   RPIN_STAGE_PREPARING);
}

static void
request(RpinLink *link)
{
	if (!link->broken)
		send_statement(link, PQsendQueryPrepared(link->conn,
												 RPIN_REPORT_STATEMENT, 0,
												 NULL, NULL, NULL, 0),
					   RPIN_STAGE_REQUESTED);
}

static RpinProgress
advance_connect(RpinLink *link)
{
	switch (PQconnectPoll(link->conn))
	{
		case PGRES_POLLING_READING:
			link->interest = WL_SOCKET_READABLE;
			return RPIN_PROGRESS_NONE;
		case PGRES_POLLING_WRITING:
			link->interest = WL_SOCKET_WRITEABLE;
			return RPIN_PROGRESS_NONE;
		case PGRES_POLLING_OK:
			if (PQsetnonblocking(link->conn, 1) != 0)
				return fail_as_lost(link);
			link->stage = RPIN_STAGE_READY;
			link->interest = WL_SOCKET_READABLE;
			return RPIN_PROGRESS_CONNECTED;
		default:
			return fail_to_connect(link);
	}
}

/* One result of the statement that was sent. */
static void
take_result(RpinLink *link, const PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	if (link->outcome != RPIN_PROGRESS_NONE)
		fail(link, RPIN_STATE_NONSENSE, "one question had two answers");
	else if (link->stage == RPIN_STAGE_PREPARING && status == PGRES_COMMAND_OK)
		link->outcome = RPIN_PROGRESS_PREPARED;
	else if (link->stage != RPIN_STAGE_REQUESTED || status != PGRES_TUPLES_OK)
		fail_by_result(link, result);
	else if (!rpin_report_read(result, &link->report))
		fail(link, RPIN_STATE_NONSENSE,
			 "node_status() answered something else than expected");
	else
		link->outcome = RPIN_PROGRESS_REPORT;
}

/* The statement is over: tells what came of it, once. */
static RpinProgress
finish_statement(RpinLink *link, RpinReport *report)
{
	RpinProgress outcome = link->outcome;

	if (PQstatus(link->conn) == CONNECTION_BAD)
		return fail_as_lost(link);
	if (outcome == RPIN_PROGRESS_REPORT)
		*report = link->report;
	if (outcome != RPIN_PROGRESS_NONE)
		link->stage = RPIN_STAGE_READY;
	link->outcome = RPIN_PROGRESS_NONE;
	return outcome;
}

/*
 * Takes results while that needs no waiting.  The statement is over with the
 * NULL that follows its result; only then the next one may be sent.
 */
static RpinProgress
advance_statement(RpinLink *link, RpinReport *report)
{
	PGnotify   *notify;

	if (!PQconsumeInput(link->conn))
		return fail_as_lost(link);

	/* Nobody listens here, and libpq would keep them all. */
	notify = PQnotifies(link->conn);
	if (notify != NULL)
	{
		PQfreemem(notify);
		return fail(link, RPIN_STATE_NONSENSE, "a notification that nobody asked for");
	}
	flush(link);
	while (!link->broken && !PQisBusy(link->conn))
	{
		PGresult   *result = PQgetResult(link->conn);

		if (result == NULL)
			return finish_statement(link, report);
		take_result(link, result);
		PQclear(result);
	}
	return link->broken ? RPIN_PROGRESS_FAILED : RPIN_PROGRESS_NONE;
}

static RpinProgress
advance(RpinLink *link, RpinReport *report)
{
	if (link->broken)
		return RPIN_PROGRESS_FAILED;
	if (link->stage == RPIN_STAGE_CONNECTING)
		return advance_connect(link);
	return advance_statement(link, report);
}

static int
get_socket(const RpinLink *link)
{
	return link->conn != NULL ? PQsocket(link->conn) : -1;
}

static uint32
get_interest(const RpinLink *link)
{
	return link->interest;
}

static RpinState
get_failure(const RpinLink *link)
{
	return link->failure;
}

static const char *
get_message(const RpinLink *link)
{
	return link->message;
}

const RpinLinkOps rpin_link_libpq = {
	.open = open_link,
	.close = close_link,
	.prepare = prepare,
	.request = request,
	.advance = advance,
	.socket = get_socket,
	.interest = get_interest,
	.failure = get_failure,
	.message = get_message,
};
