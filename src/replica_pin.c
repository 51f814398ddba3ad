/*-------------------------------------------------------------------------
 *
 * replica_pin.c
 *	  Loading the library.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"

#include "rpin_compat.h"
#include "shmem/rpin_shmem.h"
#include "sql/rpin_capture.h"
#include "sql/rpin_settings.h"
#include "sql/rpin_utility.h"
#include "worker/rpin_worker.h"

RPIN_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

/*
 * Loaded by a backend, without preload, nothing is installed: there is no shared
 * memory, and a postmaster setting can no longer be defined.  node_status() and
 * the functions on tokens work all the same; a replica needs no more.
 */
void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	rpin_settings_define();
	rpin_shmem_install();
	rpin_worker_register();
	rpin_capture_install();
	rpin_utility_install();
}
