/*-------------------------------------------------------------------------
 *
 * test_atomic.c
 *	  The atomic accesses: what each does alone, and that nothing is lost when
 *	  several threads do them at once.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_test.h"

#include <pthread.h>

#include "rpin_atomic.h"

#define THREADS 4
#define ROUNDS 20000

typedef struct Shared
{
	uint64_t	sum;
	uint64_t	swaps;
	uint64_t	bag;			/* ones that nobody has taken out yet */
	uint64_t	taken;			/* and that somebody has */
	uint64_t	greatest;
	uint64_t	raised;			/* how often it was */
	uint64_t	lowered;		/* how often somebody saw it shrink */
} Shared;

static void
test_alone(void **state)
{
	uint64_t	word = 5;

	assert_int_equal(rpin_atomic_read(&word), 5);
	rpin_atomic_write(&word, UINT64_MAX);
	assert_int_equal(word, UINT64_MAX);
	rpin_atomic_add(&word, 8);
	assert_int_equal(word, 7);
	rpin_atomic_subtract(&word, 8);
	assert_int_equal(word, UINT64_MAX);

	assert_false(rpin_atomic_swap(&word, 5, 6));
	assert_int_equal(word, UINT64_MAX);
	assert_true(rpin_atomic_swap(&word, UINT64_MAX, 6));
	assert_int_equal(word, 6);

	assert_int_equal(rpin_atomic_exchange(&word, 9), 6);
	assert_int_equal(rpin_atomic_exchange(&word, 6), 9);
	assert_int_equal(word, 6);

	assert_false(rpin_atomic_raise(&word, 5));
	assert_false(rpin_atomic_raise(&word, 6));
	assert_int_equal(word, 6);
	assert_true(rpin_atomic_raise(&word, 7));
	assert_int_equal(word, 7);
}

static void *
work(void *argument)
{
	Shared	   *shared = argument;
	uint64_t	last = 0;

	for (uint64_t i = 1; i <= ROUNDS; i++)
	{
		uint64_t	seen;

		rpin_atomic_add(&shared->sum, 3);
		rpin_atomic_subtract(&shared->sum, 1);
		do
			seen = rpin_atomic_read(&shared->swaps);
		while (!rpin_atomic_swap(&shared->swaps, seen, seen + 1));

		rpin_atomic_add(&shared->bag, 1);
		rpin_atomic_add(&shared->taken, rpin_atomic_exchange(&shared->bag, 0));

		if (rpin_atomic_raise(&shared->greatest, i))
			rpin_atomic_add(&shared->raised, 1);
		seen = rpin_atomic_read(&shared->greatest);
		if (seen < i || seen < last)
			rpin_atomic_add(&shared->lowered, 1);
		last = seen;
	}
	return NULL;
}

static void
test_threads(void **state)
{
	static Shared shared;
	pthread_t	thread[THREADS];

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, work, &shared), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);

	assert_int_equal(shared.sum, 2 * THREADS * ROUNDS);
	assert_int_equal(shared.swaps, THREADS * ROUNDS);
	assert_int_equal(shared.bag + shared.taken, THREADS * ROUNDS);
	assert_int_equal(shared.greatest, ROUNDS);
	assert_int_equal(shared.lowered, 0);

	/* Each value raises it for one of them at most. */
	assert_uint_in_range(shared.raised, 1, ROUNDS);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_threads),
	};

	rpin_test_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
