/*-------------------------------------------------------------------------
 *
 * rpin_utility.h
 *	  The utility hook: COMMIT PREPARED.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_UTILITY_H
#define RPIN_UTILITY_H

/* Installs the hook.  While shared_preload_libraries is loaded only. */
extern void rpin_utility_install(void);

#endif							/* RPIN_UTILITY_H */
