/*-------------------------------------------------------------------------
 *
 * rpin_shmem.h
 *	  The one request for shared memory, and what is drawn at each start.
 *
 * Lock order of the extension.  The only locks are the partition locks of
 * rpin_keys.c.  Nobody holds two of them, and nothing that waits, throws or
 * allocates happens under one.  The board has no lock (rpin_board.h).  The
 * server's WAL functions are called with none of ours held.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_SHMEM_H
#define RPIN_SHMEM_H

/*
 * Installs the hooks.  Only while shared_preload_libraries is loaded, after the
 * postmaster settings are defined.
 */
extern void rpin_shmem_install(void);

/* Was the library preloaded?  Then everything in src/shmem may be used. */
extern bool rpin_shmem_available(void);

/* Bytes of all of it. */
extern Size rpin_shmem_size(void);

/* 64 bits of the server's strong random source, never 0.  FATAL without one. */
extern uint64 rpin_shmem_random(void);

#endif							/* RPIN_SHMEM_H */
