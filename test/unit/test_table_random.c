/*-------------------------------------------------------------------------
 *
 * test_table_random.c
 *	  The table of session keys by property, against a map that forgets
 *	  nothing: ten million operations and more on tables of many shapes.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_test.h"

#include <inttypes.h>

#include "rpin_table.h"

/* The exact map: what was ever recorded for a fingerprint. */
typedef struct Key
{
	uint64_t	fingerprint;
	uint64_t	lsn;			/* the greatest recorded; 0: none */
	uint32_t	pending;
	struct Key *next_in_chain;	/* of the map */
	struct Key *next_in_bucket; /* of the table */
} Key;

/* What is known of a bucket of the table without looking into it. */
typedef struct Shelf
{
	Key		   *first;
	uint32_t	recorded;		/* keys with a position */
	uint32_t	pending;
} Shelf;

typedef struct World
{
	RpinTable  *table;
	Key		   *key;			/* of the key space, in the order of making */
	uint64_t	key_count;
	Key		  **chain;
	uint64_t	chain_count;
	Shelf	   *shelf;			/* one per bucket */

	uint64_t	floor;			/* the global floor; 0: not set */
	uint64_t	greatest;
	uint64_t	pending;
	uint64_t	pending_all;
	uint64_t	insert;			/* end of the imagined WAL */
	uint64_t	operations;
} World;

static Key *
find(const World *world, uint64_t fingerprint)
{
	Key		   *key = world->chain[fingerprint % world->chain_count];

	while (key != NULL && key->fingerprint != fingerprint)
		key = key->next_in_chain;
	return key;
}

static void
add(World *world, uint64_t fingerprint)
{
	Key		  **chain = &world->chain[fingerprint % world->chain_count];
	Shelf	   *shelf = &world->shelf[rpin_table_bucket(world->table,
														fingerprint)];
	Key		   *key = &world->key[world->key_count++];

	*key = (Key)
	{
		.fingerprint = fingerprint,
			.next_in_chain = *chain, .next_in_bucket = shelf->first
	};
	*chain = key;
	shelf->first = key;
}

static void *
zeroed(uint64_t count, size_t size)
{
	void	   *memory = calloc(count, size);

	assert_non_null(memory);
	return memory;
}

static void
make_world(World *world, uint64_t capacity, uint64_t key_space)
{
	memset(world, 0, sizeof(*world));
	world->table = aligned_alloc(RPIN_CACHE_LINE, rpin_table_size(capacity));
	assert_non_null(world->table);
	memset(world->table, 0xEE, rpin_table_size(capacity));
	rpin_table_init(world->table, capacity);

	world->shelf = zeroed(world->table->bucket_count, sizeof(Shelf));
	world->key = zeroed(key_space, sizeof(Key));
	world->chain_count = 2 * key_space + 1;
	world->chain = zeroed(world->chain_count, sizeof(Key *));
	world->insert = 1 + rpin_test_below(1000);
	while (world->key_count < key_space)
	{
		uint64_t	fingerprint = rpin_test_random();

		/* The extreme ones are always among them. */
		if (world->key_count < 2)
			fingerprint = world->key_count == 0 ? 0 : UINT64_MAX;
		if (find(world, fingerprint) == NULL)
			add(world, fingerprint);
	}
}

static void
free_world(World *world)
{
	free(world->table);
	free(world->shelf);
	free(world->key);
	free(world->chain);
}

static Shelf *
shelf_of(const World *world, const Key *key)
{
	return &world->shelf[rpin_table_bucket(world->table, key->fingerprint)];
}

static uint64_t
greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/*
 * The third greatest of the positions of a bucket's keys: the table needs to
 * forget no key above it.
 */
static uint64_t
slots_end_at(const Shelf *shelf)
{
	uint64_t	top[RPIN_BUCKET_SLOTS] = {0};

	for (const Key *key = shelf->first; key != NULL; key = key->next_in_bucket)
	{
		uint64_t	lsn = key->lsn;

		for (int i = 0; i < RPIN_BUCKET_SLOTS; i++)
			if (lsn > top[i])
			{
				uint64_t	lower = top[i];

				top[i] = lsn;
				lsn = lower;
			}
	}
	return top[RPIN_BUCKET_SLOTS - 1];
}

static uint64_t
check_lookup(const World *world, const Key *key)
{
	RpinLookup	lookup = rpin_table_lookup(world->table, key->fingerprint);
	const Shelf *shelf = shelf_of(world, key);
	uint64_t	exact = greater(key->lsn, world->floor);

	/* P3, and that it is never further than anything that was recorded. */
	assert_true(lookup.lsn >= exact);
	assert_true(lookup.lsn <= greater(world->greatest, world->floor));

	/* A bucket that never had to forget is exact. */
	if (shelf->recorded <= RPIN_BUCKET_SLOTS)
		assert_int_equal(lookup.lsn, exact);
	assert_int_equal(lookup.pending,
					 shelf->pending > 0 || world->pending_all > 0);
	return lookup.lsn;
}

/* All keys of a bucket: none is pinned further than it must be. */
static void
check_shelf(const World *world, const Shelf *shelf)
{
	uint64_t	end = slots_end_at(shelf);

	for (const Key *key = shelf->first; key != NULL; key = key->next_in_bucket)
		assert_true(check_lookup(world, key) <=
					greater(greater(key->lsn, end), world->floor));
}

static void
check_marks(const World *world)
{
	uint64_t	required = 77;
	bool		quiet = rpin_table_quiet(world->table, &required);

	assert_int_equal(rpin_table_floor(world->table), world->floor);
	assert_int_equal(rpin_table_greatest(world->table), world->greatest);
	assert_int_equal(rpin_table_pending(world->table),
					 world->pending + world->pending_all);
	assert_int_equal(quiet, world->floor != 0 && world->pending == 0 &&
					 world->pending_all == 0);
	assert_int_equal(required, quiet ? world->greatest : 77);
}

/* Positions grow as WAL does; some come late, some far too late. */
static uint64_t
next_position(World *world)
{
	world->insert += rpin_test_below(200);
	if (rpin_test_one_in(10))
		return 1 + rpin_test_below(world->insert);
	if (rpin_test_one_in(4))
		return world->insert - rpin_test_below(world->insert < 1000
											   ? world->insert : 1000);
	return world->insert;
}

static void
record(World *world, Key *key)
{
	uint64_t	lsn = next_position(world);
	Shelf	   *shelf = shelf_of(world, key);
	bool		had = key->lsn != 0;
	RpinRecorded recorded = rpin_table_record(world->table, key->fingerprint,
											  lsn);

	assert_int_equal(rpin_table_raise_greatest(world->table, lsn),
					 lsn > world->greatest);
	shelf->recorded += !had;
	key->lsn = greater(key->lsn, lsn);
	world->greatest = greater(world->greatest, lsn);

	if (shelf->recorded <= RPIN_BUCKET_SLOTS)
		assert_int_equal(recorded, had ? RPIN_RECORDED_RAISED : RPIN_RECORDED_NEW);
	else
		assert_int_not_equal(recorded, RPIN_RECORDED_NEW);
	check_lookup(world, key);
}

/* The same, and no key of the bucket stands lower afterwards. */
static void
record_and_compare(World *world, Key *key)
{
	Shelf	   *shelf = shelf_of(world, key);
	uint64_t	before[1024];
	size_t		count = 0;

	for (const Key *each = shelf->first; each != NULL && count < lengthof(before);
		 each = each->next_in_bucket)
		before[count++] = check_lookup(world, each);
	record(world, key);

	count = 0;
	for (const Key *each = shelf->first; each != NULL && count < lengthof(before);
		 each = each->next_in_bucket)
		assert_true(check_lookup(world, each) >= before[count++]);
	check_shelf(world, shelf);
}

static void
pending_up(World *world, Key *key)
{
	rpin_table_pending_up(world->table, key->fingerprint);
	key->pending++;
	shelf_of(world, key)->pending++;
	world->pending++;
	check_lookup(world, key);
}

static void
pending_down(World *world, Key *key)
{
	if (key->pending == 0)
		return;
	rpin_table_pending_down(world->table, key->fingerprint);
	key->pending--;
	shelf_of(world, key)->pending--;
	world->pending--;
	check_lookup(world, key);
}

static void
pending_all(World *world)
{
	if (world->pending_all > 0 && !rpin_test_one_in(4))
	{
		rpin_table_pending_all_down(world->table);
		world->pending_all--;
	}
	else
	{
		rpin_table_pending_all_up(world->table);
		world->pending_all++;
	}
}

static void
raise_floor(World *world)
{
	uint64_t	floor = next_position(world);

	rpin_table_raise_floor(world->table, floor);
	world->floor = greater(world->floor, floor);
	world->greatest = greater(world->greatest, floor);
}

/* All keys alike, or a few of them mostly. */
static Key *
random_key(const World *world)
{
	uint64_t	limit = world->key_count;

	if (rpin_test_one_in(2) && limit > 8)
		limit = 8 + limit / 16;
	return &world->key[rpin_test_below(limit)];
}

static void
operate(World *world)
{
	Key		   *key = random_key(world);
	uint64_t	dice = rpin_test_below(1000);

	if (dice < 5)
		record_and_compare(world, key);
	else if (dice < 550)
		record(world, key);
	else if (dice < 850)
		check_lookup(world, key);
	else if (dice < 900)
		pending_up(world, key);
	else if (dice < 990)
		pending_down(world, key);
	else if (dice < 997)
		check_marks(world);
	else if (dice < 999)
		pending_all(world);
	else if (rpin_test_one_in(20))
		raise_floor(world);
	world->operations++;
}

static uint64_t
run(uint64_t capacity, uint64_t key_space, uint64_t operations)
{
	World		world;

	make_world(&world, capacity, key_space);
	while (world.operations < operations)
		operate(&world);

	check_marks(&world);
	for (uint64_t b = 0; b < world.table->bucket_count; b++)
		check_shelf(&world, &world.shelf[b]);

	/* Everybody is done: the table is quiet and knows the greatest. */
	while (world.pending_all > 0)
		pending_all(&world);
	for (uint64_t k = 0; k < world.key_count; k++)
		while (world.key[k].pending > 0)
			pending_down(&world, &world.key[k]);
	raise_floor(&world);
	check_marks(&world);
	free_world(&world);
	return world.operations;
}

static void
test_many_shapes(void **state)
{
	static const uint64_t capacities[] = {1, 3, 4, 10, 64, 300, 1000, 4000};
	static const uint64_t percents[] = {30, 100, 130, 400, 1000, 10000};
	const uint64_t each = rpin_test_rounds(500000);
	uint64_t	operations = 0;

	for (size_t c = 0; c < lengthof(capacities); c++)
		for (size_t p = 0; p < lengthof(percents); p++)
			operations += run(capacities[c],
							  2 + capacities[c] * percents[p] / 100, each);
	printf("%" PRIu64 " operations\n", operations);
	assert_true(operations == 48 * each);
}

/* Two keys of one fingerprint share the greater position. */
static void
test_shared_fingerprint(void **state)
{
	for (uint64_t i = rpin_test_rounds(20000); i > 0; i--)
	{
		World		world;
		uint64_t	a = 1 + rpin_test_below(1000);
		uint64_t	b = 1 + rpin_test_below(1000);
		uint64_t	fingerprint = rpin_test_random();

		make_world(&world, 1, 2);
		rpin_table_record(world.table, fingerprint, a);
		rpin_table_record(world.table, fingerprint, b);
		assert_int_equal(rpin_table_lookup(world.table, fingerprint).lsn,
						 greater(a, b));
		free_world(&world);
	}
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_shapes),
		cmocka_unit_test(test_shared_fingerprint),
	};

	rpin_test_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
