/*-------------------------------------------------------------------------
 *
 * rpin_clock.h
 *	  The one clock by which samples age.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_CLOCK_H
#define RPIN_CLOCK_H

#include <time.h>

/*
 * Monotonic microseconds, the same in every process of the machine.  Where the
 * system has a clock that also counts the time it was suspended, that one: a
 * sample from before a suspend must be old afterwards (P1).
 */
static inline int64
rpin_clock_now(void)
{
	struct timespec now;

#ifdef CLOCK_BOOTTIME
	clock_gettime(CLOCK_BOOTTIME, &now);
#else
	clock_gettime(CLOCK_MONOTONIC, &now);
#endif
	return (int64) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

#endif							/* RPIN_CLOCK_H */
