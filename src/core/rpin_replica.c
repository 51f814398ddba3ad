/*-------------------------------------------------------------------------
 *
 * rpin_replica.c
 *	  The state machine that samples one replica.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_replica.h"

#include <string.h>

typedef RpinAction (*RpinMove) (RpinReplica *replica, const RpinEvent *event,
								const RpinPace *pace);

void
rpin_replica_init(RpinReplica *replica, int64_t now)
{
	memset(replica, 0, sizeof(*replica));
	replica->phase = RPIN_PHASE_RESTING;
	replica->deadline = now;
	replica->state = RPIN_STATE_CONNECTING;
	replica->state_since = now;
}

void
rpin_replica_restart(RpinReplica *replica, int64_t now)
{
	RpinReplica before = *replica;

	rpin_replica_init(replica, now);
	replica->ahead_timeline = before.ahead_timeline;
	replica->failures = before.failures;
	replica->reports = before.reports;
}

void
rpin_replica_schedule(RpinReplica *replica, int64_t interval)
{
	if (replica->phase == RPIN_PHASE_IDLE)
		replica->deadline = replica->requested_at + interval;
}

bool
rpin_replica_wants_news(const RpinReplica *replica, int64_t lag, int64_t soon)
{
	return replica->phase == RPIN_PHASE_IDLE &&
		replica->state == RPIN_STATE_SAMPLED && lag < 0 &&
		replica->deadline > soon;
}

static void
enter_state(RpinReplica *replica, RpinState state, int64_t now)
{
	if (replica->state == state)
		return;
	replica->state = state;
	replica->state_since = now;
}

static void
enter_phase(RpinReplica *replica, RpinPhase phase, int64_t deadline)
{
	replica->phase = phase;
	replica->deadline = deadline;
}

static RpinAction
begin_connect(RpinReplica *replica, const RpinEvent *event,
			  const RpinPace *pace)
{
	enter_phase(replica, RPIN_PHASE_CONNECTING,
				event->now + pace->sample_timeout);
	return RPIN_ACTION_CONNECT;
}

static RpinAction
begin_prepare(RpinReplica *replica, const RpinEvent *event,
			  const RpinPace *pace)
{
	enter_phase(replica, RPIN_PHASE_PREPARING,
				event->now + pace->sample_timeout);
	return RPIN_ACTION_PREPARE;
}

static RpinAction
begin_request(RpinReplica *replica, const RpinEvent *event,
			  const RpinPace *pace)
{
	replica->requested_at = event->now;
	enter_phase(replica, RPIN_PHASE_SAMPLING,
				event->now + pace->sample_timeout);
	return RPIN_ACTION_REQUEST;
}

/*
 * Leaves the connection.  The sample goes with it, here and nowhere later.
 */
static RpinAction
leave(RpinReplica *replica, RpinState why, const RpinEvent *event,
	  const RpinPace *pace)
{
	replica->sample_valid = false;
	replica->failures++;
	replica->rest = rpin_pace_backoff(pace, replica->rest);
	enter_state(replica, why, event->now);
	enter_phase(replica, RPIN_PHASE_RESTING,
				event->now + rpin_pace_jitter(replica->rest, event->random));
	return RPIN_ACTION_CLOSE;
}

static RpinAction
fail(RpinReplica *replica, const RpinEvent *event, const RpinPace *pace)
{
	return leave(replica, event->failure, event, pace);
}

static RpinAction
time_out(RpinReplica *replica, const RpinEvent *event, const RpinPace *pace)
{
	return leave(replica, RPIN_STATE_TIMED_OUT, event, pace);
}

static RpinAction
distrust(RpinReplica *replica, const RpinEvent *event, const RpinPace *pace)
{
	return leave(replica, RPIN_STATE_NONSENSE, event, pace);
}

/* Without a connection nothing but the timer means anything. */
static RpinAction
ignore(RpinReplica *replica, const RpinEvent *event, const RpinPace *pace)
{
	(void) replica;
	(void) event;
	(void) pace;
	return RPIN_ACTION_NONE;
}

static RpinAction
take_report(RpinReplica *replica, const RpinEvent *event, const RpinPace *pace)
{
	RpinState	state = rpin_sample_judge(event->report, event->identity,
										  replica->ahead_timeline);

	replica->rest = 0;
	replica->reports++;
	replica->sample_valid = true;
	replica->replay_lsn = event->report->replay_lsn;
	replica->replay_paused = event->report->replay_paused;
	replica->timeline = event->report->timeline;
	replica->sample_requested_at = replica->requested_at;

	/*
	 * Being ahead is over only when the replica is seen on another timeline.
	 * An answer that says nothing of its timeline leaves it as it is.
	 */
	if (state == RPIN_STATE_AHEAD)
		replica->ahead_timeline = event->report->timeline;
	else if (state == RPIN_STATE_OTHER_TIMELINE &&
			 event->report->timeline != 0 &&
			 event->report->timeline != replica->ahead_timeline)
		replica->ahead_timeline = 0;

	enter_state(replica, state, event->now);
	enter_phase(replica, RPIN_PHASE_IDLE,
				replica->requested_at + pace->sample_interval);
	return RPIN_ACTION_NONE;
}

static const RpinMove moves[RPIN_PHASE_COUNT][RPIN_EVENT_COUNT] = {
	[RPIN_PHASE_RESTING] = {
		[RPIN_EVENT_TIMER] = begin_connect,
		[RPIN_EVENT_CONNECTED] = ignore,
		[RPIN_EVENT_PREPARED] = ignore,
		[RPIN_EVENT_REPORT] = ignore,
		[RPIN_EVENT_FAILURE] = ignore,
	},
	[RPIN_PHASE_CONNECTING] = {
		[RPIN_EVENT_TIMER] = time_out,
		[RPIN_EVENT_CONNECTED] = begin_prepare,
		[RPIN_EVENT_PREPARED] = distrust,
		[RPIN_EVENT_REPORT] = distrust,
		[RPIN_EVENT_FAILURE] = fail,
	},
	[RPIN_PHASE_PREPARING] = {
		[RPIN_EVENT_TIMER] = time_out,
		[RPIN_EVENT_CONNECTED] = distrust,
		[RPIN_EVENT_PREPARED] = begin_request,
		[RPIN_EVENT_REPORT] = distrust,
		[RPIN_EVENT_FAILURE] = fail,
	},
	[RPIN_PHASE_IDLE] = {
		[RPIN_EVENT_TIMER] = begin_request,
		[RPIN_EVENT_CONNECTED] = distrust,
		[RPIN_EVENT_PREPARED] = distrust,
		[RPIN_EVENT_REPORT] = distrust,
		[RPIN_EVENT_FAILURE] = fail,
	},
	[RPIN_PHASE_SAMPLING] = {
		[RPIN_EVENT_TIMER] = time_out,
		[RPIN_EVENT_CONNECTED] = distrust,
		[RPIN_EVENT_PREPARED] = distrust,
		[RPIN_EVENT_REPORT] = take_report,
		[RPIN_EVENT_FAILURE] = fail,
	},
};

RpinAction
rpin_replica_step(RpinReplica *replica, const RpinEvent *event,
				  const RpinPace *pace)
{
	return moves[replica->phase][event->kind] (replica, event, pace);
}
