/*-------------------------------------------------------------------------
 *
 * rpin_compat.h
 *	  Everything that differs between the PostgreSQL versions we build with.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_COMPAT_H
#define RPIN_COMPAT_H

/* The reader of messages is linked into programs as well. */
#ifdef FRONTEND
#include "postgres_fe.h"
#else
#include "postgres.h"

#include "utils/jsonb.h"
#include "utils/wait_event.h"
#endif

#if PG_VERSION_NUM < 150000
#error "replica_pin needs PostgreSQL 15 or later"
#endif

/* 17: a wait event set belongs to a resource owner, NULL for the process. */
#if PG_VERSION_NUM >= 170000
#define rpin_create_wait_event_set(size) CreateWaitEventSet(NULL, size)
#else
#define rpin_create_wait_event_set(size) \
	CreateWaitEventSet(TopMemoryContext, size)
#endif

/* 16: what the parser calls answers whether to go on. */
#if PG_VERSION_NUM >= 160000
#define RpinJsonResult JsonParseErrorType
#define RPIN_JSON_GO_ON return JSON_SUCCESS
#else
#define RpinJsonResult void
#define RPIN_JSON_GO_ON return
#endif

/*
 * 17: a lexer is made in memory of the caller's, or of its own.  Without the
 * wish for escapes it allocates nothing but itself.
 */
#if PG_VERSION_NUM >= 170000
#define rpin_json_lexer(data, length, encoding) \
	makeJsonLexContextCstringLen(NULL, data, length, encoding, false)
#define rpin_json_lexer_free(lexer) freeJsonLexContext(lexer)
#else
#define rpin_json_lexer(data, length, encoding) \
	makeJsonLexContextCstringLen(data, length, encoding, false)
#define rpin_json_lexer_free(lexer) pfree(lexer)
#endif

/* 18: said before the declaration, not behind it. */
#ifndef pg_noreturn
#define pg_noreturn _Noreturn
#endif

#ifndef FRONTEND

/* 19: the state of building a jsonb has its result, too. */
#if PG_VERSION_NUM >= 190000
typedef JsonbInState RpinJsonbState;
#define rpin_jsonb_push(state, token, value) pushJsonbValue(state, token, value)
#else
typedef struct RpinJsonbState
{
	JsonbParseState *parse;
	JsonbValue *result;
} RpinJsonbState;
#define rpin_jsonb_push(state, token, value) \
	((void) ((state)->result = pushJsonbValue(&(state)->parse, token, value)))
#endif

/* 17: what a process waits for may have a name; it is asked for once. */
#if PG_VERSION_NUM >= 170000
#define rpin_wait_event(name) WaitEventExtensionNew(name)
#else
#define rpin_wait_event(name) PG_WAIT_EXTENSION
#endif

/* 18: a library may say what it is. */
#ifdef PG_MODULE_MAGIC_EXT
#define RPIN_MODULE_MAGIC PG_MODULE_MAGIC_EXT(.name = "replica_pin", .version = RPIN_VERSION)
#else
#define RPIN_MODULE_MAGIC PG_MODULE_MAGIC
#endif

/* 19: the server writes both halves of a WAL position in full. */
#if PG_VERSION_NUM >= 190000
#define RPIN_LSN_FORMAT "%X/%08X"
#else
#define RPIN_LSN_FORMAT "%X/%X"
#endif

#endif							/* FRONTEND */

#endif							/* RPIN_COMPAT_H */
