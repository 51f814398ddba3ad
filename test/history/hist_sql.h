/*
 * hist_sql.h
 *	  The statements of the history checker.
 */
#ifndef HIST_SQL_H
#define HIST_SQL_H

typedef enum HistSql
{
	HIST_SQL_SET_KEY,
	HIST_SQL_PIN,
	HIST_SQL_PIN_ALL,
	HIST_SQL_WRITE,
	HIST_SQL_COMMIT,
	HIST_SQL_READ,
	HIST_SQL_ROUTE,
	HIST_SQL_IS_PINNED,
	HIST_SQL_BOARD,
	HIST_SQL_ELIGIBLE,
	HIST_SQL_REQUIRE,
	HIST_SQL_CURRENT_TOKEN,
	HIST_SQL_RENEW,
	HIST_SQL_POSITION,
	HIST_SQL_INSERT_POSITION,
	HIST_SQL_COUNT
} HistSql;

extern const char *const hist_sql[HIST_SQL_COUNT];

/* What the checker makes on the primary before it begins; NULL ends it. */
extern const char *const hist_sql_schema[];

#endif							/* HIST_SQL_H */
