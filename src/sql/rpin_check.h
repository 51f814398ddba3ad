/*-------------------------------------------------------------------------
 *
 * rpin_check.h
 *	  Refusing what cannot be done here.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_CHECK_H
#define RPIN_CHECK_H

#include "../core/rpin_reason.h"
#include "../rpin_compat.h"

/* ERROR 55000, with a hint, unless the library was preloaded. */
extern void rpin_check_preloaded(void);

/* ERROR 25006, with a hint, on a server in recovery. */
extern void rpin_check_primary(void);

/*
 * ERROR for a position that rpin_board_resolve() did not accept, if any: the
 * message, detail and hint of the reason.
 */
extern void rpin_check_position(RpinReason reason);

/* ERROR with this SQLSTATE for a text that is no token. */
pg_noreturn extern void rpin_refuse_token(int sqlstate, const char *hint);

#endif							/* RPIN_CHECK_H */
