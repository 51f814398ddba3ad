/*-------------------------------------------------------------------------
 *
 * test_table.c
 *	  The table of session keys, case by case.  See test_table_random.c for
 *	  the same against an exact map.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_test.h"

#include "rpin_table.h"

static RpinTable *
make_table(uint64_t keys)
{
	size_t		size = rpin_table_size(keys);
	RpinTable  *table = aligned_alloc(RPIN_CACHE_LINE, size);

	assert_non_null(table);
	memset(table, 0xEE, size);
	rpin_table_init(table, keys);
	return table;
}

/* All keys of a table of one bucket share it, so small numbers will do. */
static RpinTable *
one_bucket(void)
{
	RpinTable  *table = make_table(RPIN_BUCKET_SLOTS);

	assert_int_equal(table->bucket_count, 1);
	return table;
}

static void
assert_lookup(const RpinTable *table, uint64_t fingerprint, uint64_t lsn)
{
	RpinLookup	lookup = rpin_table_lookup(table, fingerprint);

	assert_int_equal(lookup.lsn, lsn);
	assert_false(lookup.pending);
}

static void
record(RpinTable *table, uint64_t fingerprint, uint64_t lsn,
	   RpinRecorded expected)
{
	assert_int_equal(rpin_table_record(table, fingerprint, lsn), expected);
}

static void
test_size(void **state)
{
	static const uint64_t keys[] = {
		0, 1, 2, 3, 4, 5, 6, 7, 100, 262144, 1000000007
	};

	for (size_t i = 0; i < lengthof(keys); i++)
	{
		size_t		size = rpin_table_size(keys[i]);
		uint64_t	buckets = (size - sizeof(RpinTable)) / sizeof(RpinBucket);

		assert_int_equal(size % RPIN_CACHE_LINE, 0);
		assert_true(buckets >= 1);
		assert_true(buckets * RPIN_BUCKET_SLOTS >= keys[i]);
		assert_true(buckets == 1 || (buckets - 1) * RPIN_BUCKET_SLOTS < keys[i]);
	}
}

static void
test_new_table_is_empty(void **state)
{
	for (uint64_t keys = 0; keys < 20; keys++)
	{
		RpinTable  *table = make_table(keys);
		uint64_t	required = 77;

		assert_int_equal(rpin_table_floor(table), 0);
		assert_int_equal(rpin_table_greatest(table), 0);
		assert_false(rpin_table_quiet(table, &required));
		for (uint64_t n = 0; n < 100; n++)
			assert_lookup(table, rpin_test_random(), 0);
		assert_lookup(table, 0, 0);
		assert_lookup(table, UINT64_MAX, 0);
		free(table);
	}
}

/* Every bucket is used, equally, and none that does not exist. */
static void
test_bucket(void **state)
{
	for (uint64_t keys = 0; keys < 300; keys += 1 + keys / 5)
	{
		RpinTable  *table = make_table(keys);
		uint64_t	count = table->bucket_count;
		uint64_t   *used = calloc(count, sizeof(uint64_t));

		assert_non_null(used);
		assert_int_equal(rpin_table_bucket(table, 0), 0);
		assert_int_equal(rpin_table_bucket(table, UINT64_MAX), count - 1);
		for (uint64_t n = 0; n < 1000 * count; n++)
		{
			uint64_t	bucket = rpin_table_bucket(table, rpin_test_random());

			assert_true(bucket < count);
			used[bucket]++;
		}
		for (uint64_t bucket = 0; bucket < count; bucket++)
			assert_uint_in_range(used[bucket], 700, 1300);
		free(used);
		free(table);
	}
}

static void
test_record(void **state)
{
	RpinTable  *table = one_bucket();

	record(table, 1, 100, RPIN_RECORDED_NEW);
	record(table, 2, 300, RPIN_RECORDED_NEW);
	assert_lookup(table, 1, 100);
	assert_lookup(table, 2, 300);
	assert_lookup(table, 3, 0);

	/* The greater position stands, whichever came last. */
	record(table, 1, 150, RPIN_RECORDED_RAISED);
	assert_lookup(table, 1, 150);
	record(table, 1, 120, RPIN_RECORDED_RAISED);
	record(table, 1, 150, RPIN_RECORDED_RAISED);
	assert_lookup(table, 1, 150);
	assert_lookup(table, 2, 300);
	free(table);
}

/* Fingerprints are all alike: 0 is one of them, and no free slot is its. */
static void
test_extreme_fingerprints(void **state)
{
	RpinTable  *table = one_bucket();

	record(table, UINT64_MAX, UINT64_MAX, RPIN_RECORDED_NEW);
	assert_lookup(table, 0, 0);
	record(table, 0, 50, RPIN_RECORDED_NEW);
	assert_lookup(table, 0, 50);
	record(table, 0, 60, RPIN_RECORDED_RAISED);
	assert_lookup(table, 0, 60);
	assert_lookup(table, UINT64_MAX, UINT64_MAX);
	record(table, 1, 1, RPIN_RECORDED_NEW);
	assert_lookup(table, 1, 1);
	free(table);
}

/* Keys that differ in one bit are two keys. */
static void
test_similar_fingerprints(void **state)
{
	for (int bit = 0; bit < 64; bit++)
	{
		RpinTable  *table = one_bucket();
		uint64_t	fingerprint = rpin_test_random();
		uint64_t	other = fingerprint ^ (UINT64_C(1) << bit);

		record(table, fingerprint, 100, RPIN_RECORDED_NEW);
		assert_lookup(table, other, 0);
		record(table, other, 50, RPIN_RECORDED_NEW);
		assert_lookup(table, fingerprint, 100);
		assert_lookup(table, other, 50);
		free(table);
	}
}

/* The bucket is full of 1, 2, 3 at 100, 200, 300. */
static RpinTable *
full_bucket(void)
{
	RpinTable  *table = one_bucket();

	record(table, 2, 200, RPIN_RECORDED_NEW);
	record(table, 1, 100, RPIN_RECORDED_NEW);
	record(table, 3, 300, RPIN_RECORDED_NEW);
	return table;
}

static void
test_eviction_raises_the_floor(void **state)
{
	RpinTable  *table = full_bucket();

	record(table, 4, 400, RPIN_RECORDED_EVICTED);
	assert_lookup(table, 1, 100);
	assert_lookup(table, 2, 200);
	assert_lookup(table, 3, 300);
	assert_lookup(table, 4, 400);

	/* Now the floor stands for every key that has no slot, and no other. */
	assert_lookup(table, 5, 100);
	record(table, 5, 250, RPIN_RECORDED_EVICTED);
	assert_lookup(table, 1, 200);
	assert_lookup(table, 2, 200);
	assert_lookup(table, 3, 300);
	assert_lookup(table, 5, 250);
	assert_lookup(table, 6, 200);

	/* The key comes back, at its old position and at a new one. */
	record(table, 1, 100, RPIN_RECORDED_COVERED);
	assert_lookup(table, 1, 200);
	record(table, 1, 500, RPIN_RECORDED_EVICTED);
	assert_lookup(table, 1, 500);
	assert_lookup(table, 5, 250);
	assert_lookup(table, 6, 250);
	free(table);
}

/* A key below all others that have a slot evicts none of them. */
static void
test_lowest_of_all_is_evicted_itself(void **state)
{
	RpinTable  *table = full_bucket();

	record(table, 4, 50, RPIN_RECORDED_EVICTED);
	assert_lookup(table, 4, 50);
	assert_lookup(table, 5, 50);
	assert_lookup(table, 1, 100);
	record(table, 4, 50, RPIN_RECORDED_COVERED);
	record(table, 5, 40, RPIN_RECORDED_COVERED);
	assert_lookup(table, 5, 50);
	record(table, 5, 51, RPIN_RECORDED_EVICTED);
	assert_lookup(table, 4, 51);
	assert_lookup(table, 1, 100);

	/* As low as the lowest: either may go, both stand at that position. */
	record(table, 6, 100, RPIN_RECORDED_EVICTED);
	assert_lookup(table, 6, 100);
	assert_lookup(table, 1, 100);
	assert_lookup(table, 2, 200);
	assert_lookup(table, 3, 300);
	free(table);
}

static void
test_global_floor(void **state)
{
	RpinTable  *table = one_bucket();
	uint64_t	required = 77;

	record(table, 1, 100, RPIN_RECORDED_NEW);
	assert_true(rpin_table_raise_greatest(table, 100));
	assert_false(rpin_table_quiet(table, &required));
	assert_int_equal(required, 77);

	rpin_table_raise_floor(table, 500);
	assert_int_equal(rpin_table_floor(table), 500);
	assert_int_equal(rpin_table_greatest(table), 500);
	assert_lookup(table, 1, 500);
	assert_lookup(table, 2, 500);
	assert_true(rpin_table_quiet(table, &required));
	assert_int_equal(required, 500);

	/* Raised, never lowered; a key beyond it keeps its own position. */
	rpin_table_raise_floor(table, 400);
	assert_int_equal(rpin_table_floor(table), 500);
	record(table, 1, 700, RPIN_RECORDED_RAISED);
	rpin_table_raise_floor(table, 600);
	assert_int_equal(rpin_table_floor(table), 600);
	assert_int_equal(rpin_table_greatest(table), 600);
	assert_lookup(table, 1, 700);
	assert_lookup(table, 2, 600);
	free(table);
}

/* Whose position it is: a slot's, or a floor's. */
static void
test_recorded(void **state)
{
	RpinTable  *table = one_bucket();

	assert_false(rpin_table_lookup(table, 0).recorded);
	rpin_table_raise_floor(table, 100);
	assert_false(rpin_table_lookup(table, 1).recorded);
	rpin_table_record(table, 1, 200);
	assert_true(rpin_table_lookup(table, 1).recorded);
	assert_false(rpin_table_lookup(table, 2).recorded);
	rpin_table_raise_floor(table, 300);
	assert_false(rpin_table_lookup(table, 1).recorded);
	free(table);
}

static void
test_floors_beyond(void **state)
{
	RpinTable  *table = make_table(RPIN_BUCKET_SLOTS * 1000);

	assert_int_equal(table->bucket_count, 1000);
	rpin_table_raise_floor(table, 1000);
	assert_int_equal(rpin_table_floors_beyond(table, 0), 0);
	for (int i = 0; i < 7; i++)
		table->bucket[i * 100].floor = 10 + i;
	assert_int_equal(rpin_table_floors_beyond(table, 9), 7);
	assert_int_equal(rpin_table_floors_beyond(table, 10), 6);
	assert_int_equal(rpin_table_floors_beyond(table, 16), 0);
	free(table);

	table = one_bucket();
	table->bucket[0].floor = 1;
	assert_int_equal(rpin_table_floors_beyond(table, 0), 1000);
	free(table);
}

static void
test_greatest(void **state)
{
	RpinTable  *table = one_bucket();
	uint64_t	required;

	rpin_table_raise_floor(table, 10);
	assert_false(rpin_table_raise_greatest(table, 9));
	assert_false(rpin_table_raise_greatest(table, 10));
	assert_int_equal(rpin_table_greatest(table), 10);
	assert_true(rpin_table_raise_greatest(table, 11));
	assert_true(rpin_table_raise_greatest(table, UINT64_MAX));
	assert_false(rpin_table_raise_greatest(table, 12));
	assert_int_equal(rpin_table_greatest(table), UINT64_MAX);
	assert_true(rpin_table_quiet(table, &required));
	assert_int_equal(required, UINT64_MAX);
	assert_int_equal(rpin_table_floor(table), 10);
	free(table);
}

static void
test_pending(void **state)
{
	RpinTable  *table = make_table(2 * RPIN_BUCKET_SLOTS);
	const uint64_t here = 1;
	const uint64_t same_bucket = 2;
	const uint64_t elsewhere = UINT64_MAX;
	uint64_t	required = 77;

	rpin_table_raise_floor(table, 10);
	rpin_table_pending_up(table, here);
	assert_int_equal(rpin_table_pending(table), 1);
	assert_true(rpin_table_lookup(table, here).pending);
	assert_true(rpin_table_lookup(table, same_bucket).pending);
	assert_false(rpin_table_lookup(table, elsewhere).pending);
	assert_false(rpin_table_quiet(table, &required));
	assert_int_equal(required, 77);

	rpin_table_pending_up(table, elsewhere);
	rpin_table_pending_up(table, same_bucket);
	rpin_table_pending_down(table, here);
	assert_true(rpin_table_lookup(table, here).pending);
	assert_true(rpin_table_lookup(table, elsewhere).pending);
	rpin_table_pending_down(table, same_bucket);
	assert_false(rpin_table_lookup(table, here).pending);
	assert_true(rpin_table_lookup(table, elsewhere).pending);
	assert_false(rpin_table_quiet(table, &required));
	rpin_table_pending_down(table, elsewhere);
	assert_false(rpin_table_lookup(table, elsewhere).pending);
	assert_true(rpin_table_quiet(table, &required));
	assert_int_equal(required, 10);

	/* It says that a position will come, and changes none. */
	record(table, here, 20, RPIN_RECORDED_NEW);
	rpin_table_pending_up(table, here);
	assert_int_equal(rpin_table_lookup(table, here).lsn, 20);
	assert_int_equal(rpin_table_lookup(table, same_bucket).lsn, 10);
	rpin_table_pending_down(table, here);
	assert_lookup(table, here, 20);
	free(table);
}

static void
test_pending_of_all_keys(void **state)
{
	RpinTable  *table = make_table(2 * RPIN_BUCKET_SLOTS);
	uint64_t	required = 77;

	rpin_table_raise_floor(table, 10);
	rpin_table_pending_all_up(table);
	rpin_table_pending_up(table, 1);
	assert_int_equal(rpin_table_pending(table), 2);
	assert_true(rpin_table_lookup(table, 1).pending);
	assert_true(rpin_table_lookup(table, UINT64_MAX).pending);
	assert_false(rpin_table_quiet(table, &required));

	rpin_table_pending_all_up(table);
	rpin_table_pending_all_down(table);
	rpin_table_pending_down(table, 1);
	assert_true(rpin_table_lookup(table, 1).pending);
	assert_true(rpin_table_lookup(table, UINT64_MAX).pending);
	assert_false(rpin_table_quiet(table, &required));
	assert_int_equal(rpin_table_pending(table), 1);

	rpin_table_pending_all_down(table);
	assert_int_equal(rpin_table_pending(table), 0);
	assert_lookup(table, 1, 10);
	assert_lookup(table, UINT64_MAX, 10);
	assert_true(rpin_table_quiet(table, &required));
	assert_int_equal(required, 10);
	free(table);
}

/* What only asks leaves no trace. */
static void
test_asking_changes_nothing(void **state)
{
	RpinTable  *table = full_bucket();
	size_t		size = rpin_table_size(RPIN_BUCKET_SLOTS);
	RpinTable  *before;
	uint64_t	required;

	rpin_table_raise_floor(table, 10);
	before = (RpinTable *) rpin_test_copy((char *) table, size);
	for (uint64_t fingerprint = 0; fingerprint < 10; fingerprint++)
		rpin_table_lookup(table, fingerprint);
	rpin_table_quiet(table, &required);
	rpin_table_floor(table);
	rpin_table_greatest(table);
	rpin_table_pending(table);
	rpin_table_bucket(table, 5);
	assert_memory_equal(table, before, size);
	free(before);
	free(table);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_new_table_is_empty),
		cmocka_unit_test(test_bucket),
		cmocka_unit_test(test_record),
		cmocka_unit_test(test_extreme_fingerprints),
		cmocka_unit_test(test_similar_fingerprints),
		cmocka_unit_test(test_eviction_raises_the_floor),
		cmocka_unit_test(test_lowest_of_all_is_evicted_itself),
		cmocka_unit_test(test_global_floor),
		cmocka_unit_test(test_greatest),
		cmocka_unit_test(test_recorded),
		cmocka_unit_test(test_floors_beyond),
		cmocka_unit_test(test_pending),
		cmocka_unit_test(test_pending_of_all_keys),
		cmocka_unit_test(test_asking_changes_nothing),
	};

	rpin_test_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
