/*-------------------------------------------------------------------------
 *
 * rpin_link.h
 *	  A connection to a replica, as the sampler needs it.
 *
 * The sampler knows connections through this table of functions only, so a test
 * can put another one in its place.  The one over libpq is in rpin_link.c.
 *
 * No function throws, or frees what it did not make.  None waits for the other
 * side; but libpq reads the password and key files, resolves names, and does
 * whatever work the other side's messages ask of it.  A link belongs to
 * the process that opened it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_LINK_H
#define RPIN_LINK_H

#include "../core/rpin_list.h"
#include "../core/rpin_pace.h"
#include "../core/rpin_sample.h"

typedef struct RpinLink RpinLink;

/* What came of looking at a link. */
typedef enum RpinProgress
{
	RPIN_PROGRESS_NONE,			/* look again when the socket is ready */
	RPIN_PROGRESS_CONNECTED,
	RPIN_PROGRESS_PREPARED,
	RPIN_PROGRESS_REPORT,		/* *report is filled */
	RPIN_PROGRESS_FAILED		/* failure() and message() say why */
} RpinProgress;

typedef struct RpinLinkOps
{
	/*
	 * Begins to connect.  Never NULL, unless there is no memory; a failure at
	 * once shows in the first advance().  The pace gives its time limits.
	 */
	RpinLink   *(*open) (const RpinAddress *address, const char *conninfo,
						 const RpinPace *pace);

	/* Ends the connection and frees the link. */
	void		(*close) (RpinLink *link);

	/* Send; what comes of it shows in advance(). */
	void		(*prepare) (RpinLink *link);
	void		(*request) (RpinLink *link);

	/* Looks what has come.  Called when the socket is ready, or was made. */
	RpinProgress (*advance) (RpinLink *link, RpinReport *report);

	/* What to wait for: the socket, or -1; WL_SOCKET_READABLE and so on. */
	int			(*socket) (const RpinLink *link);
	uint32		(*interest) (const RpinLink *link);

	/* After RPIN_PROGRESS_FAILED.  The text is ASCII, one line, no secret. */
	RpinState	(*failure) (const RpinLink *link);
	const char *(*message) (const RpinLink *link);
} RpinLinkOps;

extern const RpinLinkOps rpin_link_libpq;

#endif							/* RPIN_LINK_H */
