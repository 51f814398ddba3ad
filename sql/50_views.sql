--
-- The views: what they have, and what they say of replicas that are none.
--
\pset null (null)
SELECT attrelid::regclass AS view, attname AS "column",
       format_type(atttypid, atttypmod) AS type
FROM pg_attribute
WHERE attrelid IN ('replica_pin.replicas'::regclass, 'replica_pin.status'::regclass,
                   'replica_pin.stat_decisions'::regclass)
ORDER BY attrelid::regclass::text COLLATE "C", attnum;
SELECT * FROM replica_pin.replicas;

-- This server.
SELECT in_recovery, replicas, clamped_settings,
       sampler_pid > 0 AND sampler_pid <> pg_backend_pid() AS has_sampler,
       sampler_heartbeat_age BETWEEN '0' AND '30 s' AS alive,
       floor_lsn > '0/0' AS has_floor,
       floor_lsn <= greatest_lsn AS floor_counts, pending_keys,
       session_key_slots >= current_setting('replica_pin.max_session_keys')::bigint
       AS room,
       shared_memory_bytes <= 24 * session_key_slots AS at_most_24_bytes_a_key
FROM replica_pin.status;

-- What is pinned raises the greatest position, and new keys take room.
SELECT session_keys, evictions FROM replica_pin.status \gset before_
SELECT replica_pin.pin('view:1') IS NOT NULL AS first,
       replica_pin.pin('view:1') IS NOT NULL AS again;
SELECT replica_pin.pin('view:2') AS token \gset
SELECT session_keys - :before_session_keys AS new_keys,
       evictions - :before_evictions AS new_evictions,
       greatest_lsn = replica_pin.token_lsn(:'token') AS greatest
FROM replica_pin.status;

-- Every decision is counted under its reason, once, until the counts are reset.
SELECT clock_timestamp() AS before \gset
SELECT replica_pin.reset_stats();
SELECT stats_reset BETWEEN :'before' AND now() AS is_now
FROM replica_pin.status;
SELECT key, reason
FROM unnest(ARRAY['view:1', 'view:2', '', NULL]) AS key, replica_pin.route(key);
SELECT replica_pin.is_pinned('view:1'), replica_pin.is_any_pinned('{}');
SELECT * FROM replica_pin.stat_decisions;
SELECT replica_pin.reset_stats();
SELECT sum(enforced), sum(not_enforced) FROM replica_pin.stat_decisions;

--
-- Replicas that are none.  How the sampler got on with each is in its state.
--
CREATE PROCEDURE test.wait_for_state(expected text) LANGUAGE plpgsql AS $$
BEGIN
    CALL test.wait_for(format(
        '(SELECT bool_and(state = %L) FROM replica_pin.replicas)', expected));
END
$$;
CREATE VIEW test.replica AS
SELECT name, state, eligible,
       state_since BETWEEN pg_postmaster_start_time() AND clock_timestamp()
           AS has_since,
       replay_lsn IS NOT NULL AS sampled, connected_since IS NOT NULL AS connected,
       last_error
FROM replica_pin.replicas;

-- Nothing listens there.
ALTER SYSTEM SET replica_pin.replicas = 'r1=127.0.0.1:1, 127.0.0.1:2, [::1]:3, nowhere=/nonexistent';
SELECT pg_reload_conf();
CALL test.wait_for_state('unreachable');
SELECT name, host, port FROM replica_pin.replicas;
SELECT * FROM test.replica WHERE name = 'r1';
SELECT name, replay_lsn, lag_bytes, lag, sample_age, replay_paused, timeline,
       samples, failures > 0 AS has_failures
FROM replica_pin.replicas;
SELECT last_error FROM replica_pin.replicas WHERE name = 'nowhere';

-- This very server, through its own socket.
SELECT 'me=' || split_part(current_setting('unix_socket_directories'), ',', 1) ||
       ':' || current_setting('port') AS me \gset
ALTER SYSTEM SET replica_pin.replicas = :'me';
-- in a database without the extension
ALTER SYSTEM SET replica_pin.conninfo = 'dbname=template1';
SELECT pg_reload_conf();
CALL test.wait_for_state('extension_missing');
SELECT * FROM test.replica;
-- in no database
ALTER SYSTEM SET replica_pin.conninfo = 'dbname=regress_rpin_none';
SELECT pg_reload_conf();
CALL test.wait_for_state('refused');
SELECT * FROM test.replica;
-- as nobody
ALTER SYSTEM SET replica_pin.conninfo = 'user=regress_rpin_none';
SELECT pg_reload_conf();
CALL test.wait_for_state('authentication');
SELECT * FROM test.replica;
-- as a role that may not ask
CREATE ROLE regress_rpin_sampler LOGIN;
REVOKE EXECUTE ON FUNCTION replica_pin.node_status() FROM PUBLIC;
SELECT format('dbname=%s user=regress_rpin_sampler', current_database()) AS conninfo \gset
ALTER SYSTEM SET replica_pin.conninfo = :'conninfo';
SELECT pg_reload_conf();
CALL test.wait_for_state('no_privilege');
SELECT * FROM test.replica;
-- as one that may, a try later
GRANT EXECUTE ON FUNCTION replica_pin.node_status() TO PUBLIC;
CALL test.wait_for_state('self');
SELECT * FROM test.replica;
SELECT replay_lsn, lag_bytes, lag, sample_age < '30 s' AS is_young, replay_paused,
       timeline, samples > 0 AS has_samples, failures > 0 AS has_failures
FROM replica_pin.replicas;

-- It is left out of every rule: this server has no replicas.
SELECT replica, reason, replicas FROM replica_pin.route('view:1');
SELECT replica_pin.is_pinned('view:1');

-- Beside it, one that cannot be sampled.
SELECT :'me' || ', r1=127.0.0.1:1' AS list \gset
ALTER SYSTEM SET replica_pin.replicas = :'list';
SELECT pg_reload_conf();
CALL test.wait_for($$ EXISTS (SELECT FROM replica_pin.replicas
    WHERE name = 'r1' AND state = 'unreachable') $$);
SELECT name, state, eligible FROM replica_pin.replicas;
SELECT replica, reason, replicas FROM replica_pin.route('view:1');

ALTER SYSTEM RESET replica_pin.replicas;
ALTER SYSTEM RESET replica_pin.conninfo;

--
-- Settings that do not fit each other: the sampler lowers some, and says which.
--
ALTER SYSTEM SET replica_pin.sample_lifetime = '100ms';
SELECT pg_reload_conf();
CALL test.wait_for($$ (SELECT clamped_settings <> '{}' FROM replica_pin.status) $$);
SELECT replicas, clamped_settings FROM replica_pin.status;
ALTER SYSTEM SET replica_pin.min_sample_interval = '30ms';
SELECT pg_reload_conf();
CALL test.wait_for($$ (SELECT cardinality(clamped_settings) = 3 FROM replica_pin.status) $$);
SELECT clamped_settings FROM replica_pin.status;
ALTER SYSTEM RESET replica_pin.sample_lifetime;
SELECT pg_reload_conf();
CALL test.wait_for($$ (SELECT clamped_settings = '{}' FROM replica_pin.status) $$);
ALTER SYSTEM RESET replica_pin.min_sample_interval;
SELECT pg_reload_conf();

DROP VIEW test.replica;
DROP PROCEDURE test.wait_for_state(text);
DROP ROLE regress_rpin_sampler;
