/*-------------------------------------------------------------------------
 *
 * rpin_pin.c
 *	  Recording: pin, pin_all.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "../shmem/rpin_board.h"
#include "../shmem/rpin_keys.h"
#include "../shmem/rpin_wal.h"
#include "rpin_capture.h"
#include "rpin_check.h"
#include "rpin_demand.h"

PG_FUNCTION_INFO_V1(rpin_pin);
PG_FUNCTION_INFO_V1(rpin_pin_token);
PG_FUNCTION_INFO_V1(rpin_pin_all);

/*
 * What pin() promises: everything committed before now, and the commit of this
 * transaction if it comes to one that writes.  The end of WAL covers the first,
 * since every commit whose answer a client has is before it.
 */
static XLogRecPtr
pin_now_and_at_commit(const uint64 *fingerprint, int count)
{
	XLogRecPtr	end = rpin_wal_end_flushed_soon();

	for (int i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		rpin_keys_record(fingerprint[i], end);
		rpin_capture_arm(fingerprint[i]);
	}
	return end;
}

static void
check_node(void)
{
	rpin_check_preloaded();
	rpin_check_primary();
	rpin_keys_ensure_floor();
}

static uint64
checked_fingerprint(text *key)
{
	if (key == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("session key must not be null")));
	if (VARSIZE_ANY_EXHDR(key) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("session key must not be empty")));
	if (!rpin_keys_is_key(VARDATA_ANY(key), VARSIZE_ANY_EXHDR(key)))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("session key must not be an array"),
				 errdetail("It begins with \"{\" and ends with \"}\", as an array that a driver sent as text."),
				 errhint("Use replica_pin.pin_all(), route_all() and is_any_pinned() for several session keys.")));
	return rpin_keys_fingerprint(VARDATA_ANY(key), VARSIZE_ANY_EXHDR(key));
}

static Datum
token_datum(XLogRecPtr lsn)
{
	RpinPosition position = rpin_wal_position(lsn);
	char		token[RPIN_TOKEN_LENGTH + 1];

	rpin_token_format(&position, token);
	return CStringGetTextDatum(token);
}

/* The commit of a transaction that has written is not in any token yet. */
static Datum
answer(FunctionCallInfo fcinfo, XLogRecPtr end)
{
	if (rpin_capture_has_written())
		PG_RETURN_NULL();
	return token_datum(end);
}

Datum
rpin_pin(PG_FUNCTION_ARGS)
{
	uint64		fingerprint;

	check_node();
	fingerprint = checked_fingerprint(PG_ARGISNULL(0) ? NULL :
									  PG_GETARG_TEXT_PP(0));
	return answer(fcinfo, pin_now_and_at_commit(&fingerprint, 1));
}

/* The position of a token, on the current timeline. */
static XLogRecPtr
checked_position(text *token)
{
	RpinPosition position;
	XLogRecPtr	lsn = InvalidXLogRecPtr;

	if (token == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("token must not be null")));
	if (!rpin_demand_parse_token(token, &position))
		rpin_refuse_token(ERRCODE_INVALID_TEXT_REPRESENTATION,
						  "Pass the token exactly as replica_pin returned it.");
	rpin_check_position(rpin_board_resolve(&position, &lsn));
	return lsn;
}

Datum
rpin_pin_token(PG_FUNCTION_ARGS)
{
	uint64		fingerprint;
	XLogRecPtr	lsn;

	check_node();
	fingerprint = checked_fingerprint(PG_ARGISNULL(0) ? NULL :
									  PG_GETARG_TEXT_PP(0));
	lsn = checked_position(PG_ARGISNULL(1) ? NULL : PG_GETARG_TEXT_PP(1));
	rpin_keys_record(fingerprint, lsn);
	return token_datum(lsn);
}

/* All keys are checked before the first one is recorded. */
static uint64 *
checked_fingerprints(ArrayType *keys, int *count)
{
	Datum	   *element;
	bool	   *null;
	uint64	   *fingerprint;

	if (keys == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("array of session keys must not be null")));
	deconstruct_array(keys, TEXTOID, -1, false, TYPALIGN_INT,
					  &element, &null, count);
	if (*count == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("array of session keys must not be empty")));
	fingerprint = palloc(*count * sizeof(uint64));
	for (int i = 0; i < *count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		fingerprint[i] = checked_fingerprint(null[i] ? NULL :
											 DatumGetTextPP(element[i]));
	}
	return fingerprint;
}

Datum
rpin_pin_all(PG_FUNCTION_ARGS)
{
	uint64	   *fingerprint;
	int			count;

	check_node();
	fingerprint = checked_fingerprints(PG_ARGISNULL(0) ? NULL :
									   PG_GETARG_ARRAYTYPE_P(0), &count);
	return answer(fcinfo, pin_now_and_at_commit(fingerprint, count));
}
