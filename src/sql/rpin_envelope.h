/*-------------------------------------------------------------------------
 *
 * rpin_envelope.h
 *	  Messages: reading the position out of one, and putting it in.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_ENVELOPE_H
#define RPIN_ENVELOPE_H

#include "rpin_demand.h"

/* The settings of the same names. */
extern char *rpin_location_names;
extern int	rpin_max_envelope_size;

/* The fields of a message that are ours. */
#define RPIN_LOCATIONS "wal_locations"
#define RPIN_CORRELATION "correlation_id"

#define RPIN_LOCATION_DEFAULT "main"

/* The n-th name of location_names, from 0, and its length; 0 at the end. */
extern size_t rpin_envelope_location_name(int n, const char **name);

/* May this string be the setting location_names?  Why not, in *detail. */
extern bool rpin_envelope_check_names(const char *names, const char **detail);

/*
 * Adds what an envelope demands, or why it cannot be known.  `envelope` is a
 * text datum, toasted perhaps.  Never raises for any bytes that a text can
 * hold (P2); its memory is the text's and a constant beyond it.
 *
 * The correlation id in *demand points into the detoasted text.
 */
extern void rpin_envelope_read(Datum envelope, RpinDemand *demand);

#endif							/* RPIN_ENVELOPE_H */
