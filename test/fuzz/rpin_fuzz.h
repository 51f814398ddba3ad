/*-------------------------------------------------------------------------
 *
 * rpin_fuzz.h
 *	  What the fuzzer's targets share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_FUZZ_H
#define RPIN_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A longer input is not looked at: what we compare with is recursive. */
#define RPIN_FUZZ_LIMIT 4096

/* The fuzzer calls this with each input. */
extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the program, as a crash does, unless this holds. */
#define rpin_fuzz_check(condition) \
	((condition) ? (void) 0 : rpin_fuzz_fail(#condition, __FILE__, __LINE__))

extern void rpin_fuzz_fail(const char *condition, const char *file, int line)
			__attribute__((noreturn));

/*
 * Three strings one after the other, ending where memory ends, so that code
 * without instrumentation cannot read on either.  The memory is that of the call
 * before.
 */
extern const char *rpin_fuzz_fence(const char *before, const char *data,
								   size_t size, const char *behind);

/* Memory taken, and taken and not given back, since _begin(). */
typedef struct RpinFuzzMemory
{
	int			count;			/* allocations */
	size_t		bytes;			/* of all of them */
	int			kept;			/* of them not given back */
} RpinFuzzMemory;

extern void rpin_fuzz_memory_begin(void);
extern RpinFuzzMemory rpin_fuzz_memory_end(void);

#endif							/* RPIN_FUZZ_H */
