/*-------------------------------------------------------------------------
 *
 * rpin_envelope.c
 *	  What a message demands.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "mb/pg_wchar.h"

#include "../shmem/rpin_wal.h"
#include "rpin_envelope.h"

char	   *rpin_location_names = NULL;
int			rpin_max_envelope_size = 1024 * 1024;

const char *
rpin_envelope_names(void)
{
	return rpin_location_names != NULL ? rpin_location_names : RPIN_LOCATION_DEFAULT;
}

/*
 * A bare LSN is one of the current timeline.  Publishers take it from
 * pg_current_wal_insert_lsn(), which may stand behind a page header.
 */
static RpinPosition
with_identity(RpinPosition position)
{
	return position.timeline != 0 ? position :
		rpin_wal_position(rpin_wal_end_of(position.lsn));
}

/* All of them, or none: before the first page no record ends. */
static RpinReason
identify(RpinEnvelope *envelope)
{
	for (int i = 0; i < envelope->count; i++)
	{
		envelope->position[i] = with_identity(envelope->position[i]);
		if (envelope->position[i].lsn == 0)
			return RPIN_REASON_ENVELOPE_UNREADABLE;
	}
	return RPIN_REASON_NONE;
}

/* An envelope that is small enough to be looked at. */
static void
add_envelope(RpinDemand *demand, const char *data, size_t length)
{
	RpinEnvelope envelope;
	RpinReason	reason = rpin_envelope_parse(data, length, GetDatabaseEncoding(),
											 rpin_envelope_names(), &envelope);

	demand->correlation_id = envelope.correlation_id.start;
	demand->correlation_id_length = envelope.correlation_id.length;
	if (reason == RPIN_REASON_NONE)
		reason = identify(&envelope);
	if (reason != RPIN_REASON_NONE)
		rpin_demand_add_fault(demand, reason);
	else
		for (int i = 0; i < envelope.count; i++)
			rpin_demand_add_position(demand, &envelope.position[i]);
}

void
rpin_envelope_read(Datum envelope, RpinDemand *demand)
{
	text	   *detoasted;

	if (toast_raw_datum_size(envelope) - VARHDRSZ > (Size) rpin_max_envelope_size)
	{
		rpin_demand_add_fault(demand, RPIN_REASON_ENVELOPE_UNREADABLE);
		return;
	}
	detoasted = DatumGetTextPP(envelope);
	add_envelope(demand, VARDATA_ANY(detoasted), VARSIZE_ANY_EXHDR(detoasted));
}
