/*-------------------------------------------------------------------------
 *
 * rpin_reason.c
 *	  The names of the reasons.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_reason.h"

static const char *const reason_names[RPIN_REASON_COUNT] = {
#define RPIN_REASON_NAME(constant, name, ...) [RPIN_REASON_##constant] = name,
	RPIN_REASONS(RPIN_REASON_NAME)
#undef RPIN_REASON_NAME
};

static const bool reason_overridable[RPIN_REASON_COUNT] = {
#define RPIN_REASON_OVERRIDABLE(constant, name, overridable, meaning) \
	[RPIN_REASON_##constant] = overridable,
	RPIN_REASONS(RPIN_REASON_OVERRIDABLE)
#undef RPIN_REASON_OVERRIDABLE
};

static const char *const reason_meanings[RPIN_REASON_COUNT] = {
#define RPIN_REASON_MEANING(constant, name, overridable, meaning) \
	[RPIN_REASON_##constant] = meaning,
	RPIN_REASONS(RPIN_REASON_MEANING)
#undef RPIN_REASON_MEANING
};

const char *
rpin_reason_name(RpinReason reason)
{
	return reason_names[reason];
}

const char *
rpin_reason_meaning(RpinReason reason)
{
	return reason_meanings[reason];
}

bool
rpin_reason_is_overridable(RpinReason reason)
{
	return reason_overridable[reason];
}
