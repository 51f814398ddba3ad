/*-------------------------------------------------------------------------
 *
 * rpin_worker.c
 *	  The sampler process: signals, waiting, and the loop.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/ps_status.h"
#include "utils/wait_event.h"

#include "../rpin_compat.h"
#include "../shmem/rpin_board.h"
#include "../shmem/rpin_clock.h"
#include "../shmem/rpin_keys.h"
#include "rpin_conninfo.h"
#include "rpin_sampler.h"
#include "rpin_worker.h"

/* A sampler that ended is started again after this many seconds. */
#define RPIN_WORKER_RESTART 1

/* Latch, postmaster death, one socket a replica. */
#define RPIN_WAIT_EVENTS (RPIN_REPLICAS_LIMIT + 2)

char	   *rpin_replicas = NULL;
char	   *rpin_conninfo = NULL;
int			rpin_sample_interval = 250;
int			rpin_min_sample_interval = 2;
int			rpin_sample_timeout = 1000;

static RpinSampler *sampler = NULL;
static WaitEventSet *wait_set = NULL;
static uint32 wait_event = 0;

void
rpin_worker_register(void)
{
	BackgroundWorker worker = {
		.bgw_name = "replica_pin sampler",
		.bgw_type = "replica_pin sampler",
		.bgw_flags = BGWORKER_SHMEM_ACCESS,
		.bgw_start_time = BgWorkerStart_RecoveryFinished,
		.bgw_restart_time = RPIN_WORKER_RESTART,
		.bgw_library_name = "replica_pin",
		.bgw_function_name = "rpin_worker_main",
	};

	if (!IsBinaryUpgrade)
		RegisterBackgroundWorker(&worker);
}

static void
configure(void)
{
	RpinSamplerSettings settings = {
		.replicas = rpin_replicas,
		.conninfo = rpin_conninfo,
		.pace = {
			.sample_interval = (int64) rpin_sample_interval * 1000,
			.min_sample_interval = (int64) rpin_min_sample_interval * 1000,
			.sample_timeout = (int64) rpin_sample_timeout * 1000,
			.sample_lifetime = (int64) rpin_sample_lifetime * 1000,
		},
	};
	int			count;
	char		title[64];

	rpin_sampler_configure(sampler, &settings);
	count = rpin_sampler_count(sampler);
	snprintf(title, sizeof(title), "watching %d replica%s", count,
			 count == 1 ? "" : "s");
	set_ps_display(title);
}

static void
leave(int code, Datum argument)
{
	rpin_sampler_destroy(sampler);
	rpin_board_worker_detach();
}

/* Made anew as a whole: see rpin_sampler_take_rewire(). */
static void
rebuild_wait_set(void)
{
	if (wait_set != NULL)
		FreeWaitEventSet(wait_set);
	wait_set = rpin_create_wait_event_set(RPIN_WAIT_EVENTS);
	AddWaitEventToSet(wait_set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(wait_set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL,
					  NULL);
	for (int i = 0; i < rpin_sampler_count(sampler); i++)
	{
		int			fd = rpin_sampler_socket(sampler, i);
		uint32		interest = rpin_sampler_interest(sampler, i);

		if (fd >= 0 && interest != 0)
			AddWaitEventToSet(wait_set, interest, fd, NULL,
							  (void *) (intptr_t) i);
	}
}

static void
start(void)
{
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();

	rpin_conninfo_clear_environment();
	rpin_keys_ensure_floor();
	sampler = rpin_sampler_create(&rpin_link_libpq);
	configure();
	rpin_board_worker_attach();
	before_shmem_exit(leave, (Datum) 0);
	wait_event = rpin_wait_event("ReplicaPinSampler");

	/*
	 * Its descriptor before those of any connection: when they run out, some
	 * replicas cannot be reached, and the others are sampled.
	 */
	rebuild_wait_set();
}

/*
 * Waits until `deadline`, or for the latch, or for a socket.  The announcement
 * of sleep comes before the last look for news, so that whoever has news later
 * sees it; see rpin_board_wake_worker().
 */
static void
wait_for_work(int64 deadline)
{
	WaitEvent	event[RPIN_WAIT_EVENTS];
	int64		rest;
	int			count;

	if (rpin_sampler_take_rewire(sampler))
		rebuild_wait_set();
	rest = deadline - rpin_clock_now();
	if (rpin_sampler_wants_news(sampler))
	{
		rpin_board_worker_asleep(true);
		if (!rpin_sampler_is_current(sampler))
			rest = 0;
	}
	count = WaitEventSetWait(wait_set, rest > 0 ? (rest + 999) / 1000 : 0,
							 event, lengthof(event), wait_event);
	rpin_board_worker_asleep(false);

	for (int i = 0; i < count; i++)
		if (event[i].events & WL_SOCKET_MASK)
			rpin_sampler_ready(sampler, (int) (intptr_t) event[i].user_data);
}

/*
 * The process ends with exit code 1, never 0: then the postmaster starts it
 * again, unless it is shutting down itself.
 */
void
rpin_worker_main(Datum argument)
{
	start();
	for (;;)
	{
		int64		deadline;

		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (ShutdownRequestPending)
			proc_exit(1);
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			configure();
		}
		rpin_board_worker_heartbeat(rpin_clock_now());
		deadline = rpin_sampler_run(sampler);
		wait_for_work(deadline);
	}
}
