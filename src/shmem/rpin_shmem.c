/*-------------------------------------------------------------------------
 *
 * rpin_shmem.c
 *	  The one request for shared memory.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "rpin_board.h"
#include "rpin_keys.h"
#include "rpin_shmem.h"
#include "rpin_stats.h"

static shmem_request_hook_type previous_request_hook = NULL;
static shmem_startup_hook_type previous_startup_hook = NULL;
static bool available = false;

uint64
rpin_shmem_random(void)
{
	uint64		random;

	do
	{
		if (!pg_strong_random(&random, sizeof(random)))
			ereport(FATAL,
					(errcode(ERRCODE_INTERNAL_ERROR),
					 errmsg("replica_pin could not get random bytes")));
	} while (random == 0);
	return random;
}

Size
rpin_shmem_size(void)
{
	return add_size(add_size(rpin_keys_shmem_size(), rpin_board_shmem_size()),
					rpin_stats_shmem_size());
}

bool
rpin_shmem_available(void)
{
	return available;
}

static void
request(void)
{
	if (previous_request_hook != NULL)
		previous_request_hook();
	RequestAddinShmemSpace(rpin_shmem_size());
	rpin_keys_shmem_request();
}

static void
startup(void)
{
	if (previous_startup_hook != NULL)
		previous_startup_hook();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	rpin_keys_shmem_init();
	rpin_board_shmem_init();
	rpin_stats_shmem_init();
	LWLockRelease(AddinShmemInitLock);
	available = true;
}

void
rpin_shmem_install(void)
{
	previous_request_hook = shmem_request_hook;
	shmem_request_hook = request;
	previous_startup_hook = shmem_startup_hook;
	shmem_startup_hook = startup;
}
