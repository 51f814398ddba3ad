/*-------------------------------------------------------------------------
 *
 * rpin_test_schedule.h
 *	  Runs coroutines in every order there is.
 *
 * A coroutine goes on until it comes to rpin_test_step(); what stands between
 * two stops happens at once.  At every stop anyone may go on: all sequences of
 * such picks are gone through, from the beginning each time.
 *
 * A sequence is left where it comes to a state that was seen before: the same
 * shared memory, and the same values read by each coroutine at its stops.  From
 * there everything goes as it went.  So a coroutine must hold nothing of shared
 * memory but the words it stopped at; whatever else it reads goes straight into
 * shared memory that is part of the state.  Where it stops with no word, by
 * rpin_test_step(NULL), it must hold nothing at all, and what it read before is
 * forgotten.
 *
 * Coroutines must not use cmocka, whose failures jump.  They take notes, and
 * the calls below judge them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_TEST_SCHEDULE_H
#define RPIN_TEST_SCHEDULE_H

#include "rpin_test.h"

typedef struct RpinTestCalls
{
	void		(*begin) (void);	/* brings shared memory to its beginning */
	void		(*check) (void);	/* looks at it after every step */
	void		(*end) (void);	/* and when all have come to their end */
	uint64_t	(*state) (void);	/* a hash of all of it */
} RpinTestCalls;

/* The coroutines of the next run. */
extern void rpin_test_schedule_clear(void);
extern void rpin_test_schedule_add(void (*body) (int argument), int argument);

/* Runs them in every order.  Prints how many different states there were. */
extern void rpin_test_schedule_run(const RpinTestCalls *calls);

/* Adds memory of whole words to a hash. */
extern uint64_t rpin_test_hash(uint64_t hash, const void *memory, size_t size);

#endif							/* RPIN_TEST_SCHEDULE_H */
