/*-------------------------------------------------------------------------
 *
 * rpin_utility.c
 *	  The utility hook: COMMIT PREPARED.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "tcop/utility.h"

#include "rpin_capture.h"
#include "rpin_utility.h"

static ProcessUtility_hook_type previous_hook = NULL;

static bool
is_commit_prepared(const Node *statement)
{
	return IsA(statement, TransactionStmt) &&
		((const TransactionStmt *) statement)->kind == TRANS_STMT_COMMIT_PREPARED;
}

static void
process_utility(PlannedStmt *statement, const char *query, bool read_only,
				ProcessUtilityContext context, ParamListInfo params,
				QueryEnvironment *environment, DestReceiver *dest,
				QueryCompletion *completion)
{
	if (context == PROCESS_UTILITY_TOPLEVEL &&
		is_commit_prepared(statement->utilityStmt))
		rpin_capture_begin_prepared();
	if (previous_hook != NULL)
		previous_hook(statement, query, read_only, context, params,
					  environment, dest, completion);
	else
		standard_ProcessUtility(statement, query, read_only, context, params,
								environment, dest, completion);
}

void
rpin_utility_install(void)
{
	previous_hook = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
}
