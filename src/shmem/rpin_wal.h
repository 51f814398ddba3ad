/*-------------------------------------------------------------------------
 *
 * rpin_wal.h
 *	  This server's positions in the WAL, and its timeline history.
 *
 * LSN are bytes.  Nothing here takes a lock of ours.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_WAL_H
#define RPIN_WAL_H

#include "access/xlogdefs.h"

#include "../core/rpin_history.h"

/*
 * The end of the last record inserted.  Not in recovery.  Does not throw.
 *
 * GetXLogInsertRecPtr() is where the next record will start: after a record
 * that ends a page that is behind the next page's header, a position that an
 * idle replica never reaches.  GetXLogInsertEndRecPtr() has the end, but only in
 * recent minor releases, and a library that needs it does not load in others.
 */
extern XLogRecPtr rpin_wal_end(void);

/* The same step back for a position from elsewhere.  No record ends where it
 * changes anything. */
extern XLogRecPtr rpin_wal_end_of(XLogRecPtr insert);

/*
 * The same, for a position that a client will wait for: asks the WAL writer to
 * flush it, since what is not flushed is not sent (up to wal_writer_delay,
 * rather than until somebody commits).  Costs a spinlock and a latch.
 */
extern XLogRecPtr rpin_wal_end_flushed_soon(void);

/* A position of the timeline that this server is on, writing or replaying. */
extern RpinPosition rpin_wal_position(XLogRecPtr lsn);

/*
 * Reads the history file of a timeline from pg_wal into *history.  A missing or
 * damaged file gives a history without ancestors: fewer positions can be
 * compared, none wrongly.  Reads one small file; does not throw.
 *
 * Not readTimeLineHistory(): that one is FATAL on a damaged file, and a backend
 * of a replica has to read its own switch point too.
 */
extern void rpin_wal_read_history(TimeLineID timeline, RpinHistory *history);

#endif							/* RPIN_WAL_H */
