/*
 * hist_report.h
 *	  The verdict, for people and for programs.
 */
#ifndef HIST_REPORT_H
#define HIST_REPORT_H

#include <stdbool.h>
#include <stdint.h>

/* Enough was seen for a verdict. */
extern bool hist_report_enough(void);

/*
 * Writes the report; `lost` acknowledged commits are not on the primary, negative
 * if it could not be asked.  True if the verdict is ok.
 */
extern bool hist_report(int64_t lost);

#endif							/* HIST_REPORT_H */
