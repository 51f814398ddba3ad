/*
 * hist_report.h
 *	  The verdict, for people and for programs.
 */
#ifndef HIST_REPORT_H
#define HIST_REPORT_H

#include <stdint.h>

/*
 * Writes the report; `lost` acknowledged commits are not on the primary, negative
 * if it could not be asked.  True if the verdict is ok.
 */
extern int	hist_report(int64_t lost);

#endif							/* HIST_REPORT_H */
