/*-------------------------------------------------------------------------
 *
 * rpin_reason.c
 *	  The names of the reasons.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_reason.h"

static const char *const reason_names[RPIN_REASON_COUNT] = {
#define RPIN_REASON_NAME(constant, name) [RPIN_REASON_##constant] = name,
	RPIN_REASONS(RPIN_REASON_NAME)
#undef RPIN_REASON_NAME
};

const char *
rpin_reason_name(RpinReason reason)
{
	return reason_names[reason];
}
