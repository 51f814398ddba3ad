/*-------------------------------------------------------------------------
 *
 * test_replica_schedules.c
 *	  The state machine of a replica under random schedules: whatever happens
 *	  in whatever order, its invariants hold after every step.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_test.h"

#include "rpin_replica.h"

#define MS INT64_C(1000)
#define SECOND INT64_C(1000000)

#define CLUSTER UINT64_C(0x6A5B4C3D2E1F0987)
#define NODE UINT64_C(0x1122334455667788)

/* The machine, the world around it, and what must be true of it. */
typedef struct World
{
	RpinReplica replica;
	RpinReplica before;
	RpinAction	action;
	RpinEvent	event;
	RpinReport	report;
	RpinIdentity identity;
	RpinHistory history;
	RpinPace	pace;

	int64_t		last_request;	/* when the last request was sent */
	int64_t		sampled_request;	/* and that of the last report */
	RpinReport	sampled;		/* the last report of this connection */
	bool		has_sample;
	uint32_t	ahead_on;		/* ahead there, and seen nowhere else since */
	uint64_t	scheduled;		/* how often rpin_replica_schedule() had a say */
	uint64_t	seen[RPIN_STATE_COUNT];
} World;

static void
new_pace(World *world)
{
	world->pace.sample_interval =
		(1 + (int64_t) rpin_test_below(10000)) * MS;
	world->pace.min_sample_interval = (int64_t) rpin_test_below(50) * MS;
	world->pace.sample_timeout = (1 + (int64_t) rpin_test_below(3000)) * MS;
	world->pace.sample_lifetime = (1 + (int64_t) rpin_test_below(60000)) * MS;
	rpin_pace_clamp(&world->pace);
}

/* A replica of this server, most of the time. */
static void
new_report(World *world)
{
	RpinReport *report = &world->report;

	report->system_identifier = CLUSTER + rpin_test_one_in(40);
	report->node_id = rpin_test_one_in(40) ? NODE : NODE + 1;
	report->in_recovery = !rpin_test_one_in(40);
	report->replay_paused = rpin_test_one_in(10);
	report->timeline = rpin_test_one_in(15)
		? (uint32_t) rpin_test_below(5) : world->history.timeline;
	report->timeline_begin = rpin_test_one_in(40)
		? rpin_test_below(3) * 1000 : rpin_history_begin(&world->history);
	report->replay_lsn = rpin_test_one_in(30)
		? 0 : world->identity.end - rpin_test_below(100);
	if (rpin_test_one_in(30))
		report->replay_lsn = world->identity.end + 1 + rpin_test_below(100);
}

static RpinEventKind
likely_event(RpinPhase phase)
{
	switch (phase)
	{
		case RPIN_PHASE_CONNECTING:
			return RPIN_EVENT_CONNECTED;
		case RPIN_PHASE_PREPARING:
			return RPIN_EVENT_PREPARED;
		case RPIN_PHASE_SAMPLING:
			return RPIN_EVENT_REPORT;
		default:
			return RPIN_EVENT_TIMER;
	}
}

static void
new_event(World *world)
{
	RpinEvent  *event = &world->event;

	event->kind = rpin_test_one_in(10)
		? (RpinEventKind) rpin_test_below(RPIN_EVENT_COUNT)
		: likely_event(world->replica.phase);
	event->random = (uint32_t) rpin_test_random();
	event->failure = (RpinState)
		(RPIN_STATE_UNREACHABLE +
		 rpin_test_below(RPIN_STATE_COUNT - RPIN_STATE_UNREACHABLE));
	event->now += (int64_t) rpin_test_below(100 * MS);
	if (event->kind == RPIN_EVENT_TIMER && event->now < world->replica.deadline)
		event->now = world->replica.deadline;
	world->identity.end += rpin_test_below(50);
	new_report(world);
}

/* What the last step means for what is known of the replica. */
static void
follow(World *world)
{
	bool		took_report = world->before.phase == RPIN_PHASE_SAMPLING &&
		world->event.kind == RPIN_EVENT_REPORT;

	if (world->action == RPIN_ACTION_REQUEST)
		world->last_request = world->event.now;
	if (world->action == RPIN_ACTION_CLOSE)
		world->has_sample = false;
	if (!took_report)
		return;

	world->has_sample = true;
	world->sampled = world->report;
	world->sampled_request = world->last_request;
	if (world->replica.state == RPIN_STATE_AHEAD)
		world->ahead_on = world->report.timeline;
	else if (world->replica.state == RPIN_STATE_OTHER_TIMELINE &&
			 world->report.timeline != 0 &&
			 world->report.timeline != world->ahead_on)
		world->ahead_on = 0;
}

static void
check_sample(const World *world)
{
	const RpinReplica *replica = &world->replica;
	int64_t		lifetime = world->pace.sample_lifetime;
	int64_t		now = world->event.now;

	assert_int_equal(replica->sample_valid, world->has_sample);
	assert_true(!replica->sample_valid ||
				replica->phase == RPIN_PHASE_IDLE ||
				replica->phase == RPIN_PHASE_SAMPLING);
	if (!world->has_sample)
	{
		assert_false(rpin_replica_eligible(replica, now, INT64_MAX));
		return;
	}

	assert_int_equal(replica->replay_lsn, world->sampled.replay_lsn);
	assert_int_equal(replica->timeline, world->sampled.timeline);
	assert_int_equal(replica->replay_paused, world->sampled.replay_paused);
	assert_int_equal(replica->sample_requested_at, world->sampled_request);
	assert_int_equal(rpin_replica_eligible(replica, now, lifetime),
					 replica->state == RPIN_STATE_SAMPLED &&
					 now - world->sampled_request < lifetime);
	if (replica->state == RPIN_STATE_SAMPLED)
	{
		assert_true(world->sampled.replay_lsn <= world->identity.end);
		assert_int_equal(world->sampled.timeline, world->history.timeline);
		assert_true(world->sampled.timeline != world->ahead_on);
	}
}

static void
check_deadline(const World *world)
{
	const RpinReplica *replica = &world->replica;
	int64_t		wait = replica->deadline - world->event.now;
	int64_t		rest = replica->rest;

	switch (world->action)
	{
		case RPIN_ACTION_CONNECT:
		case RPIN_ACTION_PREPARE:
		case RPIN_ACTION_REQUEST:
			assert_int_equal(wait, world->pace.sample_timeout);
			break;
		case RPIN_ACTION_CLOSE:
			assert_true(4 * wait >= 3 * rest && 4 * wait <= 5 * rest);
			break;
		case RPIN_ACTION_NONE:
			if (world->before.phase == RPIN_PHASE_RESTING)
				assert_int_equal(replica->deadline, world->before.deadline);
			else
				assert_int_equal(replica->deadline, world->last_request +
								 world->pace.sample_interval);
			break;
	}
}

static void
check_rest(const World *world)
{
	int64_t		rest = world->replica.rest;
	int64_t		before = world->before.rest;
	int64_t		interval = world->pace.sample_interval;
	int64_t		cap = interval > RPIN_BACKOFF_CAP ? interval : RPIN_BACKOFF_CAP;

	if (world->action != RPIN_ACTION_CLOSE)
	{
		assert_true(rest == before || (rest == 0 && world->has_sample));
		return;
	}
	assert_true(rest > 0 && rest <= cap);
	if (before == 0)
		assert_int_equal(rest, interval);
	else
		assert_true(rest == cap || rest == 2 * before);
}

static void
check_step(const World *world)
{
	const RpinReplica *now = &world->replica;
	const RpinReplica *before = &world->before;
	static const RpinPhase leads_to[] = {
		[RPIN_ACTION_CONNECT] = RPIN_PHASE_CONNECTING,
		[RPIN_ACTION_PREPARE] = RPIN_PHASE_PREPARING,
		[RPIN_ACTION_REQUEST] = RPIN_PHASE_SAMPLING,
		[RPIN_ACTION_CLOSE] = RPIN_PHASE_RESTING,
	};

	if (world->action != RPIN_ACTION_NONE)
		assert_int_equal(now->phase, leads_to[world->action]);
	else
		assert_true(now->phase == RPIN_PHASE_IDLE ||
					(now->phase == RPIN_PHASE_RESTING &&
					 before->phase == RPIN_PHASE_RESTING));

	assert_int_equal(now->failures - before->failures,
					 world->action == RPIN_ACTION_CLOSE);
	assert_int_equal(now->reports - before->reports,
					 world->action == RPIN_ACTION_NONE &&
					 now->phase == RPIN_PHASE_IDLE);
	assert_int_equal(now->state_since, now->state == before->state
					 ? before->state_since : world->event.now);

	/* Until the next answer a failure is told, not the attempt after it. */
	if (world->action == RPIN_ACTION_CONNECT ||
		world->action == RPIN_ACTION_PREPARE ||
		world->action == RPIN_ACTION_REQUEST)
		assert_int_equal(now->state, before->state);
}

static void
reschedule(World *world)
{
	int64_t		before = world->replica.deadline;
	int64_t		interval = (int64_t) rpin_test_below(SECOND);

	rpin_replica_schedule(&world->replica, interval);
	if (world->replica.phase != RPIN_PHASE_IDLE)
	{
		assert_int_equal(world->replica.deadline, before);
		return;
	}
	assert_int_equal(world->replica.deadline, world->last_request + interval);
	world->scheduled++;
}

/* The worker died and began again: no connection, but nothing is forgiven. */
static void
restart(World *world)
{
	uint32_t	ahead = world->replica.ahead_timeline;

	rpin_replica_restart(&world->replica, world->event.now);
	world->has_sample = false;
	assert_int_equal(world->replica.phase, RPIN_PHASE_RESTING);
	assert_int_equal(world->replica.deadline, world->event.now);
	assert_int_equal(world->replica.ahead_timeline, ahead);
	check_sample(world);
}

static void
new_world(World *world)
{
	world->history = (RpinHistory)
	{
		.timeline = 3
	};
	world->history.count = 1;
	world->history.ancestor[0] = (RpinAncestor)
	{
		2, 2000
	};
	world->identity = (RpinIdentity)
	{
		CLUSTER, NODE, 1000000, &world->history
	};
	world->event.report = &world->report;
	world->event.identity = &world->identity;
	world->has_sample = false;
	world->ahead_on = 0;
	new_pace(world);
	rpin_replica_init(&world->replica, world->event.now);
}

static void
test_random_schedules(void **state)
{
	static World world_memory;
	World	   *world = &world_memory;
	uint64_t	steps = rpin_test_rounds(2000000);

	for (uint64_t i = 0; i < steps; i++)
	{
		if (i % 10000 == 0)
			new_world(world);
		if (rpin_test_one_in(500))
			new_pace(world);
		if (rpin_test_one_in(1000))
			restart(world);
		new_event(world);
		world->before = world->replica;
		world->action = rpin_replica_step(&world->replica, &world->event,
										  &world->pace);
		follow(world);
		check_step(world);
		check_deadline(world);
		check_rest(world);
		check_sample(world);
		if (rpin_test_one_in(3))
			reschedule(world);
		world->seen[world->replica.state]++;
	}

	/* A run that never got anywhere would prove nothing. */
	if (steps >= 100000)
	{
		assert_true(world->scheduled > 0);
		for (int s = 0; s < RPIN_STATE_COUNT; s++)
			assert_true(world->seen[s] > 0);
	}
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_schedules),
	};

	rpin_test_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
