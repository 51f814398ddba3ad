/*
 * hist_sql.c
 *	  The statements of the history checker.
 */
#include "hist_sql.h"

#include <stddef.h>

/*
 * history_log has every version that was committed, so that after a failover the
 * surviving primary can tell which ones it has.
 */
const char *const hist_sql_schema[] = {
	"SET client_min_messages = warning",
	"CREATE EXTENSION IF NOT EXISTS replica_pin",
	"DROP TABLE IF EXISTS history_item, history_log",
	"CREATE TABLE history_item (key bigint PRIMARY KEY, version bigint NOT NULL)"
	" WITH (fillfactor = 50)",
	"CREATE TABLE history_log (version bigint PRIMARY KEY, key bigint NOT NULL)",
	NULL
};

/*
 * Positions are numbers of bytes.  What a server replayed once says nothing of it
 * after it was promoted.
 */
const char *const hist_sql[HIST_SQL_COUNT] = {
	[HIST_SQL_SET_KEY] = "SELECT set_config('replica_pin.session_key', $1, true)",
	[HIST_SQL_PIN] = "SELECT replica_pin.pin($1)",
	[HIST_SQL_PIN_ALL] = "SELECT replica_pin.pin_all(ARRAY[$1])",
	[HIST_SQL_WRITE] =
	"WITH log AS (INSERT INTO history_log VALUES ($2::bigint, $1::bigint))"
	" INSERT INTO history_item AS i VALUES ($1::bigint, $2::bigint)"
	" ON CONFLICT (key) DO UPDATE SET version = greatest(i.version, excluded.version)"
	" RETURNING version",
	[HIST_SQL_COMMIT] = "COMMIT",
	[HIST_SQL_READ] =
	"SELECT coalesce((SELECT version FROM history_item WHERE key = $1::bigint), 0),"
	" CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() - '0/0'::pg_lsn END",
	[HIST_SQL_ROUTE] =
	"SELECT coalesce(replica, ''), reason, coalesce(array_to_string(replicas, ','), ''),"
	" coalesce(required, '') FROM replica_pin.route($1::text)",
	[HIST_SQL_IS_PINNED] = "SELECT replica_pin.is_pinned($1::text)",
	[HIST_SQL_BOARD] =
	"SELECT coalesce(replay_lsn - '0/0'::pg_lsn, 0),"
	" (extract(epoch FROM sample_age) * 1000000)::bigint"
	" FROM replica_pin.replicas WHERE name = $1::text AND state <> 'self'",
	[HIST_SQL_ELIGIBLE] =
	"SELECT bool_and(eligible AND clock_timestamp() - state_since > '2s')"
	" FROM replica_pin.replicas WHERE state <> 'self'",
	[HIST_SQL_REQUIRE] = "CALL replica_pin.require($1::text, $2::integer)",
	[HIST_SQL_CURRENT_TOKEN] = "SELECT replica_pin.current_token()",
	[HIST_SQL_RENEW] =
	"SELECT coalesce(required, ''), reason FROM replica_pin.route(token => $1::text)",
	[HIST_SQL_POSITION] = "SELECT pg_last_wal_replay_lsn() - '0/0'::pg_lsn",
	[HIST_SQL_INSERT_POSITION] = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn",
};
