/*-------------------------------------------------------------------------
 *
 * rpin_demand.c
 *	  What a read must see.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"

#include "../shmem/rpin_keys.h"
#include "../shmem/rpin_shmem.h"
#include "../shmem/rpin_wal.h"
#include "rpin_demand.h"

void
rpin_demand_begin(RpinDemand *demand)
{
	memset(demand, 0, sizeof(*demand));
	if (!rpin_shmem_available())
		demand->fault = RPIN_REASON_NOT_PRELOADED;
	else if (RecoveryInProgress())
		demand->fault = RPIN_REASON_NOT_PRIMARY;
	else if (TransactionIdIsValid(GetTopTransactionIdIfAny()))
		demand->fault = RPIN_REASON_IN_WRITE_TRANSACTION;
	else
		rpin_keys_ensure_floor();
}

static void
add_fault(RpinDemand *demand, RpinReason fault)
{
	if (demand->fault == RPIN_REASON_NONE)
		demand->fault = fault;
}

static void
add_position(RpinDemand *demand, XLogRecPtr lsn)
{
	demand->given = true;
	if (demand->required < lsn)
		demand->required = lsn;
}

void
rpin_demand_add_key(RpinDemand *demand, text *key)
{
	RpinLookup	lookup;

	if (key == NULL || demand->fault != RPIN_REASON_NONE)
		return;
	if (VARSIZE_ANY_EXHDR(key) == 0)
	{
		add_fault(demand, RPIN_REASON_NO_SESSION_KEY);
		return;
	}
	lookup = rpin_keys_lookup(rpin_keys_fingerprint(VARDATA_ANY(key),
													VARSIZE_ANY_EXHDR(key)));
	add_position(demand, lookup.lsn);
	demand->pending |= lookup.pending;
}

void
rpin_demand_add_keys(RpinDemand *demand, ArrayType *keys)
{
	Datum	   *element;
	bool	   *null;
	int			count;

	if (keys == NULL || demand->fault != RPIN_REASON_NONE)
		return;
	deconstruct_array(keys, TEXTOID, -1, false, TYPALIGN_INT,
					  &element, &null, &count);
	if (count == 0)
		add_fault(demand, RPIN_REASON_NO_SESSION_KEY);
	for (int i = 0; i < count; i++)
	{
		if (null[i])
			add_fault(demand, RPIN_REASON_NO_SESSION_KEY);
		else
			rpin_demand_add_key(demand, DatumGetTextPP(element[i]));
	}
}

bool
rpin_demand_parse_token(const text *token, RpinPosition *position)
{
	return rpin_token_parse(VARDATA_ANY(token), VARSIZE_ANY_EXHDR(token),
							position);
}

void
rpin_demand_add_token(RpinDemand *demand, text *token)
{
	XLogRecPtr	lsn;
	RpinReason	fault;

	if (token == NULL)
		return;
	demand->carries_token = rpin_demand_parse_token(token, &demand->token);
	if (demand->fault != RPIN_REASON_NONE)
		return;
	if (!demand->carries_token)
	{
		add_fault(demand, RPIN_REASON_TOKEN_UNREADABLE);
		return;
	}
	fault = rpin_board_resolve(&demand->token, &lsn);
	if (fault == RPIN_REASON_NONE)
		add_position(demand, lsn);
	else
		add_fault(demand, fault);
}

RpinReason
rpin_demand_decide(const RpinDemand *demand, RpinChoice *choice)
{
	RpinReason	fault = demand->fault;

	if (fault == RPIN_REASON_NONE && !demand->given)
		fault = RPIN_REASON_NO_SESSION_KEY;
	if (fault == RPIN_REASON_NONE)
		return rpin_board_decide(demand->required, demand->pending, choice);
	if (choice != NULL)
	{
		choice->reason = fault;
		choice->count = 0;
	}
	return fault;
}

bool
rpin_demand_required(const RpinDemand *demand,
					 char token[RPIN_TOKEN_LENGTH + 1])
{
	RpinPosition position;

	switch (demand->fault)
	{
		case RPIN_REASON_NONE:
			if (!demand->given)
				return false;
			position = rpin_wal_position(demand->required);
			break;
		case RPIN_REASON_NOT_PRELOADED:
		case RPIN_REASON_NOT_PRIMARY:
		case RPIN_REASON_IN_WRITE_TRANSACTION:
		case RPIN_REASON_SAMPLES_STALE:
			if (!demand->carries_token)
				return false;
			position = demand->token;
			break;
		default:
			return false;
	}
	rpin_token_format(&position, token);
	return true;
}
