/*-------------------------------------------------------------------------
 *
 * test_pace.c
 *	  Clamping, the time between samples, back-off and its jitter.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_test.h"

#include "rpin_pace.h"

#define MS INT64_C(1000)
#define SECOND INT64_C(1000000)

/* sample_interval, min_sample_interval, sample_timeout, sample_lifetime */
static const RpinPace defaults = {250 * MS, 2 * MS, SECOND, 5 * SECOND};

/* From a microsecond to a day, every magnitude alike. */
static int64_t
random_time(void)
{
	return 1 + (int64_t) rpin_test_below(UINT64_C(2) << rpin_test_below(36));
}

static RpinPace
random_pace(void)
{
	RpinPace	pace = {random_time(), random_time(), random_time(),
	random_time()};

	return pace;
}

static void
assert_clamped(RpinPace pace, RpinPace expected, int lowered)
{
	assert_int_equal(rpin_pace_clamp(&pace), lowered);
	assert_memory_equal(&pace, &expected, sizeof(pace));
}

static void
test_clamp(void **state)
{
	const int	all = RPIN_CLAMPED_INTERVAL | RPIN_CLAMPED_TIMEOUT |
		RPIN_CLAMPED_MIN_INTERVAL;

	assert_clamped(defaults, defaults, 0);
	assert_clamped((RpinPace) {1250 * MS, 1250 * MS, 2500 * MS, 5 * SECOND},
				   (RpinPace) {1250 * MS, 1250 * MS, 2500 * MS, 5 * SECOND}, 0);
	assert_clamped((RpinPace) {1250 * MS + 1, 2 * MS, SECOND, 5 * SECOND},
				   (RpinPace) {1250 * MS, 2 * MS, SECOND, 5 * SECOND},
				   RPIN_CLAMPED_INTERVAL);
	assert_clamped((RpinPace) {250 * MS, 2 * MS, 2500 * MS + 1, 5 * SECOND},
				   (RpinPace) {250 * MS, 2 * MS, 2500 * MS, 5 * SECOND},
				   RPIN_CLAMPED_TIMEOUT);
	assert_clamped((RpinPace) {250 * MS, 250 * MS + 1, SECOND, 5 * SECOND},
				   (RpinPace) {250 * MS, 250 * MS, SECOND, 5 * SECOND},
				   RPIN_CLAMPED_MIN_INTERVAL);

	/* The minimum goes by the interval that was lowered itself. */
	assert_clamped((RpinPace) {SECOND, 900 * MS, SECOND, 100 * MS},
				   (RpinPace) {25 * MS, 25 * MS, 50 * MS, 100 * MS}, all);
}

static void
test_clamp_fits(void **state)
{
	for (uint64_t i = rpin_test_rounds(100000); i > 0; i--)
	{
		RpinPace	before = random_pace();
		RpinPace	after = before;
		RpinPace	again;
		int			lowered = rpin_pace_clamp(&after);

		assert_true(after.sample_lifetime == before.sample_lifetime);
		assert_true(after.sample_interval <= after.sample_lifetime / 4);
		assert_true(after.sample_timeout <= after.sample_lifetime / 2);
		assert_true(after.min_sample_interval <= after.sample_interval);

		/* Lowers nothing further than it must, and says what it lowered. */
		assert_true(after.sample_interval == before.sample_interval ||
					after.sample_interval == after.sample_lifetime / 4);
		assert_true(after.sample_timeout == before.sample_timeout ||
					after.sample_timeout == after.sample_lifetime / 2);
		assert_true(after.min_sample_interval == before.min_sample_interval ||
					after.min_sample_interval == after.sample_interval);
		assert_int_equal(!!(lowered & RPIN_CLAMPED_INTERVAL),
						 after.sample_interval < before.sample_interval);
		assert_int_equal(!!(lowered & RPIN_CLAMPED_TIMEOUT),
						 after.sample_timeout < before.sample_timeout);
		assert_int_equal(!!(lowered & RPIN_CLAMPED_MIN_INTERVAL),
						 after.min_sample_interval < before.min_sample_interval);

		again = after;
		assert_int_equal(rpin_pace_clamp(&again), 0);
		assert_memory_equal(&again, &after, sizeof(after));
	}
}

static void
test_interval(void **state)
{
	static const struct
	{
		int64_t		lag;
		int			replicas;
		int64_t		expected;
	}			cases[] =
	{
		/* nothing waits */
		{-1, 1, 250 * MS}, {INT64_MIN, 1, 250 * MS}, {-1, 64, 250 * MS},
		/* a tenth of the lag, within bounds */
		{0, 1, 2 * MS}, {2 * MS, 1, 2 * MS}, {20 * MS, 1, 2 * MS},
		{21 * MS, 1, 2100}, {SECOND, 1, 100 * MS}, {2499 * MS, 1, 249900},
		{2500 * MS, 1, 250 * MS}, {3600 * SECOND, 1, 250 * MS},
		{INT64_MAX, 1, 250 * MS},
		/* the minimum grows with the number of replicas */
		{0, 0, 2 * MS}, {0, 8, 2 * MS}, {0, 9, 2250}, {0, 12, 3 * MS},
		{0, 64, 16 * MS}, {SECOND, 64, 100 * MS}, {0, 100000, 250 * MS},
	};

	for (size_t i = 0; i < lengthof(cases); i++)
		assert_int_equal(rpin_pace_interval(&defaults, cases[i].lag,
											cases[i].replicas),
						 cases[i].expected);
}

/* Within the bounds, and never shorter for more lag or more replicas. */
static void
test_interval_is_monotone(void **state)
{
	for (uint64_t i = rpin_test_rounds(100000); i > 0; i--)
	{
		RpinPace	pace = random_pace();
		int64_t		lag = random_time();
		int			replicas = (int) rpin_test_below(64);
		int64_t		interval;

		rpin_pace_clamp(&pace);
		interval = rpin_pace_interval(&pace, lag, replicas);
		assert_true(interval >= pace.min_sample_interval);
		assert_true(interval <= pace.sample_interval);
		assert_true(interval >= lag / 10 || interval == pace.sample_interval);
		assert_true(rpin_pace_interval(&pace, lag + random_time(), replicas) >=
					interval);
		assert_true(rpin_pace_interval(&pace, lag, replicas + 1) >= interval);
	}
}

static void
test_backoff(void **state)
{
	static const int64_t expected[] = {
		250 * MS, 500 * MS, SECOND, 2 * SECOND, 4 * SECOND, 5 * SECOND,
		5 * SECOND, 5 * SECOND,
	};
	static const RpinPace slow = {8 * SECOND, 2 * MS, SECOND, 60 * SECOND};
	int64_t		rest = 0;

	for (size_t i = 0; i < lengthof(expected); i++)
	{
		rest = rpin_pace_backoff(&defaults, rest);
		assert_int_equal(rest, expected[i]);
	}

	/* A heartbeat longer than the cap is itself the cap. */
	assert_int_equal(rpin_pace_backoff(&slow, 0), 8 * SECOND);
	assert_int_equal(rpin_pace_backoff(&slow, 8 * SECOND), 8 * SECOND);

	/* It was longer before a reload. */
	assert_int_equal(rpin_pace_backoff(&defaults, 8 * SECOND), 5 * SECOND);
}

static void
test_backoff_grows_to_its_cap(void **state)
{
	for (uint64_t i = rpin_test_rounds(10000); i > 0; i--)
	{
		RpinPace	pace = random_pace();
		int64_t		cap;
		int64_t		rest;

		rpin_pace_clamp(&pace);
		if (pace.sample_interval == 0)
			continue;
		cap = pace.sample_interval > RPIN_BACKOFF_CAP
			? pace.sample_interval : RPIN_BACKOFF_CAP;
		rest = rpin_pace_backoff(&pace, 0);
		assert_true(rest == pace.sample_interval);
		for (int failure = 0; failure < 64; failure++)
		{
			int64_t		next = rpin_pace_backoff(&pace, rest);

			assert_true(next <= cap);
			assert_true(next == cap || next == 2 * rest);
			assert_true(next >= rest);
			rest = next;
		}
		assert_true(rest == cap);
	}
}

static void
test_jitter(void **state)
{
	assert_int_equal(rpin_pace_jitter(1000, 0), 750);
	assert_int_equal(rpin_pace_jitter(1000, UINT32_MAX), 1250);
	assert_int_equal(rpin_pace_jitter(0, UINT32_MAX), 0);

	for (uint64_t i = rpin_test_rounds(200000); i > 0; i--)
	{
		int64_t		rest = random_time();
		uint32_t	random = (uint32_t) rpin_test_random();
		int64_t		spread = rpin_pace_jitter(rest, random);

		assert_true(4 * spread >= 3 * rest);
		assert_true(4 * spread <= 5 * rest);
		if (random < UINT32_MAX)
			assert_true(rpin_pace_jitter(rest, random + 1) >= spread);
	}
}

/* Replicas that failed together do part: each tenth of the range is used. */
static void
test_jitter_spreads(void **state)
{
	int			seen[10] = {0};

	for (int i = 0; i < 10000; i++)
	{
		int64_t		spread = rpin_pace_jitter(SECOND,
											  (uint32_t) rpin_test_random());
		int64_t		tenth = (spread - 750 * MS) / (50 * MS);

		seen[tenth < 10 ? tenth : 9]++;
	}
	for (int tenth = 0; tenth < 10; tenth++)
		assert_uint_in_range(seen[tenth], 500, 1500);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clamp),
		cmocka_unit_test(test_clamp_fits),
		cmocka_unit_test(test_interval),
		cmocka_unit_test(test_interval_is_monotone),
		cmocka_unit_test(test_backoff),
		cmocka_unit_test(test_backoff_grows_to_its_cap),
		cmocka_unit_test(test_jitter),
		cmocka_unit_test(test_jitter_spreads),
	};

	rpin_test_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
