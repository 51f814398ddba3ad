/*-------------------------------------------------------------------------
 *
 * rpin_test_step.h
 *	  Included before everything else in the core of test_interleave: makes
 *	  every atomic access a place where another coroutine may go on.
 *
 * `word` is the parameter of every function of rpin_atomic.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_TEST_STEP_H
#define RPIN_TEST_STEP_H

#include <stdint.h>

/* Stops, before an access to this word if any.  See rpin_test_schedule.h. */
extern void rpin_test_step(const uint64_t *word);

#define RPIN_ATOMIC_STEP() rpin_test_step(word)

#endif							/* RPIN_TEST_STEP_H */
