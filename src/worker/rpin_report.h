/*-------------------------------------------------------------------------
 *
 * rpin_report.h
 *	  The question to a replica, and reading its answer.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_REPORT_H
#define RPIN_REPORT_H

#include "libpq-fe.h"

#include "../core/rpin_sample.h"

#define RPIN_REPORT_STATEMENT "replica_pin_sample"

/*
 * Columns in the order in which rpin_report_read() takes them.  All of them are
 * in version 1.0 of the extension: a library that asks for a later one could not
 * sample before ALTER EXTENSION UPDATE has been replayed.
 */
#define RPIN_REPORT_QUERY \
	"SELECT system_identifier, node_id, in_recovery, replay_paused," \
	" timeline, timeline_begin, replay_lsn, library_version" \
	" FROM replica_pin.node_status()"

/*
 * Reads a result of the query.  False for anything that is not exactly one row
 * of the expected columns with values of the expected form: who answers there
 * may be anybody.
 */
extern bool rpin_report_read(const PGresult *result, RpinReport *report);

#endif							/* RPIN_REPORT_H */
