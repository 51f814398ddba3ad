/*-------------------------------------------------------------------------
 *
 * rpin_test.c
 *	  What the unit tests share.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_test.h"

#include <inttypes.h>

static uint64_t random_state;
static uint64_t most_rounds = UINT64_MAX;

static uint64_t
setting(const char *name, uint64_t missing)
{
	const char *text = getenv(name);
	char	   *end;
	uint64_t	value;

	if (text == NULL || *text == '\0')
		return missing;
	value = strtoull(text, &end, 0);
	if (*end != '\0' || value == 0)
	{
		fprintf(stderr, "%s must be a number above 0\n", name);
		exit(2);
	}
	return value;
}

static uint64_t
new_seed(void)
{
	uint64_t	seed;
	FILE	   *file = fopen("/dev/urandom", "rb");

	if (file == NULL || fread(&seed, sizeof(seed), 1, file) != 1)
	{
		perror("/dev/urandom");
		exit(2);
	}
	fclose(file);
	return seed | 1;
}

void
rpin_test_begin(void)
{
	/* Whole lines in order, also when the run ends in a sanitizer's report. */
	setvbuf(stdout, NULL, _IOLBF, 0);

	random_state = setting("RPIN_SEED", new_seed());
	most_rounds = setting("RPIN_ITERATIONS", UINT64_MAX);
	printf("RPIN_SEED=0x%" PRIx64 "\n", random_state);
}

uint64_t
rpin_test_rounds(uint64_t full)
{
	return full < most_rounds ? full : most_rounds;
}

/* The finalizer of SplitMix64: each of its steps can be undone. */
uint64_t
rpin_test_mix(uint64_t number)
{
	number = (number ^ (number >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	number = (number ^ (number >> 27)) * UINT64_C(0x94D049BB133111EB);
	return number ^ (number >> 31);
}

uint64_t
rpin_test_random(void)
{
	random_state += UINT64_C(0x9E3779B97F4A7C15);
	return rpin_test_mix(random_state);
}

uint64_t
rpin_test_below(uint64_t limit)
{
	return (uint64_t) (((unsigned __int128) rpin_test_random() * limit) >> 64);
}

bool
rpin_test_one_in(uint64_t times)
{
	return rpin_test_below(times) == 0;
}

char *
rpin_test_copy(const char *bytes, size_t length)
{
	char	   *copy = malloc(length);

	/* Nothing can be asked of a test that gets no memory. */
	if (copy == NULL && length > 0)
		abort();
	if (length > 0)
		memcpy(copy, bytes, length);
	return copy;
}
