/*
 * hist_judge.h
 *	  Judges decisions and reads against the model and against where the replicas
 *	  were.
 *
 * A violation is kept with what it takes to judge it again at the end, when it
 * is known which commits a failover lost.
 */
#ifndef HIST_JUDGE_H
#define HIST_JUDGE_H

#include <stdio.h>

#include "hist_model.h"

typedef enum HistViolation
{
	HIST_STALE,					/* below what was acknowledged, or seen by
								 * anybody */
	HIST_LOST_PIN,				/* a replica was named that was short */
	HIST_MONOTONIC,				/* older than what this reader had read */
	HIST_DIVERGENT,				/* of a history that did not survive */
	HIST_FALSE_PIN,				/* the primary, though all had been there for
								 * long */
	HIST_VIOLATION_KINDS
} HistViolation;

extern const char *const hist_violation_names[HIST_VIOLATION_KINDS];

/* A replica, or HIST_PRIMARY. */
#define HIST_PRIMARY (-1)

typedef struct HistRead
{
	HistDemand	demand;
	int64_t		asked_at;		/* the decision */
	int64_t		answered_at;
	bool		route;			/* by route(), not is_pinned() */
	unsigned	named;			/* bit n: replica n may be read */
	int			replica;		/* the one that was read */
	char		reason[32];
	char		required[HIST_TOKEN_SIZE];
	int64_t		sent_at;		/* the read */
	int64_t		version;		/* 0: no row */
	uint64_t	lsn;			/* replayed, as the replica says with the read */
} HistRead;

/*
 * A decision of route() or is_pinned().  True: it looks like a false pin, unless a
 * replica is not eligible, of which is_pinned() says nothing.
 */
extern bool hist_judge_decision(const HistRead *read);
extern void hist_judge_false_pin(const HistRead *read);

/* Replicas decided themselves, by a token: one served the read, or none. */
extern void hist_judge_token(const HistRead *read, bool served);

/* A replica that was not named says where it is. */
extern void hist_judge_refusal(const HistRead *read, int replica, uint64_t lsn);

/*
 * What the board says of a replica that was named, and then the replica itself,
 * over a connection that is older than the sample; 0: no answer.
 */
extern void hist_judge_sample(const HistRead *read, int replica, uint64_t sample,
							  uint64_t lsn);

extern void hist_judge_read(const HistRead *read);

/* A read of one who has seen `high` of this row before, on a replica or not. */
extern void hist_judge_monotonic(const HistRead *read, int64_t high, bool high_on_replica);

/* The violations at first sight, and those that stand against what survived. */
extern int64_t hist_judge_raw(HistViolation kind);
extern int64_t hist_judge_final(HistViolation kind);

/* The first ones that stand, for people. */
extern void hist_judge_show(FILE *file, int count);

#endif							/* HIST_JUDGE_H */
