/*-------------------------------------------------------------------------
 *
 * rpin_compat.h
 *	  Everything that differs between the PostgreSQL versions we build with.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_COMPAT_H
#define RPIN_COMPAT_H

#include "postgres.h"

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

#endif							/* RPIN_COMPAT_H */
