/*
 * hist_control.h
 *	  What the checker is told from outside while it runs: lines in a FIFO.
 *
 *	mark NAME			a fault begins or ends
 *	primary CONNINFO	there is a new primary
 *	stop				the end
 */
#ifndef HIST_CONTROL_H
#define HIST_CONTROL_H

#include <stdint.h>
#include <stdio.h>

/* When there was a mark last; long ago if never. */
extern int64_t hist_control_last_mark(void);

/* When the present primary was known to be it; the end of time if it never changed. */
extern int64_t hist_control_failover_at(void);

/* How often a mark was given. */
extern int	hist_control_marks(const char *name);

/* "marks": [ ... ] */
extern void hist_control_json(FILE *file);

#endif							/* HIST_CONTROL_H */
