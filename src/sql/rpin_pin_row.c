/*-------------------------------------------------------------------------
 *
 * rpin_pin_row.c
 *	  The trigger function pin_row().
 *
 *	CREATE TRIGGER pin AFTER INSERT OR UPDATE OR DELETE ON note FOR EACH ROW
 *	EXECUTE FUNCTION replica_pin.pin_row('note', 'id', 'user', 'author_id');
 *
 * arms the keys note:<id> and user:<author_id>, of the old row and of the new
 * one, for the commit of the transaction.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/trigger.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "../shmem/rpin_keys.h"
#include "../shmem/rpin_shmem.h"
#include "rpin_capture.h"

PG_FUNCTION_INFO_V1(rpin_pin_row);

/* One pair of arguments. */
typedef struct RpinRowKey
{
	const char *prefix;
	int			column;
	FmgrInfo	output;			/* of the column's type */
} RpinRowKey;

/*
 * What the arguments mean for the relation at hand, a partition perhaps.  Looked
 * up once: the server has an FmgrInfo for each trigger of each relation of a
 * query, and this hangs on it.
 */
typedef struct RpinRowPlan
{
	int			count;
	RpinRowKey	key[FLEXIBLE_ARRAY_MEMBER];
} RpinRowPlan;

static void
check_trigger(FunctionCallInfo fcinfo)
{
	TriggerData *data = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("replica_pin.pin_row() can only be called as a trigger")));
	if (!TRIGGER_FIRED_AFTER(data->tg_event) ||
		!TRIGGER_FIRED_FOR_ROW(data->tg_event))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("trigger \"%s\" must be fired AFTER, FOR EACH ROW",
						data->tg_trigger->tgname),
				 errhint("Earlier, another trigger could still change the row; a statement has no row.")));
	if (data->tg_trigger->tgnargs == 0 || data->tg_trigger->tgnargs % 2 != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("trigger \"%s\" must have pairs of arguments",
						data->tg_trigger->tgname),
				 errdetail("It has %d.", data->tg_trigger->tgnargs),
				 errhint("Write replica_pin.pin_row('note', 'id') for session keys like note:42.")));
}

static int
find_column(Relation relation, const char *trigger, const char *column)
{
	int			number = SPI_fnumber(RelationGetDescr(relation), column);

	if (number <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" of relation \"%s\" does not exist",
						column, RelationGetRelationName(relation)),
				 errdetail("Trigger \"%s\" names it as an argument of replica_pin.pin_row().",
						   trigger),
				 errhint("After a column was renamed the trigger must be created anew.")));
	return number;
}

static void
plan_key(RpinRowKey *key, Relation relation, const Trigger *trigger, int pair,
		 MemoryContext context)
{
	Oid			output;
	bool		is_varlena;

	key->prefix = MemoryContextStrdup(context, trigger->tgargs[2 * pair]);
	key->column = find_column(relation, trigger->tgname,
							  trigger->tgargs[2 * pair + 1]);
	getTypeOutputInfo(SPI_gettypeid(RelationGetDescr(relation), key->column),
					  &output, &is_varlena);
	fmgr_info_cxt(output, &key->output, context);
}

static RpinRowPlan *
find_plan(FunctionCallInfo fcinfo)
{
	TriggerData *data = (TriggerData *) fcinfo->context;
	FmgrInfo   *function = fcinfo->flinfo;
	RpinRowPlan *plan = function->fn_extra;
	int			count = data->tg_trigger->tgnargs / 2;

	if (plan != NULL)
		return plan;
	check_trigger(fcinfo);
	plan = MemoryContextAlloc(function->fn_mcxt,
							  offsetof(RpinRowPlan, key) +
							  count * sizeof(RpinRowKey));
	plan->count = count;
	for (int i = 0; i < count; i++)
		plan_key(&plan->key[i], data->tg_relation, data->tg_trigger, i,
				 function->fn_mcxt);
	function->fn_extra = plan;
	return plan;
}

/* Arms the keys of one row; a NULL value gives no key. */
static void
arm_row(RpinRowPlan *plan, TupleTableSlot *slot, StringInfo name)
{
	for (int i = 0; i < plan->count; i++)
	{
		RpinRowKey *key = &plan->key[i];
		bool		null;
		Datum		value = slot_getattr(slot, key->column, &null);

		if (null)
			continue;
		resetStringInfo(name);
		appendStringInfoString(name, key->prefix);
		appendStringInfoChar(name, ':');
		appendStringInfoString(name, OutputFunctionCall(&key->output, value));
		rpin_capture_arm(rpin_keys_fingerprint(name->data, name->len));
	}
}

/*
 * Without preload nothing is armed, and nothing needs to be: every decision here
 * is the primary, and once preloaded the floor covers what was written before.
 * An error would stop all writes to the table, say of a restored dump.
 */
Datum
rpin_pin_row(PG_FUNCTION_ARGS)
{
	TriggerData *data = (TriggerData *) fcinfo->context;
	StringInfoData name;
	RpinRowPlan *plan;

	if (!CALLED_AS_TRIGGER(fcinfo))
		check_trigger(fcinfo);
	plan = find_plan(fcinfo);
	if (!rpin_shmem_available())
		return PointerGetDatum(NULL);

	/* The trigger's memory lasts until the end of the row. */
	initStringInfo(&name);
	arm_row(plan, data->tg_trigslot, &name);
	if (TRIGGER_FIRED_BY_UPDATE(data->tg_event))
		arm_row(plan, data->tg_newslot, &name);
	return PointerGetDatum(NULL);
}
