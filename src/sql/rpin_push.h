/*-------------------------------------------------------------------------
 *
 * rpin_push.h
 *	  The token of a commit, handed to the client with the commit's answer.
 *
 * A ParameterStatus message, as the server sends one for a setting that
 * changed; client libraries keep the last value of each name.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_PUSH_H
#define RPIN_PUSH_H

#include "access/xlogdefs.h"

/* The setting of the same name. */
extern bool rpin_report_commit_token;

/*
 * Before the commit record: sends what earlier commits of this statement left
 * in the send buffer, if that is much.  May wait for the client, interruptibly,
 * as a NOTICE may; may throw.
 */
extern void rpin_push_make_room(void);

/* In the commit path.  Does not wait and does not throw. */
extern void rpin_push_token(XLogRecPtr lsn);

#endif							/* RPIN_PUSH_H */
