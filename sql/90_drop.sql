--
-- DROP EXTENSION, and again: the keys are the server's and stay.
--
SELECT replica_pin.pin('user:1') AS pinned \gset
CREATE VIEW test.lagging AS SELECT * FROM replica_pin.replicas WHERE NOT eligible;
DROP EXTENSION replica_pin;
DROP VIEW test.lagging;
DROP EXTENSION replica_pin;
SELECT count(*) FROM pg_proc WHERE probin = '$libdir/replica_pin';
SELECT reason FROM replica_pin.route('user:1');

-- It does not move into a schema that somebody has prepared.
CREATE SCHEMA replica_pin;
\set SHOW_CONTEXT never
CREATE EXTENSION replica_pin;
DROP SCHEMA replica_pin;

CREATE EXTENSION replica_pin;
SELECT required = :'pinned' AS stays FROM replica_pin.route('user:1');
DROP EXTENSION replica_pin;

SET client_min_messages = warning;
DROP SCHEMA test CASCADE;
DROP ROLE regress_rpin_app;
DROP ROLE regress_rpin_monitor;
