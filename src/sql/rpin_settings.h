/*-------------------------------------------------------------------------
 *
 * rpin_settings.h
 *	  The settings replica_pin.*.  Their variables are declared by the layers
 *	  that use them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_SETTINGS_H
#define RPIN_SETTINGS_H

/* Defines them all.  While shared_preload_libraries is loaded only. */
extern void rpin_settings_define(void);

#endif							/* RPIN_SETTINGS_H */
