/*-------------------------------------------------------------------------
 *
 * test_sample.c
 *	  What a replica's report makes of it: by cases, and every report of a
 *	  small world against the rules stated a second time.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_test.h"

#include "rpin_sample.h"

#define CLUSTER UINT64_C(0x6A5B4C3D2E1F0987)
#define NODE UINT64_C(0x1122334455667788)
#define BEGIN 2000
#define END 9000

static const RpinHistory first = {.timeline = 1};
static const RpinHistory third = {.timeline = 3, .count = 2,
.ancestor = {{1, 1000}, {2, 2000}}};
static const RpinHistory without_file = {.timeline = 3};
static const RpinHistory unknown = {.timeline = 0};

/* One line per state: users read the names, so they never change. */
static const char *const names[] =
{
	[RPIN_STATE_CONNECTING] = "connecting",
	[RPIN_STATE_SAMPLED] = "sampled",
	[RPIN_STATE_SELF] = "self",
	[RPIN_STATE_AHEAD] = "ahead",
	[RPIN_STATE_OTHER_CLUSTER] = "other_cluster",
	[RPIN_STATE_OTHER_TIMELINE] = "other_timeline",
	[RPIN_STATE_NOT_A_REPLICA] = "not_a_replica",
	[RPIN_STATE_NO_POSITION] = "no_position",
	[RPIN_STATE_UNREACHABLE] = "unreachable",
	[RPIN_STATE_REFUSED] = "refused",
	[RPIN_STATE_AUTHENTICATION] = "authentication",
	[RPIN_STATE_STARTING_UP] = "starting_up",
	[RPIN_STATE_EXTENSION_MISSING] = "extension_missing",
	[RPIN_STATE_NO_PRIVILEGE] = "no_privilege",
	[RPIN_STATE_QUERY_FAILED] = "query_failed",
	[RPIN_STATE_CONNECTION_LOST] = "connection_lost",
	[RPIN_STATE_TIMED_OUT] = "timed_out",
	[RPIN_STATE_NONSENSE] = "nonsense",
};

static void
test_names(void **state)
{
	assert_int_equal(lengthof(names), RPIN_STATE_COUNT);
	for (int s = 0; s < RPIN_STATE_COUNT; s++)
	{
		const char *meaning = rpin_state_meaning((RpinState) s);

		assert_non_null(names[s]);
		assert_string_equal(rpin_state_name((RpinState) s), names[s]);
		assert_true(strlen(meaning) > strlen("ahead"));
		for (int other = 0; other < s; other++)
		{
			assert_string_not_equal(names[s], names[other]);
			assert_string_not_equal(meaning,
									rpin_state_meaning((RpinState) other));
		}
	}
}

/* A standby of this server that follows it, and lives elsewhere. */
#define GOOD .system_identifier = CLUSTER, .node_id = NODE + 1, \
	.in_recovery = true, .timeline = 3, .timeline_begin = BEGIN, \
	.replay_lsn = END

static void
assert_judged(RpinReport report, uint32_t ahead_timeline, RpinState expected)
{
	RpinIdentity identity = {CLUSTER, NODE, END, &third};

	assert_string_equal(rpin_state_name(rpin_sample_judge(&report, &identity,
														  ahead_timeline)),
						rpin_state_name(expected));
}

#pragma GCC diagnostic ignored "-Woverride-init"
#define judged(ahead, expected, ...) \
	assert_judged((RpinReport) {GOOD, __VA_ARGS__}, ahead, RPIN_STATE_##expected)

static void
test_each_state(void **state)
{
	judged(0, SAMPLED, .replay_lsn = END);
	judged(0, SAMPLED, .replay_lsn = 1);
	judged(0, SAMPLED, .node_id = 0);
	judged(0, SAMPLED, .replay_paused = true);
	judged(2, SAMPLED, .replay_lsn = END);

	judged(0, SELF, .node_id = NODE);
	judged(0, SELF, .node_id = NODE, .in_recovery = false);

	judged(0, OTHER_CLUSTER, .system_identifier = CLUSTER + 1);
	judged(0, OTHER_CLUSTER, .system_identifier = 0);
	judged(0, OTHER_CLUSTER, .system_identifier = CLUSTER + 1, .node_id = NODE);
	judged(0, OTHER_CLUSTER, .system_identifier = 0, .in_recovery = false);

	judged(0, NOT_A_REPLICA, .in_recovery = false);
	judged(3, NOT_A_REPLICA, .in_recovery = false);

	judged(0, OTHER_TIMELINE, .timeline = 2);
	judged(0, OTHER_TIMELINE, .timeline = 2, .timeline_begin = 1000);
	judged(0, OTHER_TIMELINE, .timeline = 4);
	judged(0, OTHER_TIMELINE, .timeline = 0);
	judged(0, OTHER_TIMELINE, .timeline_begin = BEGIN - 1);
	judged(0, OTHER_TIMELINE, .timeline_begin = BEGIN + 1);
	judged(0, OTHER_TIMELINE, .timeline_begin = 0);
	judged(0, OTHER_TIMELINE, .timeline = 2, .replay_lsn = END + 1);
	judged(2, OTHER_TIMELINE, .timeline = 2, .replay_lsn = END + 1);

	judged(0, NO_POSITION, .replay_lsn = 0);
	judged(3, NO_POSITION, .replay_lsn = 0);

	judged(0, AHEAD, .replay_lsn = END + 1);
	judged(0, AHEAD, .replay_lsn = UINT64_MAX);
	judged(2, AHEAD, .replay_lsn = END + 1);

	/* Once ahead, its numbers never look right again on that timeline. */
	judged(3, AHEAD, .replay_lsn = END);
	judged(3, AHEAD, .replay_lsn = 1);
}

/* A server that does not know its own node id is not everybody's self. */
static void
test_zero_is_nobody(void **state)
{
	RpinReport	report = {GOOD, .node_id = 0};
	RpinIdentity identity = {CLUSTER, 0, END, &third};

	assert_int_equal(rpin_sample_judge(&report, &identity, 0),
					 RPIN_STATE_SAMPLED);
}

/*
 * P8 for replicas, as a list of what must hold.  Where several things are wrong
 * the state says the one that stands first.
 */
static RpinState
naive(const RpinReport *report, const RpinIdentity *identity,
	  uint32_t ahead_timeline)
{
	const RpinHistory *history = identity->history;
	bool		is_first = history->timeline == 1;
	bool		knows_begin = history->count > 0;
	uint64_t	begin = knows_begin
		? history->ancestor[history->count - 1].switch_lsn : 0;
	bool		follows = history->timeline != 0 &&
		report->timeline == history->timeline &&
		(is_first ? report->timeline_begin == 0
		 : knows_begin && report->timeline_begin == begin);
	bool		was_ahead = ahead_timeline != 0 &&
		ahead_timeline == report->timeline;
	struct
	{
		bool		wrong;
		RpinState	means;
	}			rules[] =
	{
		{report->system_identifier != identity->system_identifier,
		RPIN_STATE_OTHER_CLUSTER},
		{report->node_id == identity->node_id && report->node_id != 0,
		RPIN_STATE_SELF},
		{!report->in_recovery, RPIN_STATE_NOT_A_REPLICA},
		{!follows, RPIN_STATE_OTHER_TIMELINE},
		{report->replay_lsn == 0, RPIN_STATE_NO_POSITION},
		{was_ahead || report->replay_lsn > identity->end, RPIN_STATE_AHEAD},
	};

	for (size_t i = 0; i < lengthof(rules); i++)
		if (rules[i].wrong)
			return rules[i].means;
	return RPIN_STATE_SAMPLED;
}

static void
check_report(const RpinReport *report, const RpinHistory *history,
			 bool *seen)
{
	RpinIdentity identity = {CLUSTER, NODE, END, history};

	for (uint32_t ahead = 0; ahead < 5; ahead++)
	{
		RpinState	judged_state = rpin_sample_judge(report, &identity, ahead);

		assert_int_equal(judged_state, naive(report, &identity, ahead));
		seen[judged_state] = true;
	}
}

/* Takes the last digit of a number of mixed radix. */
static uint32_t
digit(uint32_t *number, uint32_t radix)
{
	uint32_t	last = *number % radix;

	*number /= radix;
	return last;
}

/* Report number `number` of every combination of a few values of each field. */
static RpinReport
make_report(uint32_t number)
{
	static const uint64_t systems[] = {0, CLUSTER, CLUSTER + 1};
	static const uint64_t nodes[] = {0, NODE, NODE + 1};
	static const uint64_t begins[] = {0, 1, 1000, 1999, 2000, 2001};
	static const uint64_t lsns[] = {0, 1, 8999, 9000, 9001, UINT64_MAX};
	RpinReport	report;

	report.system_identifier = systems[digit(&number, 3)];
	report.node_id = nodes[digit(&number, 3)];
	report.in_recovery = digit(&number, 2);
	report.replay_paused = digit(&number, 2);
	report.timeline = digit(&number, 5);
	report.timeline_begin = begins[digit(&number, 6)];
	report.replay_lsn = lsns[digit(&number, 6)];
	return report;
}

#define REPORTS (3 * 3 * 2 * 2 * 5 * 6 * 6)

static void
check_world(const RpinHistory *history, bool *seen)
{
	for (uint32_t number = 0; number < REPORTS; number++)
	{
		RpinReport	report = make_report(number);

		check_report(&report, history, seen);
	}
}

static void
test_every_report(void **state)
{
	bool		seen[RPIN_STATE_COUNT] = {false};

	check_world(&first, seen);
	check_world(&third, seen);
	check_world(&without_file, seen);
	check_world(&unknown, seen);
	for (int s = RPIN_STATE_SAMPLED; s <= RPIN_STATE_NO_POSITION; s++)
		assert_true(seen[s]);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_each_state),
		cmocka_unit_test(test_zero_is_nobody),
		cmocka_unit_test(test_every_report),
	};

	rpin_test_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
