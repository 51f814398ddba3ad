/*-------------------------------------------------------------------------
 *
 * rpin_row.h
 *	  Result rows, filled by column name.
 *
 * The row type is the one that the SQL function declares, so a library works
 * with the declarations of an older or a newer version of the extension: a
 * column that it does not know is NULL, one that is not declared is left out.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_ROW_H
#define RPIN_ROW_H

#include "access/tupdesc.h"
#include "access/xlogdefs.h"
#include "fmgr.h"

typedef struct RpinRow
{
	TupleDesc	desc;
	Datum	   *value;
	bool	   *null;
} RpinRow;

/* A row of the type that the running function returns.  May throw. */
extern void rpin_row_begin(RpinRow *row, FunctionCallInfo fcinfo);

/*
 * The same for a function that returns a set: begin the set once, then begin and
 * store each row.  May throw.
 */
extern void rpin_row_begin_set(FunctionCallInfo fcinfo);
extern void rpin_row_begin_of_set(RpinRow *row, FunctionCallInfo fcinfo);
extern void rpin_row_store(RpinRow *row, FunctionCallInfo fcinfo);

/* Sets a column that may not be declared. */
extern void rpin_row_set(RpinRow *row, const char *column, Datum value);
extern void rpin_row_set_text(RpinRow *row, const char *column,
							  const char *value);

/* A position; 0 is NULL. */
extern void rpin_row_set_lsn(RpinRow *row, const char *column, XLogRecPtr lsn);

/* The finished row as the function's result. */
extern Datum rpin_row_datum(RpinRow *row);

#endif							/* RPIN_ROW_H */
