/*-------------------------------------------------------------------------
 *
 * rpin_test.c
 *	  Gates and faults in the commit path, for the tests.
 *
 * The server calls the transaction callback first that was registered last.  So
 * preloaded after replica_pin, this one's COMMIT callback runs when the rows are
 * visible and replica_pin has recorded nothing yet; preloaded before it, this
 * one's PRE_COMMIT callback runs when replica_pin has set its marks.
 *
 *	rpin_test.gate		a file: commits that wrote wait, visible, while it exists
 *	rpin_test.fail_at	'pre_commit': an ERROR before the commit record
 *						'commit_prepared': an ERROR when COMMIT PREPARED has done
 *						its work
 *	rpin_test.late_xid	PRE_COMMIT assigns an xid
 *	rpin_test.fail_send	the send buffer cannot grow, from PRE_COMMIT on
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>

#include "access/transam.h"
#include "access/xact.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "libpq/libpq.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/snapmgr.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(rpin_test_worker);
PG_FUNCTION_INFO_V1(rpin_test_nothing);

extern PGDLLEXPORT void _PG_init(void);
extern PGDLLEXPORT void rpin_test_worker_main(Datum argument);

/* A gate that nobody opens does, after so many hundredths of a second. */
#define RPIN_TEST_PATIENCE 6000

static char *gate = NULL;
static char *fail_at = NULL;
static bool late_xid = false;
static bool fail_send = false;

/* This transaction is a COMMIT PREPARED, which writes without an xid. */
static bool commits_prepared = false;

static ProcessUtility_hook_type previous_hook = NULL;
static const PQcommMethods *server_methods = NULL;
static PQcommMethods failing_methods;

/* In the commit path: nothing that throws or allocates. */
static void
wait_at_gate(void)
{
	struct stat status;

	if (!commits_prepared &&
		!TransactionIdIsValid(GetTopTransactionIdIfAny()))
		return;
	for (int i = 0; i < RPIN_TEST_PATIENCE; i++)
	{
		if (gate == NULL || gate[0] == '\0' || stat(gate, &status) != 0)
			return;
		pg_usleep(10000L);		/* poll */
	}
}

static void
fail_to_put(char type, const char *body, size_t length)
{
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("out of memory")));
}

/* Puts the failing send function in place, or takes it away. */
static void
set_send_failure(bool on)
{
	if (on && server_methods == NULL)
	{
		server_methods = PqCommMethods;
		failing_methods = *PqCommMethods;
		failing_methods.putmessage_noblock = fail_to_put;
		PqCommMethods = &failing_methods;
	}
	else if (!on && server_methods != NULL)
	{
		PqCommMethods = server_methods;
		server_methods = NULL;
	}
}

static void
transaction_callback(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			if (strcmp(fail_at, "pre_commit") == 0)
				ereport(ERROR, (errmsg("failed before the commit")));
			set_send_failure(fail_send);
			if (late_xid)
				(void) GetTopTransactionId();
			break;
		case XACT_EVENT_COMMIT:
			wait_at_gate();
			commits_prepared = false;
			break;
		case XACT_EVENT_ABORT:
			commits_prepared = false;
			break;
		default:
			break;
	}
}

static void
process_utility(PlannedStmt *statement, const char *query, bool read_only,
				ProcessUtilityContext context, ParamListInfo params,
				QueryEnvironment *environment, DestReceiver *dest,
				QueryCompletion *completion)
{
	Node	   *node = statement->utilityStmt;

	if (IsA(node, TransactionStmt) &&
		((TransactionStmt *) node)->kind == TRANS_STMT_COMMIT_PREPARED)
		commits_prepared = true;

	if (previous_hook != NULL)
		previous_hook(statement, query, read_only, context, params,
					  environment, dest, completion);
	else
		standard_ProcessUtility(statement, query, read_only, context, params,
								environment, dest, completion);
	if (commits_prepared && strcmp(fail_at, "commit_prepared") == 0)
		ereport(ERROR, (errmsg("failed after COMMIT PREPARED")));
}

/* What bgw_extra holds. */
typedef struct WorkerOrder
{
	char		database[NAMEDATALEN];
	int			times;
} WorkerOrder;

/* The statement to run is the worker's type, the one text that is long enough. */
void
rpin_test_worker_main(Datum argument)
{
	WorkerOrder order;
	char		statement[BGW_MAXLEN];

	memcpy(&order, MyBgworkerEntry->bgw_extra, sizeof(order));
	strlcpy(statement, MyBgworkerEntry->bgw_type, sizeof(statement));
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(order.database, NULL, 0);
	for (int i = 0; i < order.times; i++)
	{
		SetCurrentStatementStartTimestamp();
		StartTransactionCommand();
		SPI_connect();
		PushActiveSnapshot(GetTransactionSnapshot());
		if (SPI_execute(statement, false, 0) < 0)
			elog(ERROR, "statement failed");
		SPI_finish();
		PopActiveSnapshot();
		CommitTransactionCommand();
	}
	proc_exit(0);
}

Datum
rpin_test_worker(PG_FUNCTION_ARGS)
{
	BackgroundWorker worker = {
		.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
		.bgw_start_time = BgWorkerStart_RecoveryFinished,
		.bgw_restart_time = BGW_NEVER_RESTART,
		.bgw_library_name = "rpin_test",
		.bgw_function_name = "rpin_test_worker_main",
		.bgw_name = "rpin_test worker",
	};
	WorkerOrder order = {.times = PG_GETARG_INT32(2)};
	BackgroundWorkerHandle *handle;
	pid_t		pid;

	StaticAssertStmt(sizeof(order) <= BGW_EXTRALEN, "the order fits");
	strlcpy(order.database, text_to_cstring(PG_GETARG_TEXT_PP(0)),
			sizeof(order.database));
	strlcpy(worker.bgw_type, text_to_cstring(PG_GETARG_TEXT_PP(1)),
			sizeof(worker.bgw_type));
	memcpy(worker.bgw_extra, &order, sizeof(order));
	worker.bgw_notify_pid = MyProcPid;
	if (!RegisterDynamicBackgroundWorker(&worker, &handle))
		ereport(ERROR, (errmsg("no background worker is free")));
	if (WaitForBackgroundWorkerStartup(handle, &pid) == BGWH_POSTMASTER_DIED ||
		WaitForBackgroundWorkerShutdown(handle) != BGWH_STOPPED)
		ereport(ERROR, (errmsg("the worker did not end")));
	PG_RETURN_INT32(order.times);
}

Datum
rpin_test_nothing(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(false);
}

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	DefineCustomStringVariable("rpin_test.gate", "Where commits wait.", NULL,
							   &gate, "", PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("rpin_test.fail_at", "Where to fail.", NULL,
							   &fail_at, "", PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("rpin_test.late_xid", "Assign an xid late.", NULL,
							 &late_xid, false, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("rpin_test.fail_send", "Fail to send.", NULL,
							 &fail_send, false, PGC_USERSET, 0, NULL, NULL, NULL);
	RegisterXactCallback(transaction_callback, NULL);
	previous_hook = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
}
