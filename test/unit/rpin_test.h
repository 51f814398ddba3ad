/*-------------------------------------------------------------------------
 *
 * rpin_test.h
 *	  What the unit tests share: cmocka, random numbers, the number of rounds.
 *
 * The seed is new in every run and printed first; RPIN_SEED repeats a run.
 * RPIN_ITERATIONS is an upper limit on the rounds of every random test.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_TEST_H
#define RPIN_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What cmocka 2 calls it. */
#ifndef assert_uint_in_range
#define assert_uint_in_range assert_in_range
#endif

#define lengthof(array) (sizeof(array) / sizeof((array)[0]))

/* Reads the settings and says the seed.  Call it first in main(). */
extern void rpin_test_begin(void);

/* `full`, or RPIN_ITERATIONS when that is less. */
extern uint64_t rpin_test_rounds(uint64_t full);

/* Random numbers: of 64 bits, below a limit, true once in so many times. */
extern uint64_t rpin_test_random(void);
extern uint64_t rpin_test_below(uint64_t limit);
extern bool rpin_test_one_in(uint64_t times);

/* Mixes a number to another one; no two numbers become the same. */
extern uint64_t rpin_test_mix(uint64_t number);

/*
 * A copy of exactly this many bytes on the heap, so that the sanitizer sees one
 * byte too many being read.  The caller frees it.
 */
extern char *rpin_test_copy(const char *bytes, size_t length);

#endif							/* RPIN_TEST_H */
