/*
 * hist_model.h
 *	  What was written, as its writers know it: the truth that reads are judged
 *	  against.
 *
 * A slot is one row and session key at a time.  Now and then a write leaves the
 * row and makes a new one, so that there are always rows that were just created.
 * Versions are numbered over all slots, in the order in which they were begun; a
 * row only ever takes a greater one.
 */
#ifndef HIST_MODEL_H
#define HIST_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "hist_conn.h"

/* The last commits of a slot that are remembered one by one. */
#define HIST_COMMITS 24

#define HIST_TOKEN_SIZE 43

typedef struct HistCommit
{
	int64_t		version;
	uint64_t	lsn;			/* of the commit's own token; 0 if unknown */
	char		token[HIST_TOKEN_SIZE];
} HistCommit;

/* What a read must see that is decided now. */
typedef struct HistDemand
{
	int			slot;
	int64_t		key;
	HistCommit	commit;			/* the greatest acknowledged; version 0: none */
	int64_t		acked_at;
	int64_t		created_at;		/* when the row's first commit was
								 * acknowledged */
	int64_t		seen;			/* the greatest version that anybody has read */
	uint64_t	claim;			/* where a wrong rule says that the commit is */
	bool		settled;		/* no write is under way or without an answer */
	int			count;			/* of what follows */
	int64_t		versions[HIST_COMMITS];
} HistDemand;

typedef enum HistFate
{
	HIST_FATE_NONE,				/* not committed */
	HIST_FATE_TRIED,			/* COMMIT was sent */
	HIST_FATE_UNKNOWN,			/* and never answered */
	HIST_FATE_ACKED,
	HIST_FATE_GONE,				/* never answered, and the primary lacks it */
	HIST_FATE_LOST				/* acknowledged, and the primary lacks it */
} HistFate;

typedef struct HistWrite
{
	int			slot;
	int64_t		key;
	int64_t		version;
} HistWrite;

extern void hist_model_init(int slots);

/* A write begins; `create` makes a new row. */
extern HistWrite hist_model_begin(int slot, bool create);

/* COMMIT is about to be sent. */
extern void hist_model_commits(const HistWrite *write);

/* It is over; `commit` is NULL if nothing is known of it, or it failed. */
extern void hist_model_end(const HistWrite *write, bool unknown,
						   const HistCommit *commit, uint64_t claim);

extern void hist_model_demand(int slot, HistDemand *demand);

/* Somebody has read this version. */
extern void hist_model_saw(const HistDemand *demand, int64_t version);

/* A slot that was written lately, or any. */
extern int	hist_model_pick(uint64_t random);

extern HistFate hist_model_fate(int64_t version);
extern int64_t hist_model_last_version(void);

/* GONE or LOST. */
extern bool hist_model_lacks(int64_t version);

/*
 * Asks the primary which of the commits it has.  From now on no read must see
 * those that it lacks.  Returns how many are LOST; negative if the primary could
 * not be asked.
 */
extern int64_t hist_model_survivors(HistConn *primary);

#endif							/* HIST_MODEL_H */
