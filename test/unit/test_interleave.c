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

/* Keys 5 and 6 share a bucket, OTHER is in another one. */
#define OTHER UINT64_MAX

static const Commit commits[] = {
	{5, 200, RECORDS_FIRST}, {5, 200, RAISES_FIRST},
	{6, 300, RECORDS_FIRST}, {6, 300, RAISES_FIRST},
	{OTHER, 300, RECORDS_FIRST}, {5, 300, RECORDS_FIRST},
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
static uint64_t reader_key;
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
read_key(int fingerprint)
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
	lookup = rpin_table_lookup(table, reader_key);
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
state(void)
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
			 commits[c].fingerprint == reader_key) &&
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

static void
add_commit(int number)
{
	rpin_test_schedule_add(commits[number].kind == PINS_ALL
						   ? write_commit_for_all : write_commit, number);
}

static void
run(void)
{
	static const RpinTestCalls calls = {begin, check, judge_end, state};

	readings[0] = readings[1] = stale_candidates = 0;
	rpin_test_schedule_run(&calls);

	/* Both ways were taken, and there was something to get wrong. */
	assert_true(readings[0] > 0 && readings[1] > 0 && stale_candidates > 0);
}

static int
set_up(void **unused)
{
	rpin_test_schedule_clear();
	first_floor = 100;
	fullness = 0;
	reader_key = 5;
	rpin_test_schedule_add(read_key, 0);
	table = aligned_alloc(RPIN_CACHE_LINE, rpin_table_size(TABLE_KEYS));
	return table == NULL;
}

static int
tear_down(void **unused)
{
	free(table);
	return 0;
}

static void
test_record_then_greatest(void **unused)
{
	add_commit(0);
	run();
}

static void
test_greatest_then_record(void **unused)
{
	add_commit(1);
	run();
}

static void
test_pins_all(void **unused)
{
	add_commit(6);
	run();
}

/* The keys' bucket is full: to record one evicts another. */
static void
test_eviction(void **unused)
{
	fullness = RPIN_BUCKET_SLOTS;
	add_commit(0);
	add_commit(3);
	run();
}

static void
test_two_keys_of_a_bucket(void **unused)
{
	add_commit(1);
	add_commit(2);
	run();
}

static void
test_keys_of_two_buckets(void **unused)
{
	add_commit(0);
	add_commit(4);
	run();
}

static void
test_one_key_twice(void **unused)
{
	add_commit(1);
	add_commit(5);
	run();
}

static void
test_one_key_and_all(void **unused)
{
	add_commit(0);
	add_commit(6);
	run();
}

static void
test_all_twice(void **unused)
{
	add_commit(6);
	add_commit(7);
	run();
}

/* A fresh table: the floor is set meanwhile, below or beyond the commit. */
static void
test_floor_below(void **unused)
{
	first_floor = 0;
	add_commit(0);
	rpin_test_schedule_add(set_floor, 150);
	run();
}

static void
test_floor_beyond(void **unused)
{
	first_floor = 0;
	add_commit(1);
	rpin_test_schedule_add(set_floor, 250);
	run();
}

static void
test_two_floors(void **unused)
{
	first_floor = 0;
	rpin_test_schedule_add(set_floor, 150);
	rpin_test_schedule_add(set_floor, 250);
	run();
}

static void
test_floor_and_all(void **unused)
{
	first_floor = 0;
	add_commit(6);
	rpin_test_schedule_add(set_floor, 300);
	run();
}

#define interleave(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		interleave(test_record_then_greatest),
		interleave(test_greatest_then_record),
		interleave(test_pins_all),
		interleave(test_eviction),
		interleave(test_two_keys_of_a_bucket),
		interleave(test_keys_of_two_buckets),
		interleave(test_one_key_twice),
		interleave(test_one_key_and_all),
		interleave(test_all_twice),
		interleave(test_floor_below),
		interleave(test_floor_beyond),
		interleave(test_two_floors),
		interleave(test_floor_and_all),
	};

	rpin_test_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
