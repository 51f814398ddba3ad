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
 * Both in the commit path: do not wait and do not throw.  The first remembers a
 * commit, the second, called when any transaction has ended, hands out the token
 * of the last one unless a statement is still running.
 */
extern void rpin_push_commit(XLogRecPtr lsn);
extern void rpin_push_unsent(void);

#endif							/* RPIN_PUSH_H */
