/* replica_pin--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION replica_pin" to load this file. \quit

CREATE SCHEMA replica_pin;

COMMENT ON SCHEMA replica_pin IS
  'read-your-writes on streaming replicas: which replica may be read, and why';

GRANT USAGE ON SCHEMA replica_pin TO PUBLIC;

--
-- Recording
--

CREATE FUNCTION replica_pin.pin(session_key text)
RETURNS text
AS 'MODULE_PATHNAME', 'rpin_pin'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION replica_pin.pin(text) IS
  'the session key needs everything committed before now, and the commit of this transaction if it writes; returns the token of what is committed';

CREATE FUNCTION replica_pin.pin(session_key text, token text)
RETURNS text
AS 'MODULE_PATHNAME', 'rpin_pin_token'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION replica_pin.pin(text, text) IS
  'the session key needs the position of a token; never lowers what it needs already';

CREATE FUNCTION replica_pin.pin_all(session_keys text[])
RETURNS text
AS 'MODULE_PATHNAME', 'rpin_pin_all'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION replica_pin.pin_all(text[]) IS
  'pin() for several session keys';

CREATE FUNCTION replica_pin.pin_row()
RETURNS trigger
AS 'MODULE_PATHNAME', 'rpin_pin_row'
LANGUAGE C;

COMMENT ON FUNCTION replica_pin.pin_row() IS
  'AFTER ROW trigger: the commit pins the session keys that the row names; arguments are pairs of prefix and column';

--
-- Deciding
--

CREATE FUNCTION replica_pin.is_pinned(session_key text)
RETURNS boolean
AS 'MODULE_PATHNAME', 'rpin_is_pinned'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION replica_pin.is_pinned(text) IS
  'true unless every configured replica is known to have replayed the session key''s last write';

CREATE FUNCTION replica_pin.is_any_pinned(session_keys text[])
RETURNS boolean
AS 'MODULE_PATHNAME', 'rpin_is_any_pinned'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION replica_pin.is_any_pinned(text[]) IS
  'is_pinned() for a read that several session keys matter to';

CREATE TYPE replica_pin.decision AS (
  replica text, reason text, replicas text[], required text);

COMMENT ON TYPE replica_pin.decision IS
  'where a read may go: one replica of the set, or NULL for the primary; why; the whole set; the token to carry on from here';

CREATE FUNCTION replica_pin.route(session_key text DEFAULT NULL, token text DEFAULT NULL)
RETURNS replica_pin.decision
AS 'MODULE_PATHNAME', 'rpin_route'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION replica_pin.route(text, text) IS
  'where a read may go that must see the session key''s last write and the token: a replica, or NULL for the primary';

CREATE FUNCTION replica_pin.route_all(session_keys text[], token text DEFAULT NULL)
RETURNS replica_pin.decision
AS 'MODULE_PATHNAME', 'rpin_route_all'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION replica_pin.route_all(text[], text) IS
  'route() for a read that several session keys matter to';

CREATE FUNCTION replica_pin.route_envelope(envelope text)
RETURNS replica_pin.decision
AS 'MODULE_PATHNAME', 'rpin_route_envelope'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION replica_pin.route_envelope(text) IS
  'route() for the position in a raw message, before anything in it is resolved; never raises';

CREATE FUNCTION replica_pin.stamp(payload jsonb, correlation_id text DEFAULT NULL)
RETURNS jsonb
AS 'MODULE_PATHNAME', 'rpin_stamp'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION replica_pin.stamp(jsonb, text) IS
  'adds wal_locations, with the token of what is committed now, and correlation_id to a message';

--
-- Tokens
--

CREATE FUNCTION replica_pin.current_token()
RETURNS text
AS 'MODULE_PATHNAME', 'rpin_current_token'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION replica_pin.current_token() IS
  'a token that covers everything committed before now; on a replica, everything that a reader there may have seen';

CREATE FUNCTION replica_pin.token_lsn(token text)
RETURNS pg_lsn
AS 'MODULE_PATHNAME', 'rpin_token_lsn'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

COMMENT ON FUNCTION replica_pin.token_lsn(text) IS
  'the WAL position of a token, without its identity; NULL for what is no token';

CREATE FUNCTION replica_pin.has_replayed(token text)
RETURNS boolean
AS 'MODULE_PATHNAME', 'rpin_has_replayed'
LANGUAGE C STABLE PARALLEL RESTRICTED;

COMMENT ON FUNCTION replica_pin.has_replayed(text) IS
  'a hint whether the server asked has replayed a token; proves nothing about the statement it stands in';

CREATE PROCEDURE replica_pin.require(token text, timeout integer DEFAULT 0)
AS 'MODULE_PATHNAME', 'rpin_require'
LANGUAGE C;

COMMENT ON PROCEDURE replica_pin.require(text, integer) IS
  'fails unless every later statement of the transaction sees what the token covers, after waiting for replay for up to so many milliseconds: RP001 behind, RP002 not comparable here';

--
-- The node
--

CREATE FUNCTION replica_pin.node_status(OUT in_recovery boolean, OUT replay_lsn pg_lsn,
  OUT timeline integer, OUT timeline_begin pg_lsn, OUT replay_paused boolean,
  OUT system_identifier bigint, OUT node_id text,
  OUT started_at timestamp with time zone, OUT library_version text)
RETURNS record
AS 'MODULE_PATHNAME', 'rpin_node_status'
LANGUAGE C STABLE PARALLEL RESTRICTED;

COMMENT ON FUNCTION replica_pin.node_status() IS
  'who the server asked is and how far it has replayed; what the sampler asks each replica';

--
-- Views
--

CREATE FUNCTION replica_pin.replica_rows(OUT name text, OUT host text, OUT port integer,
  OUT state text, OUT state_since timestamp with time zone,
  OUT eligible boolean, OUT replay_lsn pg_lsn, OUT lag_bytes bigint,
  OUT lag interval, OUT sample_age interval, OUT replay_paused boolean,
  OUT timeline integer, OUT connected_since timestamp with time zone,
  OUT last_error text, OUT samples bigint, OUT failures bigint,
  OUT library_version text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'rpin_replica_rows'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION replica_pin.replica_rows() IS
  'the rows of the view replicas';

CREATE VIEW replica_pin.replicas AS SELECT * FROM replica_pin.replica_rows();

COMMENT ON VIEW replica_pin.replicas IS
  'every configured replica: where it is, how far behind, since when, and what is wrong';

CREATE FUNCTION replica_pin.status_row(OUT in_recovery boolean, OUT replicas integer,
  OUT sampler_pid integer, OUT sampler_heartbeat_age interval,
  OUT clamped_settings text[], OUT session_key_slots bigint,
  OUT session_keys bigint, OUT evictions bigint, OUT floor_lsn pg_lsn,
  OUT greatest_lsn pg_lsn, OUT pending_keys bigint,
  OUT unkeyed_commits bigint, OUT stats_reset timestamp with time zone,
  OUT shared_memory_bytes bigint)
RETURNS record
AS 'MODULE_PATHNAME', 'rpin_status_row'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION replica_pin.status_row() IS
  'the row of the view status';

CREATE VIEW replica_pin.status AS SELECT * FROM replica_pin.status_row();

COMMENT ON VIEW replica_pin.status IS
  'this server''s session keys and its sampler';

CREATE FUNCTION replica_pin.decision_rows(OUT reason text, OUT enforced bigint,
  OUT not_enforced bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'rpin_decision_rows'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION replica_pin.decision_rows() IS
  'the rows of the view stat_decisions';

CREATE VIEW replica_pin.stat_decisions AS SELECT * FROM replica_pin.decision_rows();

COMMENT ON VIEW replica_pin.stat_decisions IS
  'decisions by reason, enforced or not, since status.stats_reset';

--
-- Diagnosis
--

CREATE FUNCTION replica_pin.explain(session_key text, token text DEFAULT NULL,
  OUT item text, OUT replica text, OUT verdict text, OUT lsn pg_lsn,
  OUT behind_bytes bigint, OUT sample_age interval, OUT detail text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'rpin_explain'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION replica_pin.explain(text, text) IS
  'what route() would answer now, part by part: the session key, the token, each replica, the decision; counts nothing';

CREATE FUNCTION replica_pin.check_setup(OUT severity text, OUT problem text,
  OUT subject text, OUT detail text, OUT hint text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'rpin_check_setup'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION replica_pin.check_setup() IS
  'what is wrong with the set-up of this server and of its replicas, with what to do; no row if nothing is';

CREATE FUNCTION replica_pin.reset_stats()
RETURNS void
AS 'MODULE_PATHNAME', 'rpin_reset_stats'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION replica_pin.reset_stats() IS
  'begins the counts of stat_decisions and status at zero';

--
-- Privileges.  What a role could do with each function is argued in
-- docs/security.md.
--

REVOKE ALL ON FUNCTION replica_pin.replica_rows() FROM PUBLIC;
REVOKE ALL ON FUNCTION replica_pin.status_row() FROM PUBLIC;
REVOKE ALL ON FUNCTION replica_pin.decision_rows() FROM PUBLIC;
REVOKE ALL ON FUNCTION replica_pin.explain(text, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION replica_pin.check_setup() FROM PUBLIC;
REVOKE ALL ON FUNCTION replica_pin.reset_stats() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION replica_pin.replica_rows() TO pg_monitor;
GRANT EXECUTE ON FUNCTION replica_pin.status_row() TO pg_monitor;
GRANT EXECUTE ON FUNCTION replica_pin.decision_rows() TO pg_monitor;
GRANT EXECUTE ON FUNCTION replica_pin.explain(text, text) TO pg_monitor;
GRANT EXECUTE ON FUNCTION replica_pin.check_setup() TO pg_monitor;
GRANT SELECT ON replica_pin.replicas TO pg_monitor;
GRANT SELECT ON replica_pin.status TO pg_monitor;
GRANT SELECT ON replica_pin.stat_decisions TO pg_monitor;
