/*-------------------------------------------------------------------------
 *
 * sim_truth.c
 *	  What really happened.
 *
 *-------------------------------------------------------------------------
 */
#include "sim_truth.h"

#include <stdio.h>
#include <stdlib.h>

SimTruth *
sim_truth_create(int key_count)
{
	SimTruth   *truth = calloc(1, sizeof(SimTruth));

	if (truth == NULL)
		abort();
	truth->key_count = key_count;
	truth->greatest = calloc((size_t) key_count, sizeof(uint64_t));
	if (truth->greatest == NULL)
		abort();
	truth->line_count = 1;
	truth->line[0] = (SimLine) {.number = 1, .parent = -1};
	return truth;
}

void
sim_truth_free(SimTruth *truth)
{
	free(truth->greatest);
	free(truth);
}

int
sim_truth_branch(SimTruth *truth, int parent, uint64_t switch_lsn,
				 uint32_t number)
{
	if (truth->line_count == SIM_LINES)
		abort();
	truth->line[truth->line_count] = (SimLine) {number, parent, switch_lsn};
	return truth->line_count++;
}

bool
sim_truth_holds(const SimTruth *truth, int line, uint64_t upto, SimSpot spot)
{
	/* a line is younger than its ancestors */
	for (; line > spot.line; line = truth->line[line].parent)
		if (upto > truth->line[line].switch_lsn)
			upto = truth->line[line].switch_lsn;
	return line == spot.line && spot.lsn <= upto;
}

int
sim_truth_line_at(const SimTruth *truth, int line, uint64_t lsn)
{
	while (truth->line[line].parent >= 0 && lsn <= truth->line[line].switch_lsn)
		line = truth->line[line].parent;
	return line;
}

uint64_t
sim_truth_begin(const SimTruth *truth, int line)
{
	for (; truth->line[line].parent >= 0; line = truth->line[line].parent)
		if (truth->line[truth->line[line].parent].number != truth->line[line].number)
			return truth->line[line].switch_lsn;
	return 0;
}

size_t
sim_truth_history(const SimTruth *truth, int line, char *text, size_t size)
{
	int			path[SIM_LINES];
	int			count = 0;
	size_t		length = 0;

	for (; truth->line[line].parent >= 0; line = truth->line[line].parent)
		if (truth->line[truth->line[line].parent].number != truth->line[line].number)
			path[count++] = line;
	while (count > 0)
	{
		const SimLine *left = &truth->line[path[--count]];

		length += (size_t) snprintf(text + length, size - length,
									"%u\t%X/%08X\tno recovery target specified\n",
									truth->line[left->parent].number,
									(unsigned) (left->switch_lsn >> 32),
									(unsigned) left->switch_lsn);
	}
	return length;
}

/* The write of that number; NULL if there is none, or not any more. */
static SimWrite *
find_write(SimTruth *truth, uint64_t number)
{
	if (number == 0 || number + SIM_WRITES <= truth->write_count)
		return NULL;
	return &truth->write[number % SIM_WRITES];
}

/* Commits become visible in another order than their records stand in WAL. */
void
sim_truth_write(SimTruth *truth, int key, SimSpot spot)
{
	uint64_t	number = ++truth->write_count;
	uint64_t   *place = &truth->greatest[key];
	SimWrite   *next;

	while ((next = find_write(truth, *place)) != NULL &&
		   next->spot.line == spot.line && next->spot.lsn > spot.lsn)
		place = &next->before;
	truth->write[number % SIM_WRITES] = (SimWrite) {spot, *place};
	*place = number;
}

SimSpot
sim_truth_required(SimTruth *truth, int key, int line, uint64_t end)
{
	SimWrite   *write;

	/* what is lost once is lost for ever */
	while ((write = find_write(truth, truth->greatest[key])) != NULL &&
		   !sim_truth_holds(truth, line, end, write->spot))
		truth->greatest[key] = write->before;
	return write != NULL ? write->spot : (SimSpot) {0, 0};
}
