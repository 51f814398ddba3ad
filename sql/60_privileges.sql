--
-- Who may call what: deciding and pinning is everybody's, the views are
-- pg_monitor's.
--
SELECT oid::regprocedure::text COLLATE "C" AS routine,
       has_function_privilege('regress_rpin_app', oid, 'EXECUTE') AS everybody,
       has_function_privilege('regress_rpin_monitor', oid, 'EXECUTE') AS monitor
FROM pg_proc
WHERE pronamespace = 'replica_pin'::regnamespace
ORDER BY 1;
SELECT name, privilege,
       has_table_privilege('regress_rpin_app', name, privilege) AS everybody,
       has_table_privilege('regress_rpin_monitor', name, privilege) AS monitor
FROM (VALUES ('replica_pin.replicas'), ('replica_pin.status'),
             ('replica_pin.stat_decisions')) v(name),
     (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) p(privilege)
ORDER BY name, privilege;
SELECT privilege,
       has_schema_privilege('regress_rpin_app', 'replica_pin', privilege) AS everybody,
       has_schema_privilege('regress_rpin_monitor', 'replica_pin', privilege) AS monitor
FROM (VALUES ('USAGE'), ('CREATE')) p(privilege);

-- An application.
SET ROLE regress_rpin_app;
SELECT replica_pin.pin('user:1') IS NOT NULL AS pinned,
       replica_pin.pin_all('{user:1}') IS NOT NULL AS pinned_all,
       replica_pin.pin('user:1', replica_pin.current_token()) IS NOT NULL AS recorded;
SELECT replica_pin.is_pinned('user:1'), replica_pin.is_any_pinned('{user:1}');
SELECT reason FROM replica_pin.route('user:1');
SELECT reason FROM replica_pin.route_all('{user:1}');
SELECT replica_pin.has_replayed(replica_pin.current_token()),
       replica_pin.token_lsn(replica_pin.current_token()) IS NOT NULL AS token_lsn;
CALL replica_pin.require(replica_pin.current_token());
SELECT in_recovery FROM replica_pin.node_status();
SELECT replica_pin.stamp('{}') ? 'wal_locations' AS stamped;
SELECT reason FROM replica_pin.route_envelope('{}');
SELECT * FROM replica_pin.replicas;
SELECT * FROM replica_pin.status;
SELECT * FROM replica_pin.stat_decisions;
SELECT * FROM replica_pin.replica_rows();
SELECT * FROM replica_pin.status_row();
SELECT * FROM replica_pin.decision_rows();
SELECT * FROM replica_pin.explain('user:1');
SELECT * FROM replica_pin.check_setup();
SELECT replica_pin.reset_stats();
\echo :SQLSTATE
CREATE FUNCTION replica_pin.pin(varchar) RETURNS text LANGUAGE sql AS 'SELECT $1';
RESET ROLE;

-- A monitoring tool.
SET ROLE regress_rpin_monitor;
SELECT count(*) FROM replica_pin.replicas;
SELECT item, verdict FROM replica_pin.explain('user:1');
SELECT count(*) > 0 AS finds FROM replica_pin.check_setup();
SELECT in_recovery FROM replica_pin.status;
SELECT count(*) > 0 AS reasons FROM replica_pin.stat_decisions;
SELECT replica_pin.reset_stats();
RESET ROLE;

-- An administrator who wants fewer to pin can have that.
REVOKE EXECUTE ON FUNCTION replica_pin.pin(text) FROM PUBLIC;
SET ROLE regress_rpin_app;
SELECT replica_pin.pin('user:1');
RESET ROLE;
GRANT EXECUTE ON FUNCTION replica_pin.pin(text) TO PUBLIC;
