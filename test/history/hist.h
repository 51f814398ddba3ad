/*
 * hist.h
 *	  The history checker: its options, its modes, and what runs in it.
 */
#ifndef HIST_H
#define HIST_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "hist_conn.h"

#define HIST_MAX_REPLICAS 8
#define HIST_MAX_EXPECTED 32

typedef struct HistReplica
{
	char	   *name;
	char	   *conninfo;
	char	   *pooler;			/* NULL: none */
	bool		spare;			/* need not serve */
} HistReplica;

/* A fault that has to be seen so many times. */
typedef struct HistExpected
{
	char	   *name;
	int			times;
} HistExpected;

/* How a writer takes the position that a control goes by. */
typedef enum HistClaim
{
	HIST_CLAIM_NONE,
	HIST_CLAIM_COMMIT,			/* of the commit: as it should be */
	HIST_CLAIM_INSIDE,			/* asked in the transaction, before COMMIT */
	HIST_CLAIM_ELSEWHERE,		/* asked on another connection, before COMMIT */
	HIST_CLAIM_LAST				/* what the session's last commit left behind */
} HistClaim;

/* Where a control must show stale reads. */
typedef enum HistWhere
{
	HIST_ANYWHERE,
	HIST_EVERYWHERE,			/* on every replica */
	HIST_DELAYED				/* every fresh row on the last one, which is
								 * delayed */
} HistWhere;

struct HistReader;
struct HistDemand;

typedef struct HistMode
{
	const char *name;
	const char *text;
	void		(*read) (struct HistReader *reader);
	HistClaim	claim;
	unsigned	shows;			/* bit n: HistViolation n must come, else none
								 * may */
	HistWhere	where;
	bool		full;			/* the rule about vacuous runs applies */
} HistMode;

extern const HistMode hist_modes[];
extern const HistMode *hist_mode_find(const char *name);

typedef struct HistOptions
{
	const HistMode *mode;
	HistReplica replicas[HIST_MAX_REPLICAS];
	int			replica_count;
	int			writers;
	int			readers;
	int			keys;
	int			seconds;
	int			patience;		/* seconds more, if too little was seen */
	int			near_ms;		/* what is soon after a replica was there */
	int			lifetime_ms;
	int64_t		lifetime;		/* of samples, in microseconds */
	int64_t		interval;		/* between them; asked of the primary */
	bool		synchronous;	/* asked too */
	const char *seed_text;
	uint64_t	seed;
	const char *report;
	const char *control;
	bool		verbose;
	HistExpected expected[HIST_MAX_EXPECTED];
	int			expected_count;
} HistOptions;

extern HistOptions hist_options;

extern void hist_options_read(int argc, char **argv);

/* A number of a sequence of one's own. */
extern uint64_t hist_random(uint64_t *state);

extern void hist_thread(pthread_t *thread, void *(*run) (void *), void *argument);

extern bool hist_stopping(void);
extern void hist_stop(void);

/* When this run began, and when its warming up is over. */
extern int64_t hist_began_at(void);
extern bool hist_warm(void);

/*
 * The present primary.  A thread's connection follows it with
 * hist_primary_follow(); a number counts the primaries.
 */
extern void hist_primary_set(const char *conninfo);
extern const char *hist_primary(unsigned *number);
extern void hist_primary_follow(HistConn *conn, unsigned *number);

/* A connection to the primary broke: it may have been restarted. */
extern void hist_primary_broke(void);
extern int64_t hist_primary_broke_at(void);

/* hist_writer.c, hist_reader.c, hist_control.c */
extern void *hist_writer_main(void *number);
extern void *hist_reader_main(void *number);
extern void *hist_control_main(void *unused);

#endif							/* HIST_H */
