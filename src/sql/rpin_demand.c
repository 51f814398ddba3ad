/*-------------------------------------------------------------------------
 *
 * rpin_demand.c
 *	  What a read must see.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "../shmem/rpin_keys.h"
#include "../shmem/rpin_shmem.h"
#include "../shmem/rpin_wal.h"
#include "rpin_capture.h"
#include "rpin_demand.h"

void
rpin_demand_begin(RpinDemand *demand)
{
	memset(demand, 0, sizeof(*demand));
	if (!rpin_shmem_available())
		demand->fault = RPIN_REASON_NOT_PRELOADED;
	else if (RecoveryInProgress())
		demand->fault = RPIN_REASON_NOT_PRIMARY;
	else if (rpin_capture_has_written())
		demand->fault = RPIN_REASON_IN_WRITE_TRANSACTION;
	else
		rpin_keys_ensure_floor();
}

void
rpin_demand_add_fault(RpinDemand *demand, RpinReason fault)
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

uint64
rpin_demand_share(const char *name, size_t length)
{
	return hash_bytes_extended((const unsigned char *) name, length, 0);
}

static void
add_share(RpinDemand *demand, text *key)
{
	uint64		share = rpin_demand_share(VARDATA_ANY(key), VARSIZE_ANY_EXHDR(key));

	if (!demand->has_share || share < demand->share)
		demand->share = share;
	demand->has_share = true;
}

void
rpin_demand_add_key(RpinDemand *demand, text *key)
{
	RpinLookup	lookup;

	if (key == NULL)
		return;
	add_share(demand, key);
	if (demand->fault != RPIN_REASON_NONE)
		return;
	if (!rpin_keys_is_key(VARDATA_ANY(key), VARSIZE_ANY_EXHDR(key)))
	{
		rpin_demand_add_fault(demand, RPIN_REASON_NO_SESSION_KEY);
		return;
	}
	lookup = rpin_keys_lookup(rpin_keys_fingerprint(VARDATA_ANY(key),
													VARSIZE_ANY_EXHDR(key)));
	add_position(demand, lookup.lsn);
	demand->pending |= lookup.pending;
	demand->recorded |= lookup.recorded;
}

void
rpin_demand_add_keys(RpinDemand *demand, ArrayType *keys)
{
	Datum	   *element;
	bool	   *null;
	int			count;

	if (keys == NULL)
		return;
	deconstruct_array(keys, TEXTOID, -1, false, TYPALIGN_INT,
					  &element, &null, &count);
	if (count == 0)
		rpin_demand_add_fault(demand, RPIN_REASON_NO_SESSION_KEY);
	for (int i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (null[i])
			rpin_demand_add_fault(demand, RPIN_REASON_NO_SESSION_KEY);
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

static bool
is_later(const RpinPosition *a, const RpinPosition *b)
{
	return a->timeline != b->timeline ? a->timeline > b->timeline :
		a->lsn > b->lsn;
}

/* Can this node tell what a position means?  A fault of the caller is none. */
static bool
can_judge(const RpinDemand *demand)
{
	return demand->fault != RPIN_REASON_NOT_PRELOADED &&
		demand->fault != RPIN_REASON_NOT_PRIMARY &&
		demand->fault != RPIN_REASON_IN_WRITE_TRANSACTION;
}

/* Does no replica ever satisfy it? */
static bool
is_hopeless(RpinReason fault)
{
	return fault == RPIN_REASON_WRONG_CLUSTER ||
		fault == RPIN_REASON_UNKNOWN_TIMELINE ||
		fault == RPIN_REASON_WRITE_LOST ||
		fault == RPIN_REASON_POSITION_IN_FUTURE;
}

/* Known even beside a key that is faulty: the caller goes on with it. */
void
rpin_demand_add_position(RpinDemand *demand, const RpinPosition *position)
{
	XLogRecPtr	lsn;
	RpinReason	fault;

	if (!demand->carries_token || is_later(position, &demand->token))
		demand->token = *position;
	demand->carries_token = true;
	if (!can_judge(demand))
		return;
	fault = rpin_board_resolve(position, &lsn);
	if (fault == RPIN_REASON_NONE)
		add_position(demand, lsn);
	else
		rpin_demand_add_fault(demand, fault);
	if (is_hopeless(fault))
		demand->carries_token = false;
}

void
rpin_demand_add_token(RpinDemand *demand, text *token)
{
	RpinPosition position;

	if (token == NULL)
		return;
	if (rpin_demand_parse_token(token, &position))
		rpin_demand_add_position(demand, &position);
	else
		rpin_demand_add_fault(demand, RPIN_REASON_TOKEN_UNREADABLE);
}

bool
rpin_demand_required(const RpinDemand *demand,
					 char token[RPIN_TOKEN_LENGTH + 1])
{
	RpinPosition position;

	if (is_hopeless(demand->fault))
		return false;
	if (demand->carries_token &&
		(!demand->given || demand->fault == RPIN_REASON_SAMPLES_STALE))
		position = demand->token;
	else if (demand->given)
		position = rpin_wal_position(demand->required);
	else
		return false;
	rpin_token_format(&position, token);
	return true;
}
