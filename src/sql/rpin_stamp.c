/*-------------------------------------------------------------------------
 *
 * rpin_stamp.c
 *	  Putting a position into a message: stamp().
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"

#include "../rpin_compat.h"
#include "rpin_decision.h"
#include "rpin_envelope.h"
#include "rpin_node.h"

PG_FUNCTION_INFO_V1(rpin_stamp);

static void
push_string(RpinJsonbState *state, JsonbIteratorToken token,
			const char *value, size_t length)
{
	JsonbValue	string = {.type = jbvString};

	string.val.string.val = pstrdup(value);
	string.val.string.len = (int) length;
	rpin_jsonb_push(state, token, &string);
}

static void
push_field(RpinJsonbState *state, const char *name, size_t name_length,
		   const char *value, size_t value_length)
{
	push_string(state, WJB_KEY, name, name_length);
	push_string(state, WJB_VALUE, value, value_length);
}

/* What the payload has of locations before, or NULL. */
static JsonbValue *
find_locations(Jsonb *payload, JsonbValue *found)
{
	JsonbValue *before = getKeyJsonValueFromContainer(&payload->root,
													  RPIN_LOCATIONS,
													  strlen(RPIN_LOCATIONS),
													  found);

	if (before != NULL && (before->type != jbvBinary ||
						   !JsonContainerIsObject(before->val.binary.data)))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"%s\" of the payload is not an object", RPIN_LOCATIONS)));
	return before;
}

/*
 * Does a location of the payload need more of this cluster than our token?  A
 * replica that passes a message on may not have replayed yet what it is about.
 */
static bool
needs_more(JsonbValue *locations, const char *name, size_t length, const char *token)
{
	JsonbValue	value;
	RpinPosition needed;
	RpinPosition ours;
	char		written[RPIN_TOKEN_LENGTH + 1];

	if (locations == NULL ||
		getKeyJsonValueFromContainer(locations->val.binary.data, name,
									 (int) length, &value) == NULL ||
		value.type != jbvString ||
		!rpin_envelope_position(pnstrdup(value.val.string.val, value.val.string.len),
								&needed) ||
		!rpin_token_parse(token, RPIN_TOKEN_LENGTH, &ours))
		return false;
	if (needed.timeline == 0)
	{
		ours.lsn = needed.lsn;
		needed = ours;
	}
	rpin_token_format(&needed, written);
	return needed.system_identifier == ours.system_identifier &&
		strcmp(written, token) > 0;
}

/* {"<location name>": "<token>", ...} for each of this cluster's names. */
static Datum
build_locations(JsonbValue *before)
{
	RpinJsonbState state = {0};
	char		token[RPIN_TOKEN_LENGTH + 1];
	const char *names = rpin_envelope_names();
	const char *name;
	size_t		length;

	rpin_jsonb_push(&state, WJB_BEGIN_OBJECT, NULL);
	if (rpin_node_current_token(token))
		for (int i = 0; (length = rpin_envelope_name(names, i, &name)) > 0; i++)
			if (!needs_more(before, name, length, token))
				push_field(&state, name, length, token, RPIN_TOKEN_LENGTH);
	rpin_jsonb_push(&state, WJB_END_OBJECT, NULL);
	return JsonbPGetDatum(JsonbValueToJsonb(state.result));
}

/*
 * What other clusters put into the payload before stays; of a name of ours that is
 * there already, the later position.
 */
static Jsonb *
merge_locations(Jsonb *payload)
{
	JsonbValue	found;
	JsonbValue *before = find_locations(payload, &found);
	Datum		ours = build_locations(before);

	if (before == NULL)
		return DatumGetJsonbP(ours);
	return DatumGetJsonbP(DirectFunctionCall2(jsonb_concat,
											  JsonbPGetDatum(JsonbValueToJsonb(before)),
											  ours));
}

/*
 * A setting that came with the connection was never checked for its encoding: one
 * that is not valid is left out.
 */
static bool
is_usable(const char *correlation_id)
{
	return correlation_id != NULL && correlation_id[0] != '\0' &&
		pg_verifymbstr(correlation_id, strlen(correlation_id), true);
}

/* {"wal_locations": {...}, "correlation_id": "..."} */
static Datum
build_addition(Jsonb *locations, const char *correlation_id)
{
	RpinJsonbState state = {0};
	JsonbValue	value = {.type = jbvBinary};

	value.val.binary.data = &locations->root;
	value.val.binary.len = VARSIZE(locations);
	rpin_jsonb_push(&state, WJB_BEGIN_OBJECT, NULL);
	push_string(&state, WJB_KEY, RPIN_LOCATIONS, strlen(RPIN_LOCATIONS));
	rpin_jsonb_push(&state, WJB_VALUE, &value);
	if (is_usable(correlation_id))
		push_field(&state, RPIN_CORRELATION, strlen(RPIN_CORRELATION),
				   correlation_id, strlen(correlation_id));
	rpin_jsonb_push(&state, WJB_END_OBJECT, NULL);
	return JsonbPGetDatum(JsonbValueToJsonb(state.result));
}

static Jsonb *
checked_payload(FunctionCallInfo fcinfo)
{
	Jsonb	   *payload;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("payload must not be null")));
	payload = PG_GETARG_JSONB_P(0);
	if (!JB_ROOT_IS_OBJECT(payload))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("payload must be a JSON object"),
				 errhint("Wrap it: jsonb_build_object('payload', ...).")));
	return payload;
}

Datum
rpin_stamp(PG_FUNCTION_ARGS)
{
	Jsonb	   *payload = checked_payload(fcinfo);
	const char *correlation_id = PG_ARGISNULL(1) ? rpin_correlation_id :
		text_to_cstring(PG_GETARG_TEXT_PP(1));
	Jsonb	   *locations = merge_locations(payload);

	PG_RETURN_DATUM(DirectFunctionCall2(jsonb_concat, JsonbPGetDatum(payload),
										build_addition(locations, correlation_id)));
}
