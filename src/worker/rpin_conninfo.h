/*-------------------------------------------------------------------------
 *
 * rpin_conninfo.h
 *	  The libpq options that all samplers share, and the ones that are ours.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_CONNINFO_H
#define RPIN_CONNINFO_H

#include "../core/rpin_list.h"
#include "../core/rpin_pace.h"

/* Why a conninfo string is refused; texts for errdetail and errhint. */
typedef struct RpinConninfoError
{
	char		detail[160];
	const char *hint;
} RpinConninfoError;

/* Keywords and values for PQconnectStartParams(); both end with NULL. */
typedef struct RpinConnectParams
{
	const char **keyword;
	const char **value;
} RpinConnectParams;

/*
 * May this string be the setting replica_pin.conninfo?  Only options from an
 * allow list: the address is the list's, deadlines are the sampler's, and a
 * secret must not be in a setting, since the server logs a changed one in full.
 * Never quotes the string: libpq's own messages do.  Does not throw.
 */
extern bool rpin_conninfo_check(const char *conninfo,
								RpinConninfoError *error);

/*
 * Options of a checked conninfo, with those of one address added, and the time
 * limits that follow from the pace, a clamped one.  The memory is of malloc; free it with
 * rpin_conninfo_free().  False when there is no memory.
 */
extern bool rpin_conninfo_build(const char *conninfo,
								const RpinAddress *address, const RpinPace *pace,
								RpinConnectParams *params);
extern void rpin_conninfo_free(RpinConnectParams *params);

/* One option of a checked conninfo; false if it is not there, or too long. */
extern bool rpin_conninfo_get(const char *conninfo, const char *keyword,
							  char *value, size_t size);

/* Or else it is a name, to be resolved, or a path. */
extern bool rpin_conninfo_is_address(const char *host);

/*
 * Takes libpq's variables (PGSERVICE, PGHOSTADDR, ...) out of the environment
 * of this process: the settings are all that counts.
 */
extern void rpin_conninfo_clear_environment(void);

#endif							/* RPIN_CONNINFO_H */
