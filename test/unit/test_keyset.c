/*-------------------------------------------------------------------------
 *
 * test_keyset.c
 *	  The keys of a transaction: each once, in order, all when too many.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_test.h"

#include "rpin_keyset.h"

/* One set for all tests: they must find it empty and leave it so. */
static RpinKeyset set;

/* What it should hold, by the simplest means. */
typedef struct Plain
{
	bool		all;
	uint32_t	count;
	uint64_t	fingerprint[RPIN_KEYSET_SIZE];
} Plain;

static void
plain_add(Plain *plain, uint64_t fingerprint)
{
	for (uint32_t i = 0; i < plain->count; i++)
		if (plain->fingerprint[i] == fingerprint)
			return;
	if (plain->count == RPIN_KEYSET_SIZE)
		plain->all = true;
	else
		plain->fingerprint[plain->count++] = fingerprint;
}

static void
assert_holds(const Plain *plain)
{
	assert_int_equal(set.all, plain->all);
	assert_int_equal(set.count, plain->count);
	assert_memory_equal(set.fingerprint, plain->fingerprint,
						plain->count * sizeof(uint64_t));
	assert_int_equal(rpin_keyset_is_empty(&set),
					 !plain->all && plain->count == 0);
}

/* As good as new: nothing stands in the way of what is added next. */
static void
clear(void)
{
	rpin_keyset_clear(&set);
	assert_true(rpin_keyset_is_empty(&set));
	assert_false(set.all);
	assert_int_equal(set.count, 0);
	for (int i = 0; i < RPIN_KEYSET_INDEX; i++)
		assert_int_equal(set.index[i], 0);
}

static void
test_empty(void **state)
{
	Plain		nothing = {false, 0, {0}};

	assert_holds(&nothing);
	clear();
	clear();
	assert_holds(&nothing);
}

static void
test_each_once_in_order(void **state)
{
	static const uint64_t added[] = {7, 3, 7, 0, UINT64_MAX, 0, 3, 5};
	static const uint64_t held[] = {7, 3, 0, UINT64_MAX, 5};

	for (size_t i = 0; i < lengthof(added); i++)
		rpin_keyset_add(&set, added[i]);
	assert_int_equal(set.count, lengthof(held));
	assert_memory_equal(set.fingerprint, held, sizeof(held));
	assert_false(set.all);
	assert_false(rpin_keyset_is_empty(&set));
	clear();
}

static void
test_too_many_are_all(void **state)
{
	uint64_t	last = RPIN_KEYSET_SIZE;

	for (uint64_t key = 1; key <= last; key++)
		rpin_keyset_add(&set, rpin_test_mix(key));
	assert_int_equal(set.count, RPIN_KEYSET_SIZE);
	assert_false(set.all);

	/* One that is there already is not one too many. */
	for (uint64_t key = 1; key <= last; key++)
		rpin_keyset_add(&set, rpin_test_mix(key));
	assert_false(set.all);

	rpin_keyset_add(&set, rpin_test_mix(last + 1));
	assert_true(set.all);
	assert_false(rpin_keyset_is_empty(&set));
	rpin_keyset_add(&set, rpin_test_mix(1));
	rpin_keyset_add(&set, rpin_test_mix(last + 2));
	assert_true(set.all);
	assert_int_equal(set.count, RPIN_KEYSET_SIZE);
	for (uint64_t key = 1; key <= last; key++)
		assert_int_equal(set.fingerprint[key - 1], rpin_test_mix(key));
	clear();
}

/* All in one place of the index, at its end, so that the search wraps. */
static void
test_collisions(void **state)
{
	Plain		plain = {false, 0, {0}};

	for (uint64_t round = 0; round < 2; round++)
		for (uint64_t key = 0; key < 300; key++)
		{
			uint64_t	fingerprint = (key << 32) | (RPIN_KEYSET_INDEX - 1);

			rpin_keyset_add(&set, fingerprint);
			plain_add(&plain, fingerprint);
		}
	assert_int_equal(set.count, 300);
	assert_holds(&plain);
	clear();
}

/* Few or many different keys, evenly spread or not, set after set. */
static void
test_random_sets(void **state)
{
	for (uint64_t round = rpin_test_rounds(300); round > 0; round--)
	{
		Plain		plain = {false, 0, {0}};
		uint64_t	adds = rpin_test_below(1 << rpin_test_below(12));
		uint64_t	different = 1 + rpin_test_below(4000);
		uint64_t	mask = rpin_test_one_in(2) ? UINT64_MAX : 0xFFFF0000FF;

		while (adds-- > 0)
		{
			uint64_t	key = rpin_test_mix(rpin_test_below(different)) & mask;

			rpin_keyset_add(&set, key);
			plain_add(&plain, key);
		}
		assert_holds(&plain);
		clear();
	}
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_each_once_in_order),
		cmocka_unit_test(test_too_many_are_all),
		cmocka_unit_test(test_collisions),
		cmocka_unit_test(test_random_sets),
	};

	rpin_test_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
