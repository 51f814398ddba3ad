/*-------------------------------------------------------------------------
 *
 * rpin_views.h
 *	  What functions that show the board have in common.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_VIEWS_H
#define RPIN_VIEWS_H

#include "../shmem/rpin_board.h"

/* A copy of the board, of one moment.  Needs shared memory.  May throw. */
extern RpinBoard *rpin_views_board(void);

/* The settings that the sampler had to lower, by name; answers how many. */
extern int	rpin_views_clamped(int clamped,
							   const char *name[RPIN_CLAMPED_COUNT]);

/* A span of microseconds as an interval; a negative one is none.  May throw. */
extern Datum rpin_views_interval(int64 microseconds);

#endif							/* RPIN_VIEWS_H */
