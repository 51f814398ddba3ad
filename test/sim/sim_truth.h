/*-------------------------------------------------------------------------
 *
 * sim_truth.h
 *	  What really happened: the oracle's knowledge, which the product never has.
 *
 * WAL is a tree of lines.  A line is left at a switch point, by a promotion,
 * and also by what no timeline number tells: a primary that crashed and lost
 * WAL that was not flushed, or that was restored from a snapshot, writes other
 * WAL at the same positions under the same number.  Such a branch is another
 * line here.
 *
 * A spot is a position on a line.  What a read of a key must see is the greatest
 * spot that became visible for the key and that the primary's line still holds:
 * an unbounded map of all keys.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIM_TRUTH_H
#define SIM_TRUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct SimSpot
{
	int			line;
	uint64_t	lsn;			/* 0: none */
} SimSpot;

typedef struct SimLine
{
	uint32_t	number;			/* the timeline, as servers call it */
	int			parent;			/* -1: none */
	uint64_t	switch_lsn;		/* where the parent was left */
} SimLine;

#define SIM_LINES 1024

/* Writes are remembered in a ring, so that a lost one uncovers the one before. */
#define SIM_WRITES (1 << 17)

typedef struct SimWrite
{
	SimSpot		spot;
	uint64_t	before;			/* the next lower of the same key; 0: none */
} SimWrite;

typedef struct SimTruth
{
	int			line_count;
	SimLine		line[SIM_LINES];
	uint64_t	write_count;
	SimWrite	write[SIM_WRITES];
	int			key_count;
	uint64_t   *greatest;		/* per key: number of the write; 0: none */
} SimTruth;

extern SimTruth *sim_truth_create(int key_count);
extern void sim_truth_free(SimTruth *truth);

/* A new line, left from its parent at that position. */
extern int	sim_truth_branch(SimTruth *truth, int parent, uint64_t switch_lsn,
							 uint32_t number);

/* Is a spot part of a line that was written, or replayed, up to that position? */
extern bool sim_truth_holds(const SimTruth *truth, int line, uint64_t upto,
							SimSpot spot);

/* The line on which a position of this line was written. */
extern int	sim_truth_line_at(const SimTruth *truth, int line, uint64_t lsn);

/* Where the timeline number of this line begins; 0: the first. */
extern uint64_t sim_truth_begin(const SimTruth *truth, int line);

/* The text of the timeline history file of a line; its length. */
extern size_t sim_truth_history(const SimTruth *truth, int line, char *text,
								size_t size);

/* From now on a read of the key must see this spot. */
extern void sim_truth_write(SimTruth *truth, int key, SimSpot spot);

/* What a read of the key must see, on a primary at the end of that line. */
extern SimSpot sim_truth_required(SimTruth *truth, int key, int line,
								  uint64_t end);

#endif							/* SIM_TRUTH_H */
