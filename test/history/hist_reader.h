/*
 * hist_reader.h
 *	  A reader: its connections, and what it carries from read to read.
 */
#ifndef HIST_READER_H
#define HIST_READER_H

#include "hist.h"
#include "hist_judge.h"

/* What it has read of a slot's present row. */
typedef struct HistHigh
{
	int64_t		key;
	int64_t		version;
	bool		on_replica;
} HistHigh;

typedef struct HistReader
{
	uint64_t	random;
	HistConn	primary;
	unsigned	primary_number;
	HistConn	direct[HIST_MAX_REPLICAS];
	HistConn	pooled[HIST_MAX_REPLICAS];
	HistConn	fresh;
	char		carried[HIST_TOKEN_SIZE];
	HistHigh   *high;			/* by slot */
	int			again;			/* reads of the same slot that are left */
	HistRead	read;			/* the present one */
} HistReader;

typedef enum HistOutcome
{
	HIST_SERVED,
	HIST_BEHIND,				/* RP001 */
	HIST_NOT_COMPARABLE,		/* RP002 */
	HIST_FAILED
} HistOutcome;

/* hist_ask.c: one question to one server */

/* The primary decides.  False: no answer. */
extern bool hist_ask_route(HistReader *reader);
extern bool hist_ask_is_pinned(HistReader *reader);

/* Every replica may be believed, and could be for a while. */
extern bool hist_ask_eligible(HistReader *reader);

/* A replica says how far it is; 0: no answer. */
extern uint64_t hist_ask_position(HistReader *reader, int replica);

/* The board says what it has of a replica that was named, and is judged. */
extern void hist_ask_board(HistReader *reader, int replica);

/* The row, on the primary or over one of the connections to replica. */
extern HistOutcome hist_ask_primary(HistReader *reader);
extern HistOutcome hist_ask_replica(HistReader *reader, HistConn *conn, int replica,
									const char *token, bool carry);

/* The token on the present timeline, or "" if it is good for nothing. */
extern bool hist_ask_renew(HistReader *reader, char *token);

/* hist_ways.c: the ways to read */
extern void hist_read_direct(HistReader *reader);
extern void hist_read_require(HistReader *reader);
extern void hist_read_token(HistReader *reader);
extern void hist_read_anywhere(HistReader *reader);
extern void hist_read_claim(HistReader *reader);
extern void hist_read_one(HistReader *reader);
extern void hist_read_window(HistReader *reader);

#endif							/* HIST_READER_H */
