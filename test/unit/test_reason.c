/*-------------------------------------------------------------------------
 *
 * test_reason.c
 *	  The names of the reasons.  Users read them, so they are written down here
 *	  a second time, and a name that changes fails.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_test.h"

#include <ctype.h>

#include "rpin_reason.h"

/*
 * All reasons that the documentation knows, first those that name a replica;
 * and whether a decision that is not enforced overrides them.
 */
static const struct
{
	const char *name;
	bool		overridable;
}			documented[] =

{
	{"in_sync", true},
	{"replica_caught_up", true},
	{"not_enforced", false},
	{"replicas_behind", true},
	{"commit_pending", true},
	{"in_write_transaction", true},
	{"no_replicas", false},
	{"samples_stale", false},
	{"no_session_key", true},
	{"token_unreadable", true},
	{"wal_locations_absent", true},
	{"envelope_unreadable", true},
	{"position_in_future", true},
	{"wrong_cluster", true},
	{"write_lost", true},
	{"unknown_timeline", true},
	{"not_primary", false},
	{"not_preloaded", false},
};

#define NAME_A_REPLICA 3

static const char *const constants[] = {
#define CONSTANT(constant, ...) #constant,
	RPIN_REASONS(CONSTANT)
};

static void
test_reasons_are_documented(void **state)
{
	for (int reason = RPIN_REASON_NONE + 1; reason < RPIN_REASON_COUNT; reason++)
	{
		const char *name = rpin_reason_name((RpinReason) reason);
		size_t		i = 0;

		while (i < lengthof(documented) &&
			   strcmp(documented[i].name, name) != 0)
			i++;
		if (i == lengthof(documented))
			fail_msg("\"%s\" is not documented", name);
		assert_int_equal(rpin_reason_is_overridable((RpinReason) reason),
						 documented[i].overridable);
	}
	assert_false(rpin_reason_is_overridable(RPIN_REASON_NONE));
}

static void
test_the_first_name_a_replica(void **state)
{
	for (int reason = RPIN_REASON_NONE; reason < RPIN_REASON_COUNT; reason++)
	{
		const char *name = rpin_reason_name((RpinReason) reason);
		bool		expected = false;

		for (size_t i = 0; i < NAME_A_REPLICA; i++)
			expected |= strcmp(documented[i].name, name) == 0;
		assert_int_equal(rpin_reason_names_replica((RpinReason) reason),
						 expected);
	}
}

/* So no two reasons can have exchanged their names. */
static void
test_name_is_the_constant(void **state)
{
	for (int reason = RPIN_REASON_NONE + 1; reason < RPIN_REASON_COUNT; reason++)
	{
		const char *name = rpin_reason_name((RpinReason) reason);
		const char *constant = constants[reason];

		assert_int_equal(strlen(name), strlen(constant));
		for (size_t i = 0; name[i] != '\0'; i++)
			assert_int_equal(toupper(name[i]), constant[i]);
	}
}

/* Code uses NONE, which stands first, as "nothing stands against this". */
static void
test_none_is_no_name(void **state)
{
	assert_int_equal(RPIN_REASON_NONE, 0);
	assert_string_equal(rpin_reason_name(RPIN_REASON_NONE), "");
}

static void
test_names_are_words_and_unique(void **state)
{
	for (int reason = RPIN_REASON_NONE + 1; reason < RPIN_REASON_COUNT; reason++)
	{
		const char *name = rpin_reason_name((RpinReason) reason);

		assert_non_null(name);
		assert_true(strlen(name) > 0);
		assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz_"),
						 strlen(name));
		for (int other = 0; other < reason; other++)
			assert_string_not_equal(name, rpin_reason_name((RpinReason) other));
	}
}

/* A meaning is a clause: it is shown alone, and in the middle of a sentence. */
static void
test_meanings_are_clauses(void **state)
{
	assert_string_equal(rpin_reason_meaning(RPIN_REASON_NONE), "");
	for (int reason = RPIN_REASON_NONE + 1; reason < RPIN_REASON_COUNT; reason++)
	{
		const char *meaning = rpin_reason_meaning((RpinReason) reason);

		assert_true(strlen(meaning) > 10);
		assert_true(islower(meaning[0]));
		assert_true(meaning[strlen(meaning) - 1] != '.');
		for (int other = 0; other < reason; other++)
			assert_string_not_equal(meaning, rpin_reason_meaning((RpinReason) other));
	}
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reasons_are_documented),
		cmocka_unit_test(test_the_first_name_a_replica),
		cmocka_unit_test(test_name_is_the_constant),
		cmocka_unit_test(test_none_is_no_name),
		cmocka_unit_test(test_names_are_words_and_unique),
		cmocka_unit_test(test_meanings_are_clauses),
	};

	rpin_test_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
