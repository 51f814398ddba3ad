/*-------------------------------------------------------------------------
 *
 * rpin_atomic.h
 *	  Atomic access to words in shared memory.
 *
 * Every access is sequentially consistent.  The order of the reads and writes
 * of the fast path is a safety argument (see rpin_table.h); with one total
 * order over all of them that argument can be made on paper, and a model of it
 * is a model of the code.  The cost on common hardware is a full barrier at a
 * write and nothing at a read.
 *
 * RPIN_ATOMIC_STEP is empty in the product.  The interleaving test defines it
 * to hand control to another thread of execution before each access, and so
 * runs this very code in every order.
 *
 * Nothing here throws, allocates or waits.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_ATOMIC_H
#define RPIN_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#ifndef RPIN_ATOMIC_STEP
#define RPIN_ATOMIC_STEP() ((void) 0)
#endif

static inline uint64_t
rpin_atomic_read(const uint64_t *word)
{
	RPIN_ATOMIC_STEP();
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static inline void
rpin_atomic_write(uint64_t *word, uint64_t value)
{
	RPIN_ATOMIC_STEP();
	__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

static inline void
rpin_atomic_add(uint64_t *word, uint64_t value)
{
	RPIN_ATOMIC_STEP();
	(void) __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST);
}

static inline void
rpin_atomic_subtract(uint64_t *word, uint64_t value)
{
	RPIN_ATOMIC_STEP();
	(void) __atomic_fetch_sub(word, value, __ATOMIC_SEQ_CST);
}

/* Writes value if the word is still expected.  True when it was. */
static inline bool
rpin_atomic_swap(uint64_t *word, uint64_t expected, uint64_t value)
{
	RPIN_ATOMIC_STEP();
	return __atomic_compare_exchange_n(word, &expected, value, false,
									   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* Writes value; what was there before. */
static inline uint64_t
rpin_atomic_exchange(uint64_t *word, uint64_t value)
{
	RPIN_ATOMIC_STEP();
	return __atomic_exchange_n(word, value, __ATOMIC_SEQ_CST);
}

/* Raises the word to value, never lowers it.  True when it was raised. */
static inline bool
rpin_atomic_raise(uint64_t *word, uint64_t value)
{
	uint64_t	seen = rpin_atomic_read(word);

	while (seen < value)
	{
		if (rpin_atomic_swap(word, seen, value))
			return true;
		seen = rpin_atomic_read(word);
	}
	return false;
}

#endif							/* RPIN_ATOMIC_H */
