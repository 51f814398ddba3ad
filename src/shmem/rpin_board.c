/*-------------------------------------------------------------------------
 *
 * rpin_board.c
 *	  What the sampler knows, for everybody to read.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/shmem.h"

#include "../core/rpin_atomic.h"
#include "rpin_board.h"
#include "rpin_clock.h"
#include "rpin_shmem.h"
#include "rpin_wal.h"

/*
 * A reading fails only when the sampler publishes twice while it lasts.  This
 * often in a row does not happen; if it does, the answer is the primary.
 */
#define RPIN_BOARD_TRIES 1000

typedef struct RpinBoardShared
{
	uint64		node_id;		/* set once at start */
	uint64		edition;		/* atomic; the place is its lowest bit */

	/* The sampler's; atomic. */
	uint64		worker_pid;
	uint64		worker_latch;	/* address of a Latch in shared memory, or 0 */
	uint64		worker_asleep;
	uint64		worker_heartbeat;

	char		place[FLEXIBLE_ARRAY_MEMBER];	/* two boards */
} RpinBoardShared;

int			rpin_max_replicas = 32;
int			rpin_sample_lifetime = 5000;

static RpinBoardShared *shared = NULL;

Size
rpin_board_size(void)
{
	return MAXALIGN(offsetof(RpinBoard, row) +
					rpin_max_replicas * sizeof(RpinBoardRow));
}

/* Bytes that a board of this many rows really fills. */
static Size
filled_size(const RpinBoard *board)
{
	return offsetof(RpinBoard, row) + board->count * sizeof(RpinBoardRow);
}

Size
rpin_board_shmem_size(void)
{
	return MAXALIGN(offsetof(RpinBoardShared, place)) + 2 * rpin_board_size();
}

void
rpin_board_shmem_init(void)
{
	bool		found;

	shared = ShmemInitStruct("replica_pin board", rpin_board_shmem_size(),
							 &found);
	if (found)
		return;
	memset(shared, 0, rpin_board_shmem_size());
	shared->node_id = rpin_shmem_random();
}

uint64
rpin_board_node_id(void)
{
	return shared->node_id;
}

static RpinBoard *
place_of(uint64 edition)
{
	char	   *places = (char *) shared +
		MAXALIGN(offsetof(RpinBoardShared, place));

	return (RpinBoard *) (places + (edition & 1) * rpin_board_size());
}

/* The published board, to be read in place. */
static const RpinBoard *
begin_reading(uint64 *edition)
{
	*edition = rpin_atomic_read(&shared->edition);
	return place_of(*edition);
}

/* Was all that was read since begin_reading() of that edition? */
static bool
was_whole(uint64 edition)
{
	pg_read_barrier();
	return rpin_atomic_read(&shared->edition) == edition;
}

/*
 * The copy goes into the place that the edition before the last had.  Whoever
 * still reads there finds the edition changed, and reads again.
 */
void
rpin_board_publish(const RpinBoard *board)
{
	uint64		next = shared->edition + 1;

	pg_memory_barrier();
	memcpy(place_of(next), board, filled_size(board));
	pg_memory_barrier();
	rpin_atomic_write(&shared->edition, next);
}

/* A row count out of a torn reading must not lead outside the board. */
static int
row_count(const RpinBoard *board)
{
	int			count = *(const volatile int *) &board->count;

	return Max(0, Min(count, rpin_max_replicas));
}

bool
rpin_board_copy(RpinBoard *board)
{
	for (int try = 0; try < RPIN_BOARD_TRIES; try++)
	{
		uint64		edition;
		const RpinBoard *published = begin_reading(&edition);
		int			count = row_count(published);

		memcpy(board, published,
			   offsetof(RpinBoard, row) + count * sizeof(RpinBoardRow));
		if (was_whole(edition))
			return true;
	}
	return false;
}

static int
list_candidates(const RpinBoard *board, RpinCandidate *candidate)
{
	int64		now = rpin_clock_now();
	int64		lifetime = (int64) rpin_sample_lifetime * 1000;
	int			count = row_count(board);

	for (int i = 0; i < count; i++)
	{
		const RpinReplica *replica = &board->row[i].replica;

		candidate[i].self = replica->state == RPIN_STATE_SELF;
		candidate[i].eligible = rpin_replica_eligible(replica, now, lifetime);
		candidate[i].replay_lsn = replica->replay_lsn;
	}
	return count;
}

bool
rpin_board_eligible(const RpinBoardRow *row)
{
	return rpin_replica_eligible(&row->replica, rpin_clock_now(),
								 (int64) rpin_sample_lifetime * 1000);
}

static void
name_safe_set(const RpinBoard *board, uint64 safe, RpinChoice *choice)
{
	for (int i = 0; i < RPIN_REPLICAS_LIMIT; i++)
		if (safe & (UINT64CONST(1) << i))
			memcpy(choice->name[choice->count++], board->row[i].address.name,
				   RPIN_NAME_SIZE);
}

/* One reading of the board; it counts only if it was whole. */
static void
decide_once(const RpinBoard *board, const RpinQuestion *question,
			bool with_names, RpinChoice *choice)
{
	RpinCandidate candidate[RPIN_REPLICAS_LIMIT];
	int			count = list_candidates(board, candidate);
	RpinDecision decision = rpin_decide(question->required, question->pending,
										candidate, count);

	/* Before the sampler has read the setting nobody knows who is in it. */
	if (decision.reason == RPIN_REASON_NO_REPLICAS && board->history.timeline == 0)
		decision.reason = RPIN_REASON_SAMPLES_STALE;
	if (question->fault != RPIN_REASON_NONE)
	{
		decision.reason = question->fault;
		decision.safe = 0;
	}
	choice->found = decision.reason;
	if (!question->enforced)
		decision = rpin_decide_unenforced(decision);
	choice->reason = decision.reason;
	choice->count = 0;
	if (with_names)
		name_safe_set(board, decision.safe, choice);
}

void
rpin_board_decide(const RpinQuestion *question, bool with_names,
				  RpinChoice *choice)
{
	for (int try = 0; try < RPIN_BOARD_TRIES; try++)
	{
		uint64		edition;

		decide_once(begin_reading(&edition), question, with_names, choice);
		if (was_whole(edition))
			return;
	}
	choice->reason = choice->found = RPIN_REASON_SAMPLES_STALE;
	choice->count = 0;
}

void
rpin_board_decide_by(const RpinBoard *board, const RpinQuestion *question,
					 RpinChoice *choice)
{
	decide_once(board, question, true, choice);
}

static void
find_best(const RpinBoard *board, RpinBest *best)
{
	RpinCandidate candidate[RPIN_REPLICAS_LIMIT];
	int			count = list_candidates(board, candidate);

	memset(best, 0, sizeof(*best));
	for (int i = 0; i < count; i++)
	{
		if (!candidate[i].eligible || candidate[i].replay_lsn < best->replay_lsn)
			continue;
		memcpy(best->name, board->row[i].address.name, RPIN_NAME_SIZE);
		best->replay_lsn = candidate[i].replay_lsn;
		best->age = rpin_clock_now() -
			board->row[i].replica.sample_requested_at;
	}
}

void
rpin_board_best(RpinBest *best)
{
	for (int try = 0; try < RPIN_BOARD_TRIES; try++)
	{
		uint64		edition;

		find_best(begin_reading(&edition), best);
		if (was_whole(edition))
			return;
	}
	memset(best, 0, sizeof(*best));
}

RpinReason
rpin_board_resolve(const RpinPosition *position, XLogRecPtr *lsn)
{
	RpinHistory own = {.timeline = GetWALInsertionTimeLine()};
	XLogRecPtr	end = rpin_wal_end();

	for (int try = 0; try < RPIN_BOARD_TRIES; try++)
	{
		uint64		edition;
		const RpinBoard *board = begin_reading(&edition);
		bool		known = board->history.timeline == own.timeline;
		RpinReason	reason =
			rpin_history_resolve(known ? &board->history : &own,
								 GetSystemIdentifier(), end, position, lsn);

		if (!was_whole(edition))
			continue;
		if (reason == RPIN_REASON_UNKNOWN_TIMELINE && !known)
			return RPIN_REASON_SAMPLES_STALE;
		return reason;
	}
	return RPIN_REASON_SAMPLES_STALE;
}

void
rpin_board_worker_attach(void)
{
	rpin_atomic_write(&shared->worker_asleep, 0);
	rpin_atomic_write(&shared->worker_latch, (uint64) (uintptr_t) MyLatch);
	rpin_atomic_write(&shared->worker_heartbeat, rpin_clock_now());
	rpin_atomic_write(&shared->worker_pid, MyProcPid);
}

void
rpin_board_worker_detach(void)
{
	rpin_atomic_write(&shared->worker_asleep, 0);
	rpin_atomic_write(&shared->worker_latch, 0);
	rpin_atomic_write(&shared->worker_pid, 0);
}

void
rpin_board_worker_heartbeat(int64 now)
{
	rpin_atomic_write(&shared->worker_heartbeat, now);
}

void
rpin_board_worker_asleep(bool asleep)
{
	rpin_atomic_write(&shared->worker_asleep, asleep ? 1 : 0);
}

/*
 * The latch is one of the server's process array and stays valid memory after
 * its owner is gone; whoever has it then is woken once for nothing.
 */
void
rpin_board_wake_worker(void)
{
	Latch	   *latch;

	if (!rpin_atomic_read(&shared->worker_asleep) ||
		!rpin_atomic_swap(&shared->worker_asleep, 1, 0))
		return;
	latch = (Latch *) (uintptr_t) rpin_atomic_read(&shared->worker_latch);
	if (latch != NULL)
		SetLatch(latch);
}

void
rpin_board_worker_info(RpinWorkerInfo *info)
{
	info->pid = (int) rpin_atomic_read(&shared->worker_pid);
	info->heartbeat = (int64) rpin_atomic_read(&shared->worker_heartbeat);
}
