/*-------------------------------------------------------------------------
 *
 * rpin_push.c
 *	  The token of a commit, handed to the client.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "libpq/libpq.h"
#include "libpq/libpq-be.h"
#include "miscadmin.h"
#include "tcop/pquery.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"

#include "../core/rpin_token.h"
#include "../shmem/rpin_wal.h"
#include "rpin_push.h"

#define RPIN_PUSH_NAME "replica_pin.commit_token"

bool		rpin_report_commit_token = false;

/* The last commit whose token is not in the send buffer yet; 0 if none. */
static XLogRecPtr unsent = InvalidXLogRecPtr;

/*
 * Only where there is a client at the other end of a socket.  Elsewhere the
 * functions behind pq_putmessage are others, and some of them raise.
 */
static bool
has_client(void)
{
	return (MyBackendType == B_BACKEND || MyBackendType == B_WAL_SENDER) &&
		MyProcPort != NULL && whereToSendOutput == DestRemote;
}

void
rpin_push_commit(XLogRecPtr lsn)
{
	if (rpin_report_commit_token && has_client())
		unsent = lsn;
}

/*
 * Puts a message into the send buffer without sending.  The buffer may have to
 * grow: the only allocation in the commit path, and so the only thing in it
 * that can raise.  It is caught here; the client then has no token, and that is
 * all.  An ERROR also resets the counts by which interrupts are held, which
 * must stay held until the commit is over.
 */
static void
put_message(const char *body, size_t length)
{
	MemoryContext context = CurrentMemoryContext;
	uint32		interrupts = InterruptHoldoffCount;
	uint32		cancels = QueryCancelHoldoffCount;

	PG_TRY();
	{
		pq_putmessage_noblock('S', body, length);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		FlushErrorState();
		InterruptHoldoffCount = interrupts;
		QueryCancelHoldoffCount = cancels;
	}
	PG_END_TRY();
}

/*
 * A statement can commit many times (CALL, DO).  Its client reads nothing before
 * it is over, and keeps the last token only, so the others are never sent.  If
 * they were, they would have to go out in between, or pile up: the statement
 * would wait for a client that does not read, with its locks, or could not be
 * terminated, because the server's last words then wait behind the tokens.
 */
void
rpin_push_unsent(void)
{
	static char body[sizeof(RPIN_PUSH_NAME) + RPIN_TOKEN_LENGTH + 1] = RPIN_PUSH_NAME;
	RpinPosition position;

	if (XLogRecPtrIsInvalid(unsent) || ActivePortal != NULL)
		return;
	position = rpin_wal_position(unsent);
	unsent = InvalidXLogRecPtr;
	rpin_token_format(&position, body + sizeof(RPIN_PUSH_NAME));
	put_message(body, sizeof(body));
}
