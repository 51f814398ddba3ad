/*-------------------------------------------------------------------------
 *
 * sim_main.c
 *	  Runs the world: one seed after the other, until a check fails or enough
 *	  was seen.
 *
 * Ends with 0 when every check held and nothing that should have happened is
 * missing; 1 when a check failed; 3 when something is missing, so that what the
 * run says of it is "unknown".
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim_world.h"

#define SIM_EPISODE 400000		/* events of one seed */
#define SIM_PROGRESS 60			/* seconds */

typedef struct SimOptions
{
	uint64_t	seed;
	uint64_t	steps;
	double		hours;			/* instead of steps */
	bool		trace;
} SimOptions;

static void
usage(void)
{
	fputs("usage: sim [--seed S] [--steps N | --hours N] [--trace]\n\n"
		  "Plays a cluster and its clients in virtual time and checks each decision.\n\n"
		  "  --seed S    the first seed (1); each next one plays another world\n"
		  "  --steps N   events in all (1000000), 400000 of each seed\n"
		  "  --hours N   hours of real time instead\n"
		  "  --trace     print the last events\n",
		  stderr);
	exit(2);
}

static void
read_options(int argc, char **argv, SimOptions *options)
{
	for (int i = 1; i < argc; i++)
	{
		bool		has_value = i + 1 < argc;

		if (strcmp(argv[i], "--trace") == 0)
			options->trace = true;
		else if (strcmp(argv[i], "--seed") == 0 && has_value)
			options->seed = strtoull(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--steps") == 0 && has_value)
			options->steps = strtoull(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--hours") == 0 && has_value)
			options->hours = strtod(argv[++i], NULL);
		else
			usage();
	}
}

static double
elapsed(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec + (double) now.tv_nsec / 1e9;
}

/* Plays one seed.  False when a check failed. */
static bool
play(uint64_t seed, uint64_t steps, bool trace, SimCounts *counts)
{
	SimConfig	config;
	SimWorld   *world;
	uint64_t	begin = counts->steps;
	bool		holds = true;

	sim_config_draw(&config, seed);
	world = sim_world_create(&config, counts);
	while (holds && counts->steps - begin < steps)
		holds = sim_world_step(world);
	if (!holds || trace)
		sim_world_print_trace(world, trace ? SIM_TRACE : 20);
	if (!holds)
		printf("FAILED: %s\n  replay it by: script/sim --seed %" PRIu64 " --steps %" PRIu64 " --trace\n",
			   world->failure, seed, counts->steps - begin);
	sim_world_free(world);
	return holds;
}

int
main(int argc, char **argv)
{
	SimOptions	options = {.seed = 1, .steps = 1000000};
	SimCounts	counts = {0};
	double		begin = elapsed();
	double		told = begin;
	bool		holds = true;
	int			missing = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	read_options(argc, argv, &options);
	if (options.hours > 0)
		options.steps = UINT64_MAX;
	for (uint64_t seed = options.seed; holds && counts.steps < options.steps; seed++)
	{
		uint64_t	rest = options.steps - counts.steps;

		if (options.hours > 0 && elapsed() - begin > options.hours * 3600)
			break;
		holds = play(seed, rest < SIM_EPISODE ? rest : SIM_EPISODE, options.trace, &counts);
		if (elapsed() - told < SIM_PROGRESS)
			continue;
		told = elapsed();
		printf("# seed %" PRIu64 ": %" PRIu64 " steps, %.0f s\n", seed, counts.steps, told - begin);
	}
	if (holds)
		missing = sim_counts_print(&counts);
	printf("%" PRIu64 " steps, %" PRId64 " s of virtual time, %.1f s\n", counts.steps,
		   counts.virtual_time / SIM_S, elapsed() - begin);
	if (missing > 0)
		printf("unknown: %d of what should happen happened too rarely\n", missing);
	return !holds ? 1 : missing > 0 ? 3 : 0;
}
