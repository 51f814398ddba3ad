/*-------------------------------------------------------------------------
 *
 * rpin_row.c
 *	  Result rows, filled by column name.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "funcapi.h"
#include "nodes/execnodes.h"
#include "utils/builtins.h"
#include "utils/pg_lsn.h"
#include "utils/tuplestore.h"

#include "rpin_row.h"

/*
 * In FROM the executor has the row's type at hand: looking it up again, in every
 * execution of a prepared statement, would cost more than all the rest of a
 * decision.  Elsewhere it is looked up at the first call of a query, and kept
 * for the rest.
 */
static TupleDesc
result_desc(FunctionCallInfo fcinfo)
{
	ReturnSetInfo *from = (ReturnSetInfo *) fcinfo->resultinfo;
	TupleDesc	desc = fcinfo->flinfo->fn_extra;
	MemoryContext before;

	if (from != NULL && IsA(from, ReturnSetInfo) && from->expectedDesc != NULL)
		return BlessTupleDesc(from->expectedDesc);
	if (desc != NULL)
		return desc;
	before = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("function returning record called in context that cannot accept type record")));
	desc = BlessTupleDesc(CreateTupleDescCopy(desc));
	MemoryContextSwitchTo(before);
	fcinfo->flinfo->fn_extra = desc;
	return desc;
}

static void
begin(RpinRow *row, TupleDesc desc)
{
	row->desc = desc;
	row->value = palloc0(desc->natts * sizeof(Datum));
	row->null = palloc(desc->natts * sizeof(bool));
	memset(row->null, true, desc->natts * sizeof(bool));
}

void
rpin_row_begin(RpinRow *row, FunctionCallInfo fcinfo)
{
	begin(row, result_desc(fcinfo));
}

void
rpin_row_begin_set(FunctionCallInfo fcinfo)
{
	InitMaterializedSRF(fcinfo, 0);
}

void
rpin_row_begin_of_set(RpinRow *row, FunctionCallInfo fcinfo)
{
	begin(row, ((ReturnSetInfo *) fcinfo->resultinfo)->setDesc);
}

void
rpin_row_store(RpinRow *row, FunctionCallInfo fcinfo)
{
	ReturnSetInfo *set = (ReturnSetInfo *) fcinfo->resultinfo;

	tuplestore_putvalues(set->setResult, set->setDesc, row->value, row->null);
}

void
rpin_row_set(RpinRow *row, const char *column, Datum value)
{
	for (int i = 0; i < row->desc->natts; i++)
	{
		if (strcmp(NameStr(TupleDescAttr(row->desc, i)->attname), column) != 0)
			continue;
		row->value[i] = value;
		row->null[i] = false;
	}
}

void
rpin_row_set_text(RpinRow *row, const char *column, const char *value)
{
	rpin_row_set(row, column, CStringGetTextDatum(value));
}

void
rpin_row_set_lsn(RpinRow *row, const char *column, XLogRecPtr lsn)
{
	if (!XLogRecPtrIsInvalid(lsn))
		rpin_row_set(row, column, LSNGetDatum(lsn));
}

Datum
rpin_row_datum(RpinRow *row)
{
	return HeapTupleGetDatum(heap_form_tuple(row->desc, row->value, row->null));
}
