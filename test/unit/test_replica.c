/*-------------------------------------------------------------------------
 *
 * test_replica.c
 *	  The state machine of a replica: every event in every phase, the life of
 *	  a sample, being ahead, and random schedules against its invariants.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_test.h"

#include "rpin_replica.h"

#define MS INT64_C(1000)
#define SECOND INT64_C(1000000)

#define CLUSTER UINT64_C(0x6A5B4C3D2E1F0987)
#define NODE UINT64_C(0x1122334455667788)
#define BEGIN 2000

static const RpinPace pace = {250 * MS, 2 * MS, SECOND, 5 * SECOND};

/* This server, on its third timeline. */
static const RpinHistory history = {.timeline = 3, .count = 2,
.ancestor = {{1, 1000}, {2, BEGIN}}};
static const RpinIdentity identity = {CLUSTER, NODE, 9000, &history};

/* A standby that follows it. */
static const RpinReport good = {CLUSTER, NODE + 1, true, false, 3, BEGIN, 8000, "1.0"};

static RpinAction
step(RpinReplica *replica, RpinEventKind kind, int64_t now)
{
	RpinEvent	event = {.kind = kind, .now = now, .random = 0,
		.failure = RPIN_STATE_CONNECTION_LOST, .report = &good,
	.identity = &identity};

	return rpin_replica_step(replica, &event, &pace);
}

static void
report(RpinReplica *replica, const RpinReport *report_in, int64_t now)
{
	RpinEvent	event = {.kind = RPIN_EVENT_REPORT, .now = now,
	.report = report_in, .identity = &identity};

	assert_int_equal(replica->phase, RPIN_PHASE_SAMPLING);
	assert_int_equal(rpin_replica_step(replica, &event, &pace),
					 RPIN_ACTION_NONE);
	assert_int_equal(replica->phase, RPIN_PHASE_IDLE);
}

/* Brings a new replica into a phase, the last step at `now`. */
static void
bring_to(RpinReplica *replica, RpinPhase phase, int64_t now)
{
	rpin_replica_init(replica, now);
	if (phase == RPIN_PHASE_RESTING)
		return;
	assert_int_equal(step(replica, RPIN_EVENT_TIMER, now), RPIN_ACTION_CONNECT);
	if (phase == RPIN_PHASE_CONNECTING)
		return;
	assert_int_equal(step(replica, RPIN_EVENT_CONNECTED, now),
					 RPIN_ACTION_PREPARE);
	if (phase == RPIN_PHASE_PREPARING)
		return;
	assert_int_equal(step(replica, RPIN_EVENT_PREPARED, now),
					 RPIN_ACTION_REQUEST);
	report(replica, &good, now);
	if (phase == RPIN_PHASE_IDLE)
		return;

	/* Not the first request, so that there is a sample to lose. */
	assert_int_equal(step(replica, RPIN_EVENT_TIMER, now), RPIN_ACTION_REQUEST);
	assert_int_equal(replica->phase, RPIN_PHASE_SAMPLING);
}

static void
test_init(void **state)
{
	RpinReplica replica;

	memset(&replica, 0xEE, sizeof(replica));
	rpin_replica_init(&replica, 77);
	assert_int_equal(replica.phase, RPIN_PHASE_RESTING);
	assert_int_equal(replica.state, RPIN_STATE_CONNECTING);
	assert_int_equal(replica.state_since, 77);
	assert_int_equal(replica.deadline, 77);
	assert_int_equal(replica.rest, 0);
	assert_int_equal(replica.failures, 0);
	assert_int_equal(replica.reports, 0);
	assert_int_equal(replica.ahead_timeline, 0);
	assert_false(replica.sample_valid);
	assert_false(rpin_replica_eligible(&replica, 77, INT64_MAX));
}

/* From any phase: as if just defined, but for what outlasts a connection. */
static void
test_restart(void **state)
{
	for (int phase = 0; phase < RPIN_PHASE_COUNT; phase++)
	{
		RpinReplica replica;
		RpinReplica fresh;

		bring_to(&replica, (RpinPhase) phase, 100 * SECOND);
		replica.ahead_timeline = 3;
		replica.failures = 7;
		replica.rest = SECOND;
		rpin_replica_init(&fresh, 200 * SECOND);
		fresh.ahead_timeline = 3;
		fresh.failures = 7;
		fresh.reports = replica.reports;

		rpin_replica_restart(&replica, 200 * SECOND);
		assert_memory_equal(&replica, &fresh, sizeof(fresh));
		assert_false(replica.sample_valid);
	}
}

/* What a step of the table below leads to. */
typedef struct Outcome
{
	RpinAction	action;
	RpinPhase	phase;
	RpinState	state;
	int64_t		deadline;		/* after the event */
} Outcome;

#define FIRST_REST (250 * MS * 3 / 4)	/* with the least jitter */

#define WAITS(state) {RPIN_ACTION_NONE, RPIN_PHASE_RESTING, state, -SECOND}
#define CLOSES(why) {RPIN_ACTION_CLOSE, RPIN_PHASE_RESTING, \
	RPIN_STATE_##why, FIRST_REST}
#define GOES(action, phase, state) {RPIN_ACTION_##action, \
	RPIN_PHASE_##phase, RPIN_STATE_##state, SECOND}

static const Outcome outcomes[RPIN_PHASE_COUNT][RPIN_EVENT_COUNT] = {
	[RPIN_PHASE_RESTING] = {
		[RPIN_EVENT_TIMER] = GOES(CONNECT, CONNECTING, CONNECTING),
		[RPIN_EVENT_CONNECTED] = WAITS(RPIN_STATE_CONNECTING),
		[RPIN_EVENT_PREPARED] = WAITS(RPIN_STATE_CONNECTING),
		[RPIN_EVENT_REPORT] = WAITS(RPIN_STATE_CONNECTING),
		[RPIN_EVENT_FAILURE] = WAITS(RPIN_STATE_CONNECTING),
	},
	[RPIN_PHASE_CONNECTING] = {
		[RPIN_EVENT_TIMER] = CLOSES(TIMED_OUT),
		[RPIN_EVENT_CONNECTED] = GOES(PREPARE, PREPARING, CONNECTING),
		[RPIN_EVENT_PREPARED] = CLOSES(NONSENSE),
		[RPIN_EVENT_REPORT] = CLOSES(NONSENSE),
		[RPIN_EVENT_FAILURE] = CLOSES(CONNECTION_LOST),
	},
	[RPIN_PHASE_PREPARING] = {
		[RPIN_EVENT_TIMER] = CLOSES(TIMED_OUT),
		[RPIN_EVENT_CONNECTED] = CLOSES(NONSENSE),
		[RPIN_EVENT_PREPARED] = GOES(REQUEST, SAMPLING, CONNECTING),
		[RPIN_EVENT_REPORT] = CLOSES(NONSENSE),
		[RPIN_EVENT_FAILURE] = CLOSES(CONNECTION_LOST),
	},
	[RPIN_PHASE_IDLE] = {
		[RPIN_EVENT_TIMER] = GOES(REQUEST, SAMPLING, SAMPLED),
		[RPIN_EVENT_CONNECTED] = CLOSES(NONSENSE),
		[RPIN_EVENT_PREPARED] = CLOSES(NONSENSE),
		[RPIN_EVENT_REPORT] = CLOSES(NONSENSE),
		[RPIN_EVENT_FAILURE] = CLOSES(CONNECTION_LOST),
	},
	[RPIN_PHASE_SAMPLING] = {
		[RPIN_EVENT_TIMER] = CLOSES(TIMED_OUT),
		[RPIN_EVENT_CONNECTED] = CLOSES(NONSENSE),
		[RPIN_EVENT_PREPARED] = CLOSES(NONSENSE),
		/* the next request is due an interval after the last, sent before */
		[RPIN_EVENT_REPORT] = {RPIN_ACTION_NONE, RPIN_PHASE_IDLE,
		RPIN_STATE_SAMPLED, 250 * MS - SECOND},
		[RPIN_EVENT_FAILURE] = CLOSES(CONNECTION_LOST),
	},
};

static void
test_every_event_in_every_phase(void **state)
{
	const int64_t before = 100 * SECOND;
	const int64_t now = before + SECOND;

	for (int phase = 0; phase < RPIN_PHASE_COUNT; phase++)
		for (int kind = 0; kind < RPIN_EVENT_COUNT; kind++)
		{
			const Outcome *expected = &outcomes[phase][kind];
			RpinReplica replica;
			RpinReplica was;

			bring_to(&replica, (RpinPhase) phase, before);
			was = replica;
			assert_int_equal(step(&replica, (RpinEventKind) kind, now),
							 expected->action);
			assert_int_equal(replica.phase, expected->phase);
			assert_int_equal(replica.state, expected->state);
			assert_int_equal(replica.deadline - now, expected->deadline);

			assert_int_equal(replica.state_since,
							 was.state == replica.state ? before : now);
			assert_int_equal(replica.failures - was.failures,
							 expected->action == RPIN_ACTION_CLOSE);
			assert_int_equal(replica.sample_valid,
							 expected->action != RPIN_ACTION_CLOSE &&
							 phase >= RPIN_PHASE_IDLE);
		}
}

/* A sample is what one report said, aged from when its request was sent. */
static void
test_sample(void **state)
{
	RpinReplica replica;
	RpinReport	lower = good;

	bring_to(&replica, RPIN_PHASE_IDLE, 0);
	step(&replica, RPIN_EVENT_TIMER, 10 * SECOND);
	lower.replay_lsn = 4000;
	lower.replay_paused = true;
	report(&replica, &lower, 10 * SECOND + 900 * MS);

	/* The new sample stands, though the old one was greater. */
	assert_int_equal(replica.replay_lsn, 4000);
	assert_true(replica.replay_paused);
	assert_int_equal(replica.timeline, 3);
	assert_int_equal(replica.sample_requested_at, 10 * SECOND);
	assert_int_equal(replica.reports, 2);

	assert_true(rpin_replica_eligible(&replica, 11 * SECOND, 5 * SECOND));
	assert_true(rpin_replica_eligible(&replica, 15 * SECOND - 1, 5 * SECOND));
	assert_false(rpin_replica_eligible(&replica, 15 * SECOND, 5 * SECOND));
	assert_false(rpin_replica_eligible(&replica, 15 * SECOND + 1, 5 * SECOND));
	assert_false(rpin_replica_eligible(&replica, 1000 * SECOND, 5 * SECOND));

	/* A request that is out makes the old sample neither younger nor void. */
	step(&replica, RPIN_EVENT_TIMER, 14 * SECOND);
	assert_int_equal(replica.sample_requested_at, 10 * SECOND);
	assert_true(rpin_replica_eligible(&replica, 15 * SECOND - 1, 5 * SECOND));
	assert_false(rpin_replica_eligible(&replica, 15 * SECOND, 5 * SECOND));

	/* The lost connection voids it, and a new one does not bring it back. */
	step(&replica, RPIN_EVENT_FAILURE, 14 * SECOND + 1);
	assert_false(replica.sample_valid);
	assert_false(rpin_replica_eligible(&replica, 14 * SECOND + 1, 5 * SECOND));
	step(&replica, RPIN_EVENT_TIMER, 14 * SECOND + 2);
	step(&replica, RPIN_EVENT_CONNECTED, 14 * SECOND + 3);
	step(&replica, RPIN_EVENT_PREPARED, 14 * SECOND + 4);
	assert_false(rpin_replica_eligible(&replica, 14 * SECOND + 5, 5 * SECOND));
}

/* Only a report that was judged to be of a standby of this server counts. */
static void
test_only_sampled_is_eligible(void **state)
{
	for (int s = 0; s < RPIN_STATE_COUNT; s++)
	{
		RpinReplica replica;

		bring_to(&replica, RPIN_PHASE_IDLE, 0);
		replica.state = (RpinState) s;
		assert_int_equal(rpin_replica_eligible(&replica, 1, SECOND),
						 s == RPIN_STATE_SAMPLED);
		replica.sample_valid = false;
		assert_false(rpin_replica_eligible(&replica, 1, SECOND));
	}
}

static void
test_schedule(void **state)
{
	for (int phase = 0; phase < RPIN_PHASE_COUNT; phase++)
	{
		RpinReplica replica;
		int64_t		deadline;

		bring_to(&replica, (RpinPhase) phase, 100 * SECOND);
		deadline = replica.deadline;
		rpin_replica_schedule(&replica, 7 * MS);
		assert_int_equal(replica.deadline, phase == RPIN_PHASE_IDLE
						 ? 100 * SECOND + 7 * MS : deadline);
	}
}

/* News are for who is at rest, in good standing and not waited for already. */
static void
test_wants_news(void **state)
{
	for (int phase = 0; phase < RPIN_PHASE_COUNT; phase++)
		for (int waited_for = 0; waited_for < 2; waited_for++)
		{
			bool		expected = phase == RPIN_PHASE_IDLE && !waited_for;
			int64_t		lag = waited_for ? 0 : -1;
			RpinReplica replica;

			bring_to(&replica, (RpinPhase) phase, 100 * SECOND);
			assert_int_equal(rpin_replica_wants_news(&replica, lag,
													 replica.deadline - 1), expected);
			assert_false(rpin_replica_wants_news(&replica, lag, replica.deadline));
			replica.state = RPIN_STATE_OTHER_CLUSTER;
			assert_false(rpin_replica_wants_news(&replica, lag,
												 replica.deadline - 1));
		}
}

/* Rests double to the cap, whatever fails, and begin anew after an answer. */
static void
test_rests(void **state)
{
	static const int64_t expected[] = {
		250 * MS, 500 * MS, SECOND, 2 * SECOND, 4 * SECOND, 5 * SECOND,
		5 * SECOND,
	};
	RpinReplica replica;
	int64_t		now = 0;

	bring_to(&replica, RPIN_PHASE_IDLE, now);
	for (size_t i = 0; i < lengthof(expected); i++)
	{
		step(&replica, i % 2 ? RPIN_EVENT_FAILURE : RPIN_EVENT_PREPARED, now);
		assert_int_equal(replica.rest, expected[i]);
		assert_int_equal(replica.deadline, now + expected[i] * 3 / 4);
		now = replica.deadline;
		step(&replica, RPIN_EVENT_TIMER, now);

		/* A connection alone is no success. */
		step(&replica, RPIN_EVENT_CONNECTED, now);
		step(&replica, RPIN_EVENT_PREPARED, now);
	}
	report(&replica, &good, now);
	assert_int_equal(replica.rest, 0);
	step(&replica, RPIN_EVENT_FAILURE, now);
	assert_int_equal(replica.rest, expected[0]);
}

/* Asks for one more report.  The state afterwards. */
static RpinState
after(RpinReplica *replica, RpinReport next)
{
	step(replica, RPIN_EVENT_TIMER, replica->deadline);
	report(replica, &next, replica->requested_at);
	return replica->state;
}

#define with(...) ((RpinReport) {.system_identifier = CLUSTER, \
	.node_id = NODE + 1, .in_recovery = true, .timeline = 3, \
	.timeline_begin = BEGIN, .replay_lsn = 8000, __VA_ARGS__})
#pragma GCC diagnostic ignored "-Woverride-init"

/*
 * Once ahead, no number makes it right, no other answer, no new connection:
 * only having been seen on another timeline.
 */
static void
test_ahead_lasts(void **state)
{
	RpinReplica replica;

	bring_to(&replica, RPIN_PHASE_IDLE, 0);
	assert_int_equal(after(&replica, with(.replay_lsn = 9001)),
					 RPIN_STATE_AHEAD);
	assert_int_equal(after(&replica, good), RPIN_STATE_AHEAD);
	assert_int_equal(after(&replica, with(.replay_lsn = 0)),
					 RPIN_STATE_NO_POSITION);
	assert_int_equal(after(&replica, good), RPIN_STATE_AHEAD);
	assert_int_equal(after(&replica, with(.system_identifier = 5)),
					 RPIN_STATE_OTHER_CLUSTER);
	assert_int_equal(after(&replica, with(.in_recovery = false)),
					 RPIN_STATE_NOT_A_REPLICA);
	assert_int_equal(after(&replica, good), RPIN_STATE_AHEAD);

	step(&replica, RPIN_EVENT_FAILURE, 0);
	step(&replica, RPIN_EVENT_TIMER, 0);
	step(&replica, RPIN_EVENT_CONNECTED, 0);
	step(&replica, RPIN_EVENT_PREPARED, 0);
	report(&replica, &good, 0);
	assert_int_equal(replica.state, RPIN_STATE_AHEAD);

	/* The same timeline, from where it does not know. */
	assert_int_equal(after(&replica, with(.timeline_begin = 0)),
					 RPIN_STATE_OTHER_TIMELINE);
	assert_int_equal(after(&replica, good), RPIN_STATE_AHEAD);

	/* On another timeline at last, and rewound to ours. */
	assert_int_equal(after(&replica, with(.timeline = 4)),
					 RPIN_STATE_OTHER_TIMELINE);
	assert_int_equal(after(&replica, good), RPIN_STATE_SAMPLED);
	assert_int_equal(after(&replica, with(.replay_lsn = 9001)),
					 RPIN_STATE_AHEAD);
	assert_int_equal(after(&replica, good), RPIN_STATE_AHEAD);
}

/* A standby that has replayed nothing yet may know no timeline either. */
static void
test_ahead_outlasts_no_timeline(void **state)
{
	RpinReplica replica;

	bring_to(&replica, RPIN_PHASE_IDLE, 0);
	assert_int_equal(after(&replica, with(.replay_lsn = 9001)),
					 RPIN_STATE_AHEAD);
	assert_int_equal(after(&replica, with(.timeline = 0, .timeline_begin = 0,
										  .replay_lsn = 0)),
					 RPIN_STATE_OTHER_TIMELINE);
	assert_int_equal(after(&replica, good), RPIN_STATE_AHEAD);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_init),
		cmocka_unit_test(test_restart),
		cmocka_unit_test(test_every_event_in_every_phase),
		cmocka_unit_test(test_sample),
		cmocka_unit_test(test_only_sampled_is_eligible),
		cmocka_unit_test(test_schedule),
		cmocka_unit_test(test_wants_news),
		cmocka_unit_test(test_rests),
		cmocka_unit_test(test_ahead_lasts),
		cmocka_unit_test(test_ahead_outlasts_no_timeline),
	};

	rpin_test_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
