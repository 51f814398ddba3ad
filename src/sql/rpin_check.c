/*-------------------------------------------------------------------------
 *
 * rpin_check.c
 *	  Refusing what cannot be done here.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"

#include "../shmem/rpin_shmem.h"
#include "rpin_check.h"

typedef struct RpinRefusal
{
	int			errcode;
	const char *message;
	const char *detail;
	const char *hint;
} RpinRefusal;

/* Why a position from elsewhere is not one here. */
static const RpinRefusal refusals[RPIN_REASON_COUNT] = {
	[RPIN_REASON_WRONG_CLUSTER] = {
		ERRCODE_INVALID_PARAMETER_VALUE,
		"token belongs to another cluster",
		"Its system identifier is not that of this server.",
		"Record the position on the cluster that wrote it."
	},
	[RPIN_REASON_UNKNOWN_TIMELINE] = {
		ERRCODE_INVALID_PARAMETER_VALUE,
		"token belongs to a timeline that this server never was on",
		"Its timeline is not in this server's timeline history.",
		"Check whether the server that issued the token was promoted apart from this one."
	},
	[RPIN_REASON_WRITE_LOST] = {
		ERRCODE_INVALID_PARAMETER_VALUE,
		"token belongs to a write that a failover lost",
		"Its position is beyond the end of its timeline in this server's history.",
		"Read the row again and decide whether to write it again."
	},
	[RPIN_REASON_POSITION_IN_FUTURE] = {
		ERRCODE_INVALID_PARAMETER_VALUE,
		"token is beyond the end of this server's WAL",
		"Its position is one that this server has not written.",
		"Pass the token exactly as replica_pin returned it."
	},
	[RPIN_REASON_SAMPLES_STALE] = {
		ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
		"the timeline history of this server is not known yet",
		"The sampler has not started, so positions of earlier timelines cannot be compared.",
		"Try again in a moment; see the view replica_pin.status."
	},
};

void
rpin_check_preloaded(void)
{
	if (!rpin_shmem_available())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("replica_pin is not preloaded"),
				 errhint("Add replica_pin to shared_preload_libraries and restart the server.")));
}

void
rpin_check_primary(void)
{
	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
				 errmsg("session keys cannot be pinned during recovery"),
				 errhint("Pin on the primary, where the write happened.")));
}

void
rpin_check_position(RpinReason reason)
{
	const RpinRefusal *refusal = &refusals[reason];

	if (reason == RPIN_REASON_NONE)
		return;
	ereport(ERROR,
			(errcode(refusal->errcode),
			 errmsg("%s", refusal->message),
			 errdetail("%s", refusal->detail),
			 errhint("%s", refusal->hint)));
}

void
rpin_refuse_token(int sqlstate, const char *hint)
{
	ereport(ERROR,
			(errcode(sqlstate),
			 errmsg("invalid token"),
			 errdetail("A token has 42 characters: system identifier, timeline and LSN in hexadecimal, joined by \"-\"."),
			 errhint("%s", hint)));
}
