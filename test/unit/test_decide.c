/*-------------------------------------------------------------------------
 *
 * test_decide.c
 *	  The decision against the rule stated a second time, for every set of up
 *	  to four replicas.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_test.h"

#include "rpin_decide.h"

/* Of the replicas that count, how many are how. */
typedef struct Census
{
	int			configured;
	int			eligible;
	int			caught_up;
} Census;

/* This server is never asked whether it has replayed anything. */
static bool
believed(const RpinCandidate *candidate)
{
	return candidate->eligible && !candidate->self;
}

static bool
caught_up(const RpinCandidate *candidate, uint64_t required)
{
	return believed(candidate) && !(candidate->replay_lsn < required);
}

static Census
take_census(const RpinCandidate *candidate, int count, uint64_t required)
{
	Census		census = {0, 0, 0};
	int			selves = 0;

	for (int i = 0; i < count; i++)
	{
		census.eligible += believed(&candidate[i]);
		census.caught_up += caught_up(&candidate[i], required);
		selves += candidate[i].self;
	}
	/* one entry may be this server; of two, one is somebody else's address */
	census.configured = selves == 1 ? count - 1 : count;
	return census;
}

/* Is this the reason to be given? */
static bool
naive(RpinReason reason, uint64_t required, bool pending, Census census)
{
	bool		known = required != 0 && !pending;

	switch (reason)
	{
		case RPIN_REASON_NO_SESSION_KEY:
			return required == 0;
		case RPIN_REASON_NO_REPLICAS:
			return required != 0 && census.configured == 0;
		case RPIN_REASON_SAMPLES_STALE:
			return required != 0 && census.configured > 0 &&
				census.eligible == 0;
		case RPIN_REASON_COMMIT_PENDING:
			return required != 0 && pending && census.eligible > 0;
		case RPIN_REASON_REPLICAS_BEHIND:
			return known && census.eligible > 0 && census.caught_up == 0;
		case RPIN_REASON_REPLICA_CAUGHT_UP:
			return known && census.caught_up > 0 &&
				census.caught_up < census.configured;
		case RPIN_REASON_IN_SYNC:
			return known && census.configured > 0 &&
				census.caught_up == census.configured;
		default:
			return false;
	}
}

/* What is left of the decision when it is not enforced. */
static void
check_unenforced(RpinDecision decision)
{
	RpinDecision unenforced = rpin_decide_unenforced(decision);

	assert_int_equal(unenforced.eligible, decision.eligible);
	if (decision.reason == RPIN_REASON_NO_REPLICAS ||
		decision.reason == RPIN_REASON_SAMPLES_STALE || decision.eligible == 0)
	{
		assert_int_equal(unenforced.reason, decision.reason);
		assert_int_equal(unenforced.safe, decision.safe);
		return;
	}
	assert_int_equal(unenforced.reason, RPIN_REASON_NOT_ENFORCED);
	assert_int_equal(unenforced.safe, decision.eligible);
}

static void
check(const RpinCandidate *candidate, int count, uint64_t required,
	  bool pending)
{
	RpinDecision decision = rpin_decide(required, pending, candidate, count);
	bool		replica_named = decision.reason == RPIN_REASON_IN_SYNC ||
		decision.reason == RPIN_REASON_REPLICA_CAUGHT_UP;
	uint64_t	safe = 0;
	uint64_t	eligible = 0;

	assert_true(naive(decision.reason, required, pending,
					  take_census(candidate, count, required)));

	/* P7: all that are safe.  The primary: none. */
	for (int i = 0; i < count; i++)
	{
		if (replica_named && caught_up(&candidate[i], required))
			safe |= UINT64_C(1) << i;
		if (believed(&candidate[i]))
			eligible |= UINT64_C(1) << i;
	}
	assert_int_equal(decision.safe, safe);
	assert_int_equal(decision.safe != 0, replica_named);
	assert_int_equal(decision.eligible, eligible);
	check_unenforced(decision);
}

/* Replica number `kind` of all that are worth telling apart. */
static RpinCandidate
make_candidate(unsigned kind, uint64_t required)
{
	const uint64_t lsn[] = {0, required - 1, required, required + 1, UINT64_MAX};
	RpinCandidate candidate = {kind & 1, kind & 2, lsn[kind >> 2]};

	return candidate;
}

#define KINDS 20

static void
test_every_set(void **state)
{
	static const uint64_t positions[] = {
		0, 1, 2, 100, UINT64_MAX - 1, UINT64_MAX
	};

	for (int count = 0; count <= 4; count++)
	{
		unsigned	sets = 1;

		for (int i = 0; i < count; i++)
			sets *= KINDS;
		for (unsigned set = 0; set < sets; set++)
			for (size_t p = 0; p < lengthof(positions); p++)
			{
				RpinCandidate candidate[4];
				unsigned	rest = set;

				for (int i = 0; i < count; i++, rest /= KINDS)
					candidate[i] = make_candidate(rest % KINDS, positions[p]);
				check(candidate, count, positions[p], false);
				check(candidate, count, positions[p], true);
			}
	}
}

/* Full lists, so that every bit of the word is used. */
static void
test_many_replicas(void **state)
{
	for (uint64_t i = rpin_test_rounds(20000); i > 0; i--)
	{
		RpinCandidate candidate[RPIN_REPLICAS_LIMIT];
		int			count = 1 + (int) rpin_test_below(RPIN_REPLICAS_LIMIT);
		unsigned	same = 2 + 4 * 3;

		for (int c = 0; c < count; c++)
			candidate[c] = make_candidate(rpin_test_one_in(8)
										  ? (unsigned) rpin_test_below(KINDS)
										  : same, 1000);
		check(candidate, count, 1000, rpin_test_one_in(10));
	}
}

static void
test_all_64_in_sync(void **state)
{
	RpinCandidate candidate[RPIN_REPLICAS_LIMIT];
	RpinDecision decision;

	for (int i = 0; i < RPIN_REPLICAS_LIMIT; i++)
		candidate[i] = (RpinCandidate) {false, true, 1000};
	decision = rpin_decide(1000, false, candidate, RPIN_REPLICAS_LIMIT);
	assert_int_equal(decision.reason, RPIN_REASON_IN_SYNC);
	assert_int_equal(decision.safe, UINT64_MAX);

	/* The last one alone is behind; then it does not answer. */
	candidate[63].replay_lsn = 999;
	for (int eligible = 1; eligible >= 0; eligible--)
	{
		candidate[63].eligible = eligible;
		decision = rpin_decide(1000, false, candidate, RPIN_REPLICAS_LIMIT);
		assert_int_equal(decision.reason, RPIN_REASON_REPLICA_CAUGHT_UP);
		assert_int_equal(decision.safe, UINT64_MAX >> 1);
	}
}

/* What other parts decide is softened too, unless it stands in any case. */
static void
test_unenforced(void **state)
{
	for (int reason = RPIN_REASON_NONE; reason < RPIN_REASON_COUNT; reason++)
	{
		RpinDecision some = {(RpinReason) reason, 0, 6};
		RpinDecision none = {(RpinReason) reason, 0, 0};
		bool		softened = rpin_reason_is_overridable((RpinReason) reason);
		RpinDecision decision = rpin_decide_unenforced(some);

		assert_int_equal(decision.reason, softened
						 ? RPIN_REASON_NOT_ENFORCED : (RpinReason) reason);
		assert_int_equal(decision.safe, softened ? 6 : 0);
		decision = rpin_decide_unenforced(none);
		assert_int_equal(decision.reason, reason);
		assert_int_equal(decision.safe, 0);
	}
}

/* Nobody at 0, everybody at 100, and who is in stays in. */
static void
test_enforced_share(void **state)
{
	static const uint64_t extremes[] = {
		0, 1, UINT32_MAX, UINT64_C(1) << 32, UINT64_MAX - 1, UINT64_MAX
	};
	uint64_t	rounds = rpin_test_rounds(100000);
	uint64_t	in[101] = {0};

	for (uint64_t i = 0; i < rounds; i++)
	{
		uint64_t	share = i < lengthof(extremes)
			? extremes[i] : rpin_test_random();
		bool		before = false;

		for (int percent = 0; percent <= 100; percent++)
		{
			bool		enforced = rpin_decide_is_enforced(share, percent);

			assert_true(enforced || !before);
			before = enforced;
			in[percent] += enforced;
		}
	}
	assert_int_equal(in[0], 0);
	assert_int_equal(in[100], rounds);
	for (int percent = 1; rounds >= 10000 && percent < 100; percent++)
	{
		int64_t		difference = (int64_t) (in[percent] * 100) -
			(int64_t) rounds * percent;

		assert_true(llabs(difference) < 3 * (int64_t) rounds);
	}
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_set),
		cmocka_unit_test(test_many_replicas),
		cmocka_unit_test(test_all_64_in_sync),
		cmocka_unit_test(test_unenforced),
		cmocka_unit_test(test_enforced_share),
	};

	rpin_test_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
