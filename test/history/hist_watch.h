/*
 * hist_watch.h
 *	  Where every replica is, asked by the checker itself, about once a
 *	  millisecond and over a connection of its own.
 *
 * An observation says: somewhere between `asked` and `answered` the replica had
 * replayed up to `lsn`.  Only those of the present connection are kept, so of one
 * life of the replica, in which its position only grows.
 */
#ifndef HIST_WATCH_H
#define HIST_WATCH_H

#include <stdbool.h>
#include <stdint.h>

/* Begins to watch each replica of the options, in a thread each. */
extern void hist_watch_start(void);
extern void hist_watch_join(void);

/* At `when` the replica had been proven to be there, and is in the same life. */
extern bool hist_watch_was_there(int replica, uint64_t lsn, int64_t when);

/*
 * Since `when` every replica answered in time: the machine is not so busy that
 * nobody gets his turn.
 */
extern bool hist_watch_was_steady(int64_t when, int64_t longest);

/* The last moment at which it may have been short; 0 if nobody knows. */
extern int64_t hist_watch_crossing(int replica, uint64_t lsn);

#endif							/* HIST_WATCH_H */
