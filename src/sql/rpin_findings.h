/*-------------------------------------------------------------------------
 *
 * rpin_findings.h
 *	  The rows of check_setup(), and those about settings.
 *
 * May throw, as everything that reads catalogs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_FINDINGS_H
#define RPIN_FINDINGS_H

#include "rpin_row.h"

typedef struct RpinFindings
{
	FunctionCallInfo fcinfo;	/* of a function that returns a set */
} RpinFindings;

typedef enum RpinSeverity
{
	RPIN_ERROR,
	RPIN_WARNING,
	RPIN_NOTICE
} RpinSeverity;

/* One row; the detail is printf's. */
extern void rpin_findings_add(RpinFindings *findings, RpinSeverity severity,
							  const char *problem, const char *subject,
							  const char *hint, const char *detail,...)
			pg_attribute_printf(6, 7);

/*
 * Settings that are meant for a transaction or a trial, in force for a role, a
 * database or for whoever connects as the caller did.
 */
extern void rpin_findings_check_settings(RpinFindings *findings);

#endif							/* RPIN_FINDINGS_H */
