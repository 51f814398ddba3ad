/*-------------------------------------------------------------------------
 *
 * test_history.c
 *	  Timeline histories: reading the files as servers write them and as
 *	  accidents leave them, and what a position means afterwards.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_test.h"

#include "rpin_history.h"

#define LSN(high, low) ((UINT64_C(high) << 32) | UINT64_C(low))

static const uint64_t CLUSTER = UINT64_C(0x6A5B4C3D2E1F0987);

/* Third promotion of a server, as PostgreSQL 15 writes it. */
static const char real_file[] =
	"1\t0/3000148\tno recovery target specified\n"
	"\n"
	"2\t0/5F000A0\tafter LSN 0/5F00028\n"
	"\n"
	"3\tA/FE0000D8\tbefore 2024-02-29 23:59:59.999999+00\n";

static bool
parse(const char *text, size_t length, uint32_t timeline, RpinHistory *history)
{
	char	   *copy = rpin_test_copy(text, length);
	bool		parsed;

	/* Nothing of an earlier history may shine through. */
	memset(history, 0xEE, sizeof(*history));
	parsed = rpin_history_parse(copy, length, timeline, history);
	free(copy);
	assert_int_equal(history->timeline, timeline);
	if (!parsed)
		assert_int_equal(history->count, 0);
	return parsed;
}

static void
assert_refused(const char *text, size_t length, uint32_t timeline)
{
	RpinHistory history;

	if (parse(text, length, timeline, &history))
		fail_msg("accepted \"%.*s\"", (int) length, text);
}

static void
assert_ancestors(const char *text, uint32_t timeline,
				 const RpinAncestor *expected, uint32_t count)
{
	RpinHistory history;

	if (!parse(text, strlen(text), timeline, &history))
		fail_msg("refused \"%s\"", text);
	assert_int_equal(history.count, count);
	for (uint32_t i = 0; i < count; i++)
	{
		assert_int_equal(history.ancestor[i].timeline, expected[i].timeline);
		assert_int_equal(history.ancestor[i].switch_lsn,
						 expected[i].switch_lsn);
	}
	assert_int_equal(rpin_history_begin(&history),
					 count > 0 ? expected[count - 1].switch_lsn : 0);
}

static const RpinAncestor real_ancestors[] = {
	{1, LSN(0, 0x3000148)}, {2, LSN(0, 0x5F000A0)}, {3, LSN(0xA, 0xFE0000D8)},
};

static void
test_real_files(void **state)
{
	static const RpinAncestor extremes[] = {
		{1, 1}, {UINT32_MAX - 1, UINT64_MAX},
	};

	assert_ancestors("", 1, NULL, 0);
	assert_ancestors(real_file, 4, real_ancestors, 3);
	assert_ancestors("1\t0/3000148\tno recovery target specified\n", 2,
					 real_ancestors, 1);

	/* A timeline number may have been skipped. */
	assert_ancestors(real_file, 17, real_ancestors, 3);
	assert_ancestors("1\t0/1\t\n4294967294\tFFFFFFFF/FFFFFFFF\t\n", UINT32_MAX,
					 extremes, 2);
}

/* The same three ancestors as other hands would write them. */
static void
test_lenient_forms(void **state)
{
	assert_ancestors("1\t0/3000148\n2\t0/5F000A0\n3\tA/FE0000D8", 4,
					 real_ancestors, 3);
	assert_ancestors("1\t0/3000148\tx\r\n\r\n2\t0/5F000A0\tx\r\n"
					 "3\tA/FE0000D8\tx\r\n", 4, real_ancestors, 3);
	assert_ancestors("# written by hand\n  \t \n1\t0/3000148\t# not a comment\n"
					 "   # indented\n2\t0/5F000A0\t\n#3\t0/6000000\t\n"
					 "3\tA/FE0000D8\t\n\n\n#", 4, real_ancestors, 3);
	assert_ancestors("  1 0/3000148 x\n2   00/05f000a0 x\n"
					 "0003\t\ta/fe0000d8 x\n", 4, real_ancestors, 3);
}

static void
test_garbage(void **state)
{
	static const char *const texts[] =
	{
		"x", "-", "\f", "1", "1\t", "1\t0", "1\t0/", "1\t/3000148", "\t0/3000148",
		"1\t0/\n3000148", "1\n0/3000148", "1\t0\t/3000148", "1\t0-3000148",
		"-1\t0/3000148", "+1\t0/3000148", "0x1\t0/3000148", "1\t0/x3000148",
		"one\t0/3000148",
		/* numbers that mean nothing */
		"0\t0/3000148", "1\t0/0", "1\t00000000/00000000",
		/* numbers that do not fit */
		"4294967296\t0/3000148", "4294967297\t0/3000148",
		"18446744073709551617\t0/3000148", "1\t100000000/3000148",
		"1\t0/100000000", "1\t0/10000000000000001",
		/* a good line does not help */
		"1\t0/3000148\tx\ngarbage", "garbage\n1\t0/3000148\tx\n",
		"1\t0/3000148\tx\n2\n",
	};

	for (size_t i = 0; i < lengthof(texts); i++)
		assert_refused(texts[i], strlen(texts[i]), UINT32_MAX);
	assert_refused("\0", 1, UINT32_MAX);
	assert_refused("1\t0/3000148\tx\n\0\0\0\0", 18, UINT32_MAX);
}

static void
test_out_of_order(void **state)
{
	static const char *const texts[] =
	{
		"2\t0/5F000A0\t\n1\t0/3000148\t\n",
		"1\t0/3000148\t\n3\t0/5F000A0\t\n2\tA/FE0000D8\t\n",
		"1\t0/3000148\t\n1\t0/3000148\t\n",
		"1\t0/3000148\t\n2\t0/5F000A0\t\n4\tA/FE0000D8\t\n",
		"1\t0/3000148\t\n5\t0/5F000A0\t\n",
	};

	for (size_t i = 0; i < lengthof(texts); i++)
		assert_refused(texts[i], strlen(texts[i]), 4);

	/* The first timeline has no ancestors, and no timeline is no history. */
	assert_refused("1\t0/3000148\t\n", 13, 1);
	assert_refused("1\t0/3000148\t\n", 13, 0);
}

/*
 * Wherever the file was cut off: nothing is read behind the end, and what is
 * left claims no more of any timeline than the whole file does.
 */
static void
test_truncated_file(void **state)
{
	size_t		length = strlen(real_file);

	for (size_t cut = 0; cut <= length; cut++)
	{
		RpinHistory history;

		if (!parse(real_file, cut, 4, &history))
			continue;
		assert_true(history.count <= lengthof(real_ancestors));
		for (uint32_t i = 0; i < history.count; i++)
		{
			assert_int_equal(history.ancestor[i].timeline,
							 real_ancestors[i].timeline);
			assert_true(history.ancestor[i].switch_lsn <=
						real_ancestors[i].switch_lsn);
		}
	}
}

static void
test_random_damage(void **state)
{
	static const char alphabet[] = "0123456789ABF\t\t/\n\n #x\r";

	for (uint64_t i = rpin_test_rounds(200000); i > 0; i--)
	{
		char		text[sizeof(real_file)];
		size_t		length = rpin_test_below(sizeof(text));
		RpinHistory history;
		uint32_t	timeline = (uint32_t) rpin_test_below(12);
		uint32_t	last = 0;

		memcpy(text, real_file, sizeof(text));
		for (uint64_t damage = rpin_test_below(6); damage > 0; damage--)
			text[rpin_test_below(sizeof(text))] =
				alphabet[rpin_test_below(sizeof(alphabet))];

		if (!parse(text, length, timeline, &history))
			continue;
		for (uint32_t a = 0; a < history.count; a++)
		{
			assert_true(history.ancestor[a].timeline > last);
			assert_true(history.ancestor[a].switch_lsn != 0);
			last = history.ancestor[a].timeline;
		}
		assert_true(history.count == 0 || last < timeline);
	}
}

/* A file of `count` ancestors; ancestor i ends at i << 32. */
static char *
long_file(uint32_t count)
{
	char	   *text = malloc(count * 64 + 1);
	size_t		length = 0;

	assert_non_null(text);
	text[0] = '\0';
	for (uint32_t i = 1; i <= count; i++)
		length += (size_t) sprintf(text + length, "%u\t%X/0\tx\n\n", i, i);
	return text;
}

static void
test_many_ancestors(void **state)
{
	for (uint32_t count = 0; count < 3 * RPIN_HISTORY_ANCESTORS; count++)
	{
		char	   *text = long_file(count);
		uint32_t	kept = count < RPIN_HISTORY_ANCESTORS
			? count : RPIN_HISTORY_ANCESTORS;
		RpinHistory history;

		assert_true(parse(text, strlen(text), count + 1, &history));
		assert_int_equal(history.count, kept);
		for (uint32_t i = 0; i < kept; i++)
		{
			uint32_t	timeline = count - kept + 1 + i;

			assert_int_equal(history.ancestor[i].timeline, timeline);
			assert_int_equal(history.ancestor[i].switch_lsn,
							 (uint64_t) timeline << 32);
		}

		/* The youngest ancestor may not be as young as the timeline itself. */
		if (count > 0)
			assert_false(parse(text, strlen(text), count, &history));
		free(text);
	}
}

static void
test_same(void **state)
{
	RpinHistory first = {.timeline = 1};
	RpinHistory third = {.timeline = 3, .count = 2,
	.ancestor = {{1, 1000}, {2, 2000}}};
	RpinHistory without_file = {.timeline = 3};
	RpinHistory unknown = {.timeline = 0};

	assert_true(rpin_history_same(&first, 1, 0));
	assert_false(rpin_history_same(&first, 1, 1000));
	assert_false(rpin_history_same(&first, 2, 0));
	assert_false(rpin_history_same(&first, 2, 1000));
	assert_false(rpin_history_same(&first, 0, 0));

	assert_true(rpin_history_same(&third, 3, 2000));
	assert_false(rpin_history_same(&third, 3, 1999));
	assert_false(rpin_history_same(&third, 3, 2001));
	assert_false(rpin_history_same(&third, 3, 1000));
	assert_false(rpin_history_same(&third, 3, 0));
	assert_false(rpin_history_same(&third, 2, 1000));
	assert_false(rpin_history_same(&third, 4, 2000));
	assert_false(rpin_history_same(&third, 1, 0));
	assert_false(rpin_history_same(&third, 0, 0));

	/* Two who do not know where it began do not know that it is the same. */
	assert_false(rpin_history_same(&without_file, 3, 0));
	assert_false(rpin_history_same(&without_file, 3, 2000));
	assert_false(rpin_history_same(&without_file, 1, 0));

	for (uint32_t timeline = 0; timeline < 3; timeline++)
		for (uint64_t begin = 0; begin < 3; begin++)
			assert_false(rpin_history_same(&unknown, timeline, begin));
}

static void
assert_resolved(const RpinHistory *history, uint64_t end,
				RpinPosition position, RpinReason expected)
{
	const uint64_t untouched = 0xDEFACED;
	uint64_t	lsn = untouched;
	RpinReason	reason = rpin_history_resolve(history, CLUSTER, end,
											  &position, &lsn);

	if (reason != expected)
		fail_msg("timeline %u, lsn %llu: %d, not %d", position.timeline,
				 (unsigned long long) position.lsn, reason, expected);
	assert_int_equal(lsn, reason == RPIN_REASON_NONE ? position.lsn : untouched);
}

static void
test_resolve(void **state)
{
	static const RpinHistory history = {.timeline = 7, .count = 3,
	.ancestor = {{2, 1000}, {3, 2000}, {5, 3000}}};
	static const struct
	{
		uint32_t	timeline;
		uint64_t	lsn;
		RpinReason	expected;
	}			cases[] =
	{
		/* the current timeline, up to the end of its WAL */
		{7, 1, RPIN_REASON_NONE},
		{7, 3000, RPIN_REASON_NONE},
		{7, 8999, RPIN_REASON_NONE},
		{7, 9000, RPIN_REASON_NONE},
		{7, 9001, RPIN_REASON_POSITION_IN_FUTURE},
		{7, UINT64_MAX, RPIN_REASON_POSITION_IN_FUTURE},
		/* each ancestor, up to where it was left */
		{2, 1, RPIN_REASON_NONE},
		{2, 999, RPIN_REASON_NONE},
		{2, 1000, RPIN_REASON_NONE},
		{2, 1001, RPIN_REASON_WRITE_LOST},
		{3, 1001, RPIN_REASON_NONE},
		{3, 1999, RPIN_REASON_NONE},
		{3, 2000, RPIN_REASON_NONE},
		{3, 2001, RPIN_REASON_WRITE_LOST},
		{5, 2999, RPIN_REASON_NONE},
		{5, 3000, RPIN_REASON_NONE},
		{5, 3001, RPIN_REASON_WRITE_LOST},
		{5, 9001, RPIN_REASON_WRITE_LOST},
		{5, UINT64_MAX, RPIN_REASON_WRITE_LOST},
		/* no timeline of this history: older, skipped, younger */
		{1, 1, RPIN_REASON_UNKNOWN_TIMELINE},
		{4, 1, RPIN_REASON_UNKNOWN_TIMELINE},
		{6, 1, RPIN_REASON_UNKNOWN_TIMELINE},
		{8, 1, RPIN_REASON_UNKNOWN_TIMELINE},
		{UINT32_MAX, 1, RPIN_REASON_UNKNOWN_TIMELINE},
	};

	for (size_t i = 0; i < lengthof(cases); i++)
	{
		RpinPosition position = {CLUSTER, cases[i].timeline, cases[i].lsn};

		assert_resolved(&history, 9000, position, cases[i].expected);

		/* Of another cluster nothing compares, however well it looks. */
		position.system_identifier = CLUSTER + 1;
		assert_resolved(&history, 9000, position, RPIN_REASON_WRONG_CLUSTER);
		position.system_identifier = 0;
		assert_resolved(&history, 9000, position, RPIN_REASON_WRONG_CLUSTER);
	}
}

/* While the history is not known, no timeline of a token is. */
static void
test_resolve_without_history(void **state)
{
	static const RpinHistory unknown = {.timeline = 0};
	static const RpinHistory without_file = {.timeline = 3};

	for (uint32_t timeline = 1; timeline < 5; timeline++)
	{
		RpinPosition position = {CLUSTER, timeline, 1};

		assert_resolved(&unknown, 9000, position, RPIN_REASON_UNKNOWN_TIMELINE);
		assert_resolved(&without_file, 9000, position, timeline == 3
						? RPIN_REASON_NONE : RPIN_REASON_UNKNOWN_TIMELINE);
	}
}

/*
 * The file of a server that was recovered, on the latest timeline, to a point
 * before that timeline began: it names the grandparent's switch point as it was,
 * and then its own parent's, before it.  What the grandparent wrote in between
 * is not part of this server's WAL.
 */
static void
test_resolve_beyond_a_younger_switch(void **state)
{
	static const char text[] =
		"1\t0/5000000\tno recovery target specified\n\n"
		"2\t0/300FB38\tafter LSN 0/300FAF8\n";
	static const struct
	{
		uint32_t	timeline;
		uint64_t	lsn;
		RpinReason	expected;
	}			cases[] =
	{
		{1, LSN(0, 0x300FB38), RPIN_REASON_NONE},
		{1, LSN(0, 0x300FB39), RPIN_REASON_WRITE_LOST},
		{1, LSN(0, 0x5000000), RPIN_REASON_WRITE_LOST},
		{2, LSN(0, 0x300FB38), RPIN_REASON_NONE},
		{2, LSN(0, 0x300FB39), RPIN_REASON_WRITE_LOST},
	};
	RpinHistory history;

	assert_true(parse(text, strlen(text), 3, &history));
	for (size_t i = 0; i < lengthof(cases); i++)
	{
		RpinPosition position = {CLUSTER, cases[i].timeline, cases[i].lsn};

		assert_resolved(&history, LSN(0, 0x6000000), position, cases[i].expected);
	}
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_real_files),
		cmocka_unit_test(test_lenient_forms),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_out_of_order),
		cmocka_unit_test(test_truncated_file),
		cmocka_unit_test(test_random_damage),
		cmocka_unit_test(test_many_ancestors),
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_resolve),
		cmocka_unit_test(test_resolve_without_history),
		cmocka_unit_test(test_resolve_beyond_a_younger_switch),
	};

	rpin_test_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
