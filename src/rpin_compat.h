/*-------------------------------------------------------------------------
 *
 * rpin_compat.h
 *	  Everything that differs between the PostgreSQL versions we build with.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_COMPAT_H
#define RPIN_COMPAT_H

#ifdef FRONTEND
#include "postgres_fe.h"
#else
#include "postgres.h"
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

#endif							/* RPIN_COMPAT_H */
