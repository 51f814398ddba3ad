/*-------------------------------------------------------------------------
 *
 * rpin_route.c
 *	  Deciding: is_pinned, is_any_pinned, route, route_all.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/pg_prng.h"
#include "fmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "../shmem/rpin_keys.h"
#include "rpin_decision.h"
#include "rpin_envelope.h"
#include "rpin_row.h"

PG_FUNCTION_INFO_V1(rpin_is_pinned);
PG_FUNCTION_INFO_V1(rpin_is_any_pinned);
PG_FUNCTION_INFO_V1(rpin_route);
PG_FUNCTION_INFO_V1(rpin_route_all);
PG_FUNCTION_INFO_V1(rpin_route_envelope);

static text *
text_argument(FunctionCallInfo fcinfo, int n)
{
	return PG_ARGISNULL(n) ? NULL : PG_GETARG_TEXT_PP(n);
}

static ArrayType *
array_argument(FunctionCallInfo fcinfo, int n)
{
	return PG_ARGISNULL(n) ? NULL : PG_GETARG_ARRAYTYPE_P(n);
}

/* Behind one endpoint for all replicas: a key is free, or it is not. */
static bool
is_pinned(const RpinDemand *demand)
{
	RpinChoice	choice;

	rpin_decision_make(demand, false, &choice);
	return choice.reason != RPIN_REASON_IN_SYNC &&
		choice.reason != RPIN_REASON_NOT_ENFORCED;
}

Datum
rpin_is_pinned(PG_FUNCTION_ARGS)
{
	text	   *key = text_argument(fcinfo, 0);
	RpinDemand	demand;

	rpin_demand_begin(&demand);
	if (key != NULL &&
		rpin_keys_is_key(VARDATA_ANY(key), VARSIZE_ANY_EXHDR(key)) &&
		rpin_decision_is_nothing_pinned(&demand))
		PG_RETURN_BOOL(false);
	rpin_demand_add_key(&demand, key);
	PG_RETURN_BOOL(is_pinned(&demand));
}

Datum
rpin_is_any_pinned(PG_FUNCTION_ARGS)
{
	RpinDemand	demand;

	rpin_demand_begin(&demand);
	rpin_demand_add_keys(&demand, array_argument(fcinfo, 0));
	PG_RETURN_BOOL(is_pinned(&demand));
}

static Datum
name_array(const RpinChoice *choice)
{
	Datum		name[RPIN_REPLICAS_LIMIT];

	for (int i = 0; i < choice->count; i++)
		name[i] = CStringGetTextDatum(choice->name[i]);
	return PointerGetDatum(construct_array(name, choice->count, TEXTOID, -1,
										   false, TYPALIGN_INT));
}

/* Decides, and answers the row of route() and route_all(). */
static Datum
answer(FunctionCallInfo fcinfo, const RpinDemand *demand)
{
	RpinChoice	choice;
	RpinRow		row;
	char		token[RPIN_TOKEN_LENGTH + 1];

	rpin_decision_make(demand, true, &choice);
	rpin_row_begin(&row, fcinfo);
	if (choice.count > 0)
		rpin_row_set_text(&row, "replica",
						  choice.name[pg_prng_uint64_range(&pg_global_prng_state,
														   0, choice.count - 1)]);
	rpin_row_set_text(&row, "reason", rpin_reason_name(choice.reason));
	rpin_row_set(&row, "replicas", name_array(&choice));
	if (rpin_demand_required(demand, token))
		rpin_row_set_text(&row, "required", token);
	return rpin_row_datum(&row);
}

Datum
rpin_route(PG_FUNCTION_ARGS)
{
	RpinDemand	demand;

	rpin_demand_begin(&demand);
	rpin_demand_add_key(&demand, text_argument(fcinfo, 0));
	rpin_demand_add_token(&demand, text_argument(fcinfo, 1));
	return answer(fcinfo, &demand);
}

Datum
rpin_route_all(PG_FUNCTION_ARGS)
{
	RpinDemand	demand;

	rpin_demand_begin(&demand);
	rpin_demand_add_keys(&demand, array_argument(fcinfo, 0));
	rpin_demand_add_token(&demand, text_argument(fcinfo, 1));
	return answer(fcinfo, &demand);
}

Datum
rpin_route_envelope(PG_FUNCTION_ARGS)
{
	RpinDemand	demand;

	rpin_demand_begin(&demand);
	if (PG_ARGISNULL(0))
		rpin_demand_add_fault(&demand, RPIN_REASON_ENVELOPE_UNREADABLE);
	else
		rpin_envelope_read(PG_GETARG_DATUM(0), &demand);
	return answer(fcinfo, &demand);
}
