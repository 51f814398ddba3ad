/*-------------------------------------------------------------------------
 *
 * test_interleave.c
 *	  A decision against commits under way, in every interleaving.
 *
 * The core of this test is compiled with a stop before every atomic access.  A
 * reader, which takes the fast path or else looks into the bucket, runs against
 * writers and setters of the global floor, all orders of all their stops.  What
 * is done in a bucket stands between two stops, as in the product it stands
 * under the bucket's lock.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_test_schedule.h"

#include "rpin_decide.h"
#include "rpin_table.h"

typedef enum CommitKind
{
	RECORDS_FIRST,				/* step 3 has no order of its own */
	RAISES_FIRST,
	PINS_ALL					/* every key, by the global floor */
} CommitKind;

typedef struct Commit
{
	uint64_t	fingerprint;
	uint64_t	lsn;
	CommitKind	kind;
} Commit;

/* Keys 5 and 6 share a bucket, OTHER is in another one.  5 is read. */
#define READ 5
#define OTHER UINT64_MAX

static const Commit commits[] = {
	{READ, 200, RECORDS_FIRST}, {READ, 200, RAISES_FIRST},
	{6, 300, RECORDS_FIRST}, {6, 300, RAISES_FIRST},
	{OTHER, 300, RECORDS_FIRST}, {READ, 300, RECORDS_FIRST},
	{0, 250, PINS_ALL}, {0, 350, PINS_ALL},
};

/* Shared memory, all that there is. */
static RpinTable *table;

static struct
{
	uint64_t	visible;		/* commits that others can see by now; bits */
	uint64_t	first_floor;	/* the first global floor that was set */

	/* What the reader found at its start, and what it was told. */
	uint64_t	saw_visible;
	uint64_t	saw_floor;
	uint64_t	quiet;
	uint64_t	pending;
	uint64_t	required;		/* 0: it may not decide */
}			notes;

static uint64_t first_floor;	/* of the next run; 0: a fresh table */
static uint64_t fullness;		/* keys that are in bucket 0 before */
static uint64_t greatest_seen;
static uint64_t readings[2];	/* not quiet, quiet */
static uint64_t stale_candidates;

#define TABLE_KEYS (2 * RPIN_BUCKET_SLOTS)

static void
write_commit(int number)
{
	const Commit *commit = &commits[number];

	rpin_table_pending_up(table, commit->fingerprint);
	rpin_test_step(NULL);
	notes.visible |= UINT64_C(1) << number;
	if (commit->kind == RAISES_FIRST)
		rpin_table_raise_greatest(table, commit->lsn);
	rpin_test_step(NULL);
	rpin_table_record(table, commit->fingerprint, commit->lsn);
	if (commit->kind == RECORDS_FIRST)
		rpin_table_raise_greatest(table, commit->lsn);
	rpin_test_step(NULL);
	rpin_table_pending_down(table, commit->fingerprint);
}

static void
write_commit_for_all(int number)
{
	rpin_table_pending_all_up(table);
	rpin_test_step(NULL);
	notes.visible |= UINT64_C(1) << number;
	rpin_table_raise_floor(table, commits[number].lsn);
	rpin_test_step(NULL);
	rpin_table_pending_all_down(table);
}

static void
set_floor(int floor)
{
	rpin_table_raise_floor(table, (uint64_t) floor);
}

static void
read_key(int unused)
{
	RpinLookup	lookup;
	bool		quiet;

	rpin_test_step(NULL);
	notes.saw_visible = notes.visible;
	notes.saw_floor = table->marks.floor;
	quiet = rpin_table_quiet(table, &notes.required);
	notes.quiet = quiet;

	/* While there is no floor it is not said what a lookup answers. */
	if (quiet || table->marks.floor == 0)
		return;
	lookup = rpin_table_lookup(table, READ);
	notes.required = lookup.lsn;
	notes.pending = lookup.pending;
}

static void
begin(void)
{
	rpin_table_init(table, TABLE_KEYS);
	memset(&notes, 0, sizeof(notes));
	greatest_seen = 0;
	if (first_floor != 0)
		rpin_table_raise_floor(table, first_floor);
	for (uint64_t key = 0; key < fullness; key++)
	{
		rpin_table_record(table, 100 + key, 110 + key);
		rpin_table_raise_greatest(table, 110 + key);
	}
}

static uint64_t
hash(void)
{
	return rpin_test_hash(rpin_test_hash(0, &notes, sizeof(notes)), table,
						  rpin_table_size(TABLE_KEYS));
}

/* At any time: what others may rely on. */
static void
check(void)
{
	const RpinMarks *marks = &table->marks;
	uint64_t	pending = marks->pending_all;

	for (uint64_t b = 0; b < table->bucket_count; b++)
		pending += table->bucket[b].pending;
	assert_true(marks->pending >= pending);
	assert_true(marks->floor <= marks->greatest);
	assert_true(marks->greatest >= greatest_seen);
	greatest_seen = marks->greatest;
	if (notes.first_floor == 0)
		notes.first_floor = marks->floor;
}

/*
 * Must this replica not be read?  Other keys than the reader's are no concern
 * of a lookup; the fast path answers for all.
 */
static bool
is_stale(uint64_t replay_lsn)
{
	uint64_t	floor = notes.saw_floor != 0
		? notes.saw_floor : notes.first_floor;

	if (replay_lsn < floor)
		return true;
	for (size_t c = 0; c < lengthof(commits); c++)
		if ((notes.saw_visible & (UINT64_C(1) << c)) != 0 &&
			(notes.quiet || commits[c].kind == PINS_ALL ||
			 commits[c].fingerprint == READ) &&
			replay_lsn < commits[c].lsn)
			return true;
	return false;
}

static void
judge(const RpinCandidate *candidate, int count)
{
	RpinDecision decision = rpin_decide(notes.required, notes.pending,
										candidate, count);

	for (int i = 0; i < count; i++)
	{
		bool		named = decision.reason == RPIN_REASON_IN_SYNC ||
			(decision.safe & (UINT64_C(1) << i)) != 0;
		bool		unfit = !candidate[i].eligible ||
			is_stale(candidate[i].replay_lsn);

		stale_candidates += unfit;
		if (named && unfit)
			fail_msg("stale: commits %llx visible, quiet %d, required %d, "
					 "replica at %d", (unsigned long long) notes.saw_visible,
					 (int) notes.quiet, (int) notes.required,
					 (int) candidate[i].replay_lsn);
	}
}

/* Two replicas, each at any of these positions, eligible or not. */
static void
judge_reading(void)
{
	static const uint64_t lsns[] = {
		0, 99, 100, 149, 150, 199, 200, 249, 250, 299, 300, 349, 350, 400
	};
	const unsigned sets = 4 * lengthof(lsns) * lengthof(lsns);

	readings[notes.quiet]++;
	for (unsigned set = 0; set < sets && notes.required != 0; set++)
	{
		const RpinCandidate candidate[] = {
			{false, set & 1, lsns[set / 4 % lengthof(lsns)]},
			{false, set & 2, lsns[set / 4 / lengthof(lsns)]},
		};

		judge(candidate, 2);
	}
}

static uint64_t
greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Nothing is left that holds a reader up, and nothing is forgotten. */
static void
judge_end(void)
{
	uint64_t	greatest = rpin_table_floor(table);
	uint64_t	required = 0;
	RpinCandidate all[2] = {{false, true, 0}, {false, true, 0}};

	judge_reading();
	if (fullness > 0)
		greatest = greater(greatest, 109 + fullness);
	for (size_t c = 0; c < lengthof(commits); c++)
	{
		RpinLookup	lookup = rpin_table_lookup(table, commits[c].fingerprint);

		assert_false(lookup.pending);
		if ((notes.visible & (UINT64_C(1) << c)) == 0)
			continue;
		assert_true(lookup.lsn >= commits[c].lsn);
		greatest = greater(greatest, commits[c].lsn);
	}
	assert_true(rpin_table_quiet(table, &required));
	assert_int_equal(required, greatest);
	assert_int_equal(rpin_table_pending(table), 0);

	all[0].replay_lsn = all[1].replay_lsn = required;
	assert_int_equal(rpin_decide(required, false, all, 2).reason,
					 RPIN_REASON_IN_SYNC);
	all[1].replay_lsn--;
	assert_int_equal(rpin_decide(required, false, all, 2).reason,
					 RPIN_REASON_REPLICA_CAUGHT_UP);
}

typedef struct Scenario
{
	const char *name;
	const char *commits;		/* their numbers, a digit each */
	uint64_t	first_floor;
	int			floors[2];		/* that are set meanwhile; 0: none */
	uint64_t	fullness;
} Scenario;

static Scenario scenarios[] = {
	{"record, then greatest", "0", 100, {0, 0}, 0},
	{"greatest, then record", "1", 100, {0, 0}, 0},
	{"two keys of a bucket", "12", 100, {0, 0}, 0},
	{"two keys of a full bucket", "03", 100, {0, 0}, RPIN_BUCKET_SLOTS},
	{"keys of two buckets", "04", 100, {0, 0}, 0},
	{"one key twice", "15", 100, {0, 0}, 0},
	{"three commits", "034", 100, {0, 0}, 0},
	{"all keys", "6", 100, {0, 0}, 0},
	{"one key and all keys", "06", 100, {0, 0}, 0},
	{"all keys twice", "67", 100, {0, 0}, 0},
	{"fresh table, floor below the commit", "0", 0, {150, 0}, 0},
	{"fresh table, floor beyond the commit", "1", 0, {250, 0}, 0},
	{"fresh table, two floors", "0", 0, {150, 250}, 0},
	{"fresh table, floor and all keys", "36", 0, {300, 0}, 0},
};

static int
set_up(void **state)
{
	const Scenario *scenario = *state;

	first_floor = scenario->first_floor;
	fullness = scenario->fullness;
	readings[0] = readings[1] = stale_candidates = 0;
	table = aligned_alloc(RPIN_CACHE_LINE, rpin_table_size(TABLE_KEYS));

	rpin_test_schedule_clear();
	rpin_test_schedule_add(read_key, 0);
	for (const char *digit = scenario->commits; *digit != '\0'; digit++)
	{
		int			number = *digit - '0';

		rpin_test_schedule_add(commits[number].kind == PINS_ALL
							   ? write_commit_for_all : write_commit, number);
	}
	for (size_t i = 0; i < lengthof(scenario->floors); i++)
		if (scenario->floors[i] != 0)
			rpin_test_schedule_add(set_floor, scenario->floors[i]);
	return table == NULL;
}

static int
tear_down(void **state)
{
	free(table);
	return 0;
}

static void
test_scenario(void **state)
{
	static const RpinTestCalls calls = {begin, check, judge_end, hash};

	rpin_test_schedule_run(&calls);

	/* Both ways were taken, and there was something to get wrong. */
	assert_true(readings[0] > 0 && readings[1] > 0 && stale_candidates > 0);
}

int
main(void)
{
	struct CMUnitTest tests[lengthof(scenarios)];

	for (size_t i = 0; i < lengthof(scenarios); i++)
		tests[i] = (struct CMUnitTest)
	{
		scenarios[i].name, test_scenario, set_up, tear_down, &scenarios[i]
	};
	rpin_test_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
