/*-------------------------------------------------------------------------
 *
 * rpin_board.h
 *	  The board: what the sampler knows, for everybody to read.
 *
 * Written by the sampler alone, as a whole, from its own copy.  There are two
 * places: the sampler fills the one that is not published and then publishes it
 * by raising the edition.  A reader takes what it needs from the published
 * place and looks whether the edition is still the same: while it is, the
 * sampler has not begun to write there.  So no reader ever waits, even for a
 * sampler that was stopped in the middle of a write (P6), and each reading is
 * of one moment.
 *
 * Nothing here throws or allocates, and there is no lock.  Times are
 * microseconds of rpin_clock_now(); LSN are bytes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_BOARD_H
#define RPIN_BOARD_H

#include "access/xlogdefs.h"

#include "../core/rpin_decide.h"
#include "../core/rpin_history.h"
#include "../core/rpin_list.h"
#include "../core/rpin_pace.h"
#include "../core/rpin_replica.h"

/* The settings replica_pin.max_replicas and sample_lifetime (ms). */
extern int	rpin_max_replicas;
extern int	rpin_sample_lifetime;

/* With the terminating zero byte. */
#define RPIN_ERROR_SIZE 256

/* Everything about one replica, in the order of the setting. */
typedef struct RpinBoardRow
{
	RpinAddress address;
	RpinReplica replica;
	int64		connected_at;	/* 0: no connection */
	int64		behind_since;	/* when WAL that it lacks was flushed here;
								 * -1: it has all, as of its last sample */
	char		library_version[RPIN_VERSION_SIZE]; /* empty: never sampled */
	char		error[RPIN_ERROR_SIZE]; /* of the last failure, ASCII */
} RpinBoardRow;

typedef struct RpinBoard
{
	RpinHistory history;		/* timeline 0: the sampler never ran */
	int			clamped;		/* RPIN_CLAMPED_*: settings that did not fit */
	int			count;
	RpinBoardRow row[FLEXIBLE_ARRAY_MEMBER];
} RpinBoard;

/* What is asked of a decision. */
typedef struct RpinQuestion
{
	RpinReason	fault;			/* stands against it already; or NONE */
	XLogRecPtr	required;		/* what the read must see */
	bool		pending;		/* and perhaps more, not known yet */
	bool		enforced;		/* false: any eligible replica will do */
} RpinQuestion;

/* The answer, of one moment. */
typedef struct RpinChoice
{
	RpinReason	reason;			/* what users are told */
	RpinReason	found;			/* the same, were it enforced */
	int			count;
	char		name[RPIN_REPLICAS_LIMIT][RPIN_NAME_SIZE];
} RpinChoice;

/* The eligible replica that is furthest. */
typedef struct RpinBest
{
	char		name[RPIN_NAME_SIZE];	/* empty: none is eligible */
	XLogRecPtr	replay_lsn;
	int64		age;			/* of its sample */
} RpinBest;

/* The sampler as others see it. */
typedef struct RpinWorkerInfo
{
	int			pid;			/* 0: not running */
	int64		heartbeat;		/* when it last went round its loop; 0: never */
} RpinWorkerInfo;

extern Size rpin_board_shmem_size(void);
extern void rpin_board_shmem_init(void);

/* Bytes of a board of max_replicas rows. */
extern Size rpin_board_size(void);

/* Random, drawn at each start: how a server finds itself in the list. */
extern uint64 rpin_board_node_id(void);

/*
 * Decides, and names the replicas that may be read; see rpin_decide().  The
 * names are left out where nobody wants them.
 */
extern void rpin_board_decide(const RpinQuestion *question, bool with_names,
							  RpinChoice *choice);

/* The same by a copy of the board, whose replicas are told of one by one. */
extern void rpin_board_decide_by(const RpinBoard *board,
								 const RpinQuestion *question,
								 RpinChoice *choice);

/* May the sample of a copied row be believed now? */
extern bool rpin_board_eligible(const RpinBoardRow *row);

/* For the log of a decision. */
extern void rpin_board_best(RpinBest *best);

/*
 * rpin_history_resolve() by the history on the board, not in recovery.
 *
 * Before the sampler has read the history, positions of other timelines cannot
 * be told from lost ones.  They are neither condemned nor believed then:
 * SAMPLES_STALE.
 */
extern RpinReason rpin_board_resolve(const RpinPosition *position,
									 XLogRecPtr *lsn);

/* Copies the board to memory of rpin_board_size(); false if it never holds
 * still, which takes a sampler that publishes faster than memory is copied. */
extern bool rpin_board_copy(RpinBoard *board);

/* For the sampler: makes *board the published one. */
extern void rpin_board_publish(const RpinBoard *board);

/*
 * The sampler's sleep.  It announces that it will sleep, then looks once more
 * for news, then sleeps on its latch.  Whoever has news wakes it, at most once
 * a sleep.  Waking is safe in the commit path: a latch, no lock.
 */
extern void rpin_board_worker_attach(void);
extern void rpin_board_worker_detach(void);
extern void rpin_board_worker_heartbeat(int64 now);
extern void rpin_board_worker_asleep(bool asleep);
extern void rpin_board_wake_worker(void);
extern void rpin_board_worker_info(RpinWorkerInfo *info);

#endif							/* RPIN_BOARD_H */
