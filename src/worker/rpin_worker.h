/*-------------------------------------------------------------------------
 *
 * rpin_worker.h
 *	  The sampler process.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_WORKER_H
#define RPIN_WORKER_H

/* The settings of the same names; times in ms. */
extern char *rpin_replicas;
extern char *rpin_conninfo;
extern int	rpin_sample_interval;
extern int	rpin_min_sample_interval;
extern int	rpin_sample_timeout;

/*
 * Registers the process.  While shared_preload_libraries is loaded only.
 *
 * It has shared memory and no database: it never stands in the way of DROP
 * DATABASE, and has no row in pg_stat_activity.  Its face is its process title
 * and the view replica_pin.status.
 */
extern void rpin_worker_register(void);

extern PGDLLEXPORT void rpin_worker_main(Datum argument);

#endif							/* RPIN_WORKER_H */
