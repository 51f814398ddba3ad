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
#include "rpin_envelope_reader.h"

/* The settings of the same names. */
extern char *rpin_location_names;
extern int	rpin_max_envelope_size;

#define RPIN_LOCATION_DEFAULT "main"

/* The setting location_names, or its default where we are not preloaded. */
extern const char *rpin_envelope_names(void);

/*
 * Adds what an envelope demands, or why it cannot be known.  `envelope` is a
 * text datum, toasted perhaps.  Never raises for any bytes that a text can
 * hold (P2); its memory is the text's and a constant beyond it.
 *
 * The correlation id in *demand points into the detoasted text.
 */
extern void rpin_envelope_read(Datum envelope, RpinDemand *demand);

#endif							/* RPIN_ENVELOPE_H */
