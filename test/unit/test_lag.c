/*-------------------------------------------------------------------------
 *
 * test_lag.c
 *	  The history of (position, time) against one that keeps everything.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_test.h"

#include "rpin_lag.h"

#define MS INT64_C(1000)
#define SECOND INT64_C(1000000)
#define HOUR (3600 * SECOND)

/* How a run spaces its notes. */
typedef int64_t (*Spacing) (void);

static int64_t
dense(void)
{
	return (int64_t) rpin_test_below(300);
}

static int64_t
steady(void)
{
	return 20 * MS;
}

static int64_t
scattered(void)
{
	return (int64_t) rpin_test_below(UINT64_C(1) << rpin_test_below(26));
}

/* Bursts of commits, and long silences between them. */
static int64_t
bursts(void)
{
	return (int64_t) (rpin_test_one_in(200)
					  ? rpin_test_below(60 * SECOND) : rpin_test_below(2 * MS));
}

/* Everything that was noted, in order. */
typedef struct Exact
{
	size_t		count;
	RpinLagEntry *entry;
} Exact;

/* The first entry beyond a position, or count. */
static size_t
exact_since(const Exact *exact, uint64_t position)
{
	size_t		low = 0;
	size_t		high = exact->count;

	while (low < high)
	{
		size_t		middle = (low + high) / 2;

		if (exact->entry[middle].position > position)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/*
 * What the header promises of an answer.  The entry before the exact one may be
 * a sixteenth of its age away from the one that is answered, which is a
 * fifteenth of the exact one's age.
 */
static void
assert_bound(int64_t exact, int64_t answer, int64_t now)
{
	int64_t		late = answer - exact;

	assert_true(late >= 0);
	if (late > RPIN_LAG_GRAIN && late * 15 > now - exact)
		fail_msg("late by %lld at an age of %lld", (long long) late,
				 (long long) (now - exact));
}

static void
ask(const RpinLag *lag, const Exact *exact, uint64_t position, int64_t now)
{
	size_t		first = exact_since(exact, position);
	int64_t		answer = rpin_lag_since(lag, position);

	if (first == exact->count)
		assert_int_equal(answer, -1);
	else
		assert_bound(exact->entry[first].time, answer, now);
}

static uint64_t
random_position(const Exact *exact)
{
	size_t		which;

	if (exact->count == 0)
		return rpin_test_below(10);

	/* Half of them among the youngest. */
	which = rpin_test_below(exact->count);
	if (rpin_test_one_in(2) && exact->count > 100)
		which = exact->count - 1 - rpin_test_below(100);
	return exact->entry[which].position + rpin_test_below(3) - 1;
}

static void
run(Spacing spacing, int64_t until)
{
	size_t		most = rpin_test_rounds(120000);
	Exact		exact = {0, malloc(most * sizeof(RpinLagEntry))};
	RpinLag    *lag = malloc(sizeof(RpinLag));
	uint64_t	position = 1000;
	int64_t		now = (int64_t) rpin_test_below(1000 * SECOND);

	until += now;
	assert_non_null(exact.entry);
	assert_non_null(lag);
	rpin_lag_init(lag);
	while (exact.count < most && now < until)
	{
		now += spacing();
		position += rpin_test_below(4) * 100;
		rpin_lag_note(lag, position, now);
		if (exact.count == 0 ||
			exact.entry[exact.count - 1].position < position)
			exact.entry[exact.count++] = (RpinLagEntry) {position, now};

		assert_uint_in_range(lag->count, 1, RPIN_LAG_ENTRIES);
		ask(lag, &exact, random_position(&exact), now);
		if (rpin_test_one_in(2000))
			for (size_t i = 0; i < exact.count; i++)
				ask(lag, &exact, exact.entry[i].position - 1, now);
	}
	free(exact.entry);
	free(lag);
}

static void
test_bounds_dense(void **state)
{
	run(dense, HOUR);
}

static void
test_bounds_steady(void **state)
{
	run(steady, 8 * HOUR);
}

static void
test_bounds_scattered(void **state)
{
	run(scattered, 1000 * HOUR);
}

static void
test_bounds_bursts(void **state)
{
	run(bursts, 24 * HOUR);
}

/*
 * A month, one note every 100 ms.  Note number n is of position n, so that the
 * exact history needs no memory.
 */
static void
test_a_month(void **state)
{
	const int64_t tick = 100 * MS;
	uint64_t	last = rpin_test_rounds(30 * 24 * HOUR / tick);
	RpinLag    *lag = malloc(sizeof(RpinLag));

	assert_non_null(lag);
	rpin_lag_init(lag);
	for (uint64_t n = 1; n <= last; n++)
		rpin_lag_note(lag, n, (int64_t) n * tick);

	assert_int_equal(rpin_lag_since(lag, last), -1);
	for (uint64_t behind = 1; behind <= last; behind += 1 + behind / 1000)
	{
		uint64_t	position = last - behind;

		assert_bound((int64_t) (position + 1) * tick,
					 rpin_lag_since(lag, position), (int64_t) last * tick);
	}
	free(lag);
}

static void
test_empty_and_small(void **state)
{
	RpinLag    *lag = malloc(sizeof(RpinLag));

	assert_non_null(lag);
	memset(lag, 0xEE, sizeof(*lag));
	rpin_lag_init(lag);
	assert_int_equal(rpin_lag_since(lag, 0), -1);
	assert_int_equal(rpin_lag_since(lag, UINT64_MAX), -1);

	rpin_lag_note(lag, 100, 5);
	assert_int_equal(rpin_lag_since(lag, 0), 5);
	assert_int_equal(rpin_lag_since(lag, 99), 5);
	assert_int_equal(rpin_lag_since(lag, 100), -1);

	/* What did not grow is ignored: the first time stands. */
	rpin_lag_note(lag, 100, 6);
	rpin_lag_note(lag, 50, 7);
	assert_int_equal(rpin_lag_since(lag, 0), 5);
	assert_int_equal(rpin_lag_since(lag, 99), 5);
	assert_int_equal(rpin_lag_since(lag, 100), -1);

	rpin_lag_note(lag, 101, 8);
	assert_int_equal(rpin_lag_since(lag, 99), 5);
	assert_int_equal(rpin_lag_since(lag, 100), 8);
	assert_int_equal(rpin_lag_since(lag, 101), -1);

	rpin_lag_note(lag, UINT64_MAX, 9);
	assert_int_equal(rpin_lag_since(lag, UINT64_MAX - 1), 9);
	assert_int_equal(rpin_lag_since(lag, UINT64_MAX), -1);
	free(lag);
}

/* A clock that stands still, runs backwards, or goes through all it has. */
static int64_t
odd_clock(int kind, int64_t now)
{
	switch (kind)
	{
		case 0:
			return now;
		case 1:
			return now > 0 ? now - 1 : INT64_MAX;
		case 2:
			return now ^ (rpin_test_one_in(2) ? INT64_MAX : 0);
		default:
			return (int64_t) (rpin_test_random() >> (1 + rpin_test_below(63)));
	}
}

/*
 * Nothing can be said of the answer then but that it is a time at which the
 * position had been exceeded, and that it is none when it never was.
 */
static void
test_odd_clocks(void **state)
{
	uint64_t	most = rpin_test_rounds(20000);
	int64_t    *time = malloc((most + 1) * sizeof(int64_t));
	RpinLag    *lag = malloc(sizeof(RpinLag));

	assert_non_null(time);
	assert_non_null(lag);
	for (int kind = 0; kind < 4; kind++)
	{
		rpin_lag_init(lag);
		time[0] = kind == 0 ? 0 : INT64_MAX;
		for (uint64_t n = 1; n <= most; n++)
		{
			uint64_t	asked = n - 1 - rpin_test_below(n < 50 ? n : 50);
			uint64_t	found = asked + 1;
			int64_t		answer;

			time[n] = odd_clock(kind, time[n - 1]);
			rpin_lag_note(lag, n, time[n]);
			assert_uint_in_range(lag->count, 1, RPIN_LAG_ENTRIES);
			assert_int_equal(rpin_lag_since(lag, n), -1);

			answer = rpin_lag_since(lag, asked);
			while (found <= n && time[found] != answer)
				found++;
			assert_true(found <= n);
		}
	}
	free(time);
	free(lag);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty_and_small),
		cmocka_unit_test(test_bounds_dense),
		cmocka_unit_test(test_bounds_steady),
		cmocka_unit_test(test_bounds_scattered),
		cmocka_unit_test(test_bounds_bursts),
		cmocka_unit_test(test_a_month),
		cmocka_unit_test(test_odd_clocks),
	};

	rpin_test_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
