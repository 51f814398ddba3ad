/* replica_pin--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION replica_pin" to load this file. \quit

COMMENT ON SCHEMA replica_pin IS
  'read-your-writes on streaming replicas: which replica may be read, and why';

GRANT USAGE ON SCHEMA replica_pin TO PUBLIC;

--
-- Recording
--

CREATE FUNCTION pin(session_key text)
RETURNS text
AS 'MODULE_PATHNAME', 'rpin_pin'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION pin(text) IS
  'the session key needs everything committed before now, and the commit of this transaction if it writes; returns the token of what is committed';

CREATE FUNCTION pin(session_key text, token text)
RETURNS text
AS 'MODULE_PATHNAME', 'rpin_pin_token'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION pin(text, text) IS
  'the session key needs the position of a token; never lowers what it needs already';

CREATE FUNCTION pin_all(session_keys text[])
RETURNS text
AS 'MODULE_PATHNAME', 'rpin_pin_all'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION pin_all(text[]) IS
  'pin() for several session keys';

CREATE FUNCTION pin_row()
RETURNS trigger
AS 'MODULE_PATHNAME', 'rpin_pin_row'
LANGUAGE C;

COMMENT ON FUNCTION pin_row() IS
  'AFTER ROW trigger: the commit pins the session keys that the row names; arguments are pairs of prefix and column';

--
-- Deciding
--

CREATE FUNCTION is_pinned(session_key text)
RETURNS boolean
AS 'MODULE_PATHNAME', 'rpin_is_pinned'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION is_pinned(text) IS
  'true unless every configured replica is known to have replayed the session key''s last write';

CREATE FUNCTION is_any_pinned(session_keys text[])
RETURNS boolean
AS 'MODULE_PATHNAME', 'rpin_is_any_pinned'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION is_any_pinned(text[]) IS
  'is_pinned() for a read that several session keys matter to';

CREATE FUNCTION route(session_key text DEFAULT NULL, token text DEFAULT NULL,
  OUT replica text, OUT reason text, OUT replicas text[], OUT required text)
RETURNS record
AS 'MODULE_PATHNAME', 'rpin_route'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION route(text, text) IS
  'where a read may go that must see the session key''s last write and the token: a replica, or NULL for the primary';

CREATE FUNCTION route_all(session_keys text[], token text DEFAULT NULL,
  OUT replica text, OUT reason text, OUT replicas text[], OUT required text)
RETURNS record
AS 'MODULE_PATHNAME', 'rpin_route_all'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION route_all(text[], text) IS
  'route() for a read that several session keys matter to';

--
-- Tokens
--

CREATE FUNCTION current_token()
RETURNS text
AS 'MODULE_PATHNAME', 'rpin_current_token'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION current_token() IS
  'a token that covers everything committed before now; on a replica, everything that a reader there may have seen';

CREATE FUNCTION token_lsn(token text)
RETURNS pg_lsn
AS 'MODULE_PATHNAME', 'rpin_token_lsn'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

COMMENT ON FUNCTION token_lsn(text) IS
  'the WAL position of a token, without its identity; NULL for what is no token';

CREATE FUNCTION has_replayed(token text)
RETURNS boolean
AS 'MODULE_PATHNAME', 'rpin_has_replayed'
LANGUAGE C STABLE PARALLEL RESTRICTED;

COMMENT ON FUNCTION has_replayed(text) IS
  'a hint whether the server asked has replayed a token; proves nothing about the statement it stands in';

CREATE PROCEDURE require(token text, timeout integer DEFAULT 0)
AS 'MODULE_PATHNAME', 'rpin_require'
LANGUAGE C;

COMMENT ON PROCEDURE require(text, integer) IS
  'fails unless every later statement of the transaction sees what the token covers, after waiting for replay for up to so many milliseconds: RP001 behind, RP002 not comparable here';

--
-- The node
--

CREATE FUNCTION node_status(OUT in_recovery boolean, OUT replay_lsn pg_lsn,
  OUT timeline integer, OUT timeline_begin pg_lsn, OUT replay_paused boolean,
  OUT system_identifier bigint, OUT node_id text,
  OUT started_at timestamp with time zone)
RETURNS record
AS 'MODULE_PATHNAME', 'rpin_node_status'
LANGUAGE C STABLE PARALLEL RESTRICTED;

COMMENT ON FUNCTION node_status() IS
  'who the server asked is and how far it has replayed; what the sampler asks each replica';

--
-- Views
--

CREATE FUNCTION replica_rows(OUT name text, OUT host text, OUT port integer,
  OUT state text, OUT state_since timestamp with time zone,
  OUT eligible boolean, OUT replay_lsn pg_lsn, OUT lag_bytes bigint,
  OUT lag interval, OUT sample_age interval, OUT replay_paused boolean,
  OUT timeline integer, OUT connected_since timestamp with time zone,
  OUT last_error text, OUT samples bigint, OUT failures bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'rpin_replica_rows'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION replica_rows() IS
  'the rows of the view replicas';

CREATE VIEW replicas AS SELECT * FROM replica_pin.replica_rows();

COMMENT ON VIEW replicas IS
  'every configured replica: where it is, how far behind, since when, and what is wrong';

CREATE FUNCTION status_row(OUT in_recovery boolean, OUT replicas integer,
  OUT sampler_pid integer, OUT sampler_heartbeat_age interval,
  OUT clamped_settings text[], OUT max_session_keys bigint,
  OUT session_keys bigint, OUT evictions bigint, OUT floor_lsn pg_lsn,
  OUT greatest_lsn pg_lsn, OUT pending_keys bigint,
  OUT unkeyed_commits bigint, OUT shared_memory_bytes bigint)
RETURNS record
AS 'MODULE_PATHNAME', 'rpin_status_row'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION status_row() IS
  'the row of the view status';

CREATE VIEW status AS SELECT * FROM replica_pin.status_row();

COMMENT ON VIEW status IS
  'this server''s session keys and its sampler';

--
-- Privileges.  What a role could do with each function is argued in
-- docs/security.md.
--

REVOKE ALL ON FUNCTION replica_rows() FROM PUBLIC;
REVOKE ALL ON FUNCTION status_row() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION replica_rows() TO pg_monitor;
GRANT EXECUTE ON FUNCTION status_row() TO pg_monitor;
GRANT SELECT ON replicas TO pg_monitor;
GRANT SELECT ON status TO pg_monitor;
