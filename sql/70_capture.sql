--
-- Which commits pin, and at which position.
--
-- Every statement below runs with a session key of its own.  "pinned" says that
-- the key's required position is beyond the floor, where it starts; "exact",
-- that it is the end of a commit record written meanwhile.
--
\set ECHO none
\set QUIET on
CREATE EXTENSION IF NOT EXISTS pg_walinspect;

CREATE TABLE capture_log (session_key text PRIMARY KEY, before pg_lsn, after pg_lsn);

-- Is there a record of the transaction manager that ends where the key is pinned?
CREATE FUNCTION capture_verdict(key text)
RETURNS TABLE (statement text, pinned boolean, exact boolean)
LANGUAGE sql AS $$
  SELECT key, required > floor_lsn,
    CASE WHEN required > floor_lsn THEN
      required > before AND EXISTS (
        SELECT FROM pg_get_wal_records_info(before, pg_current_wal_flush_lsn())
        WHERE end_lsn = required AND record_type ~ '^COMMIT') END
  FROM capture_log,
    LATERAL (SELECT replica_pin.token_lsn(r.required) AS required
             FROM replica_pin.route(session_key) r) d,
    replica_pin.status
  WHERE session_key = key
$$;

-- Keeps this psql's own bookkeeping out of the way of the statement under test.
-- The UPDATE flushes what came before it, for pg_walinspect to see.
\set begin 'SET replica_pin.capture = off; INSERT INTO capture_log VALUES (:''key'', pg_current_wal_insert_lsn()); SET replica_pin.session_key = :''key''; SET replica_pin.capture = on;'
\set end 'SET replica_pin.capture = off; SET replica_pin.session_key = \'\'; UPDATE capture_log SET after = pg_current_wal_insert_lsn() WHERE session_key = :''key''; SELECT * FROM capture_verdict(:''key'');'

CREATE TABLE note (id integer PRIMARY KEY, body text) WITH (autovacuum_enabled = off, fillfactor = 50);
CREATE UNLOGGED TABLE scratch (id integer);
CREATE SEQUENCE number CACHE 10;
INSERT INTO note SELECT n, 'a' FROM generate_series(1, 100) n;
\set QUIET off
\pset format unaligned
\pset tuples_only on
\pset null '-'

-- INSERT
\set key 'insert'
\set QUIET on
:begin
INSERT INTO note VALUES (1001);
:end

-- a plain SELECT that follows a write keeps the old XactLastCommitEnd
\set key 'select after a write'
:begin
SELECT FROM note WHERE id = 1001 \g /dev/null
:end

-- a SELECT that prunes dead tuples writes WAL, moves XactLastCommitEnd, and wrote nothing
UPDATE note SET body = 'b';
UPDATE note SET body = 'c';
\set key 'select that prunes'
:begin
SET enable_seqscan = on;
SELECT count(body) FROM note \g /dev/null
SELECT pg_current_wal_insert_lsn() > before AS "it wrote WAL" FROM capture_log WHERE session_key = :'key';
:end

\set key 'insert into an unlogged table'
:begin
INSERT INTO scratch VALUES (1);
:end

CREATE TEMP TABLE temporary (id integer);
\set key 'insert into a temporary table'
:begin
INSERT INTO temporary VALUES (1);
:end

\set key 'nextval, the first'
:begin
SELECT nextval('number') \g /dev/null
:end

\set key 'nextval, cached'
:begin
SELECT nextval('number') \g /dev/null
:end

\set key 'select for update'
:begin
SELECT FROM note WHERE id = 1 FOR UPDATE \g /dev/null
:end

\set key 'notify'
:begin
NOTIFY something;
:end

\set key 'insert and rollback'
:begin
BEGIN;
INSERT INTO note VALUES (1002);
ROLLBACK;
:end

\set key 'savepoint rolled back, outer commit'
:begin
BEGIN;
SAVEPOINT s;
INSERT INTO note VALUES (1003);
ROLLBACK TO s;
COMMIT;
:end

\set key 'update of no row'
:begin
UPDATE note SET body = 'x' WHERE id = -1;
:end

\set key 'on conflict do nothing that hit'
:begin
INSERT INTO note VALUES (1001) ON CONFLICT DO NOTHING;
:end

\set key 'logical message, not transactional'
:begin
SELECT pg_logical_emit_message(false, 'test', 'x') IS NOT NULL \g /dev/null
:end

\set key 'vacuum'
:begin
VACUUM note;
:end

\set key 'insert, synchronous_commit off'
:begin
SET synchronous_commit = off;
INSERT INTO note VALUES (1004);
RESET synchronous_commit;
:end

\set key 'insert, synchronous_commit local'
:begin
SET synchronous_commit = local;
INSERT INTO note VALUES (1005);
RESET synchronous_commit;
:end

\set key 'insert, synchronous_commit remote_write'
:begin
SET synchronous_commit = remote_write;
INSERT INTO note VALUES (1006);
RESET synchronous_commit;
:end

\set key 'insert, synchronous_commit remote_apply'
:begin
SET synchronous_commit = remote_apply;
INSERT INTO note VALUES (1007);
RESET synchronous_commit;
:end

\set key 'create table'
:begin
CREATE TABLE created (id integer);
:end

\set key 'drop table'
:begin
DROP TABLE created;
:end

\set key 'truncate'
:begin
TRUNCATE scratch;
:end

\set key 'copy'
:begin
COPY note (id) FROM stdin;
1008
\.
:end

\set key 'the value at commit counts: set local'
:begin
SET replica_pin.session_key = 'nobody';
BEGIN;
INSERT INTO note VALUES (1009);
SET LOCAL replica_pin.session_key = 'the value at commit counts: set local';
COMMIT;
:end
SELECT 'set local is over' , required > floor_lsn
FROM replica_pin.status, LATERAL (SELECT replica_pin.token_lsn(r.required) AS required FROM replica_pin.route('nobody') r) d;

\set key 'set_config in the statement that writes'
:begin
SET replica_pin.session_key = 'nobody';
WITH k AS MATERIALIZED (SELECT set_config('replica_pin.session_key', 'set_config in the statement that writes', true))
INSERT INTO note SELECT 1010 FROM k;
:end

\set key 'capture off'
:begin
SET replica_pin.capture = off;
INSERT INTO note VALUES (1011);
:end

\set key 'deferred trigger sets the key'
CREATE FUNCTION set_key() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN PERFORM replica_pin.pin('deferred trigger sets the key'); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER deferred AFTER INSERT ON note
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION set_key();
:begin
SET replica_pin.session_key = '';
INSERT INTO note VALUES (1012);
:end
DROP TRIGGER deferred ON note;

\set key 'on commit delete rows'
CREATE TEMP TABLE emptied (id integer) ON COMMIT DELETE ROWS;
:begin
BEGIN;
INSERT INTO emptied VALUES (1);
COMMIT;
:end

--
-- pin() inside a transaction
--
\set QUIET off
\set ECHO all
\pset tuples_only off
\pset format aligned
SET replica_pin.session_key = '';
RESET replica_pin.capture;

-- after the write: the token is not known yet, the commit pins
BEGIN;
INSERT INTO note VALUES (1100);
SELECT replica_pin.pin('pin after the write') IS NULL AS "no token yet";
COMMIT;
-- before the write
BEGIN;
SELECT replica_pin.pin('pin before the write') IS NOT NULL AS "a token";
INSERT INTO note VALUES (1101);
COMMIT;
-- in a savepoint that is rolled back: arming stays
BEGIN;
SAVEPOINT s;
SELECT replica_pin.pin('pin in a savepoint') IS NOT NULL;
ROLLBACK TO s;
INSERT INTO note VALUES (1102);
COMMIT;
-- in a transaction that is rolled back, everything before counts, and no more
BEGIN;
INSERT INTO note VALUES (1103);
SELECT replica_pin.pin('pin and rollback') IS NULL;
SELECT pg_current_wal_insert_lsn() AS before_rollback \gset
ROLLBACK;
-- two keys, one of them twice
BEGIN;
INSERT INTO note VALUES (1104);
SELECT replica_pin.pin_all(ARRAY['pin_all one', 'pin_all two', 'pin_all one']) IS NULL;
COMMIT;
-- AND CHAIN: the next transaction is another
BEGIN;
INSERT INTO note VALUES (1105);
SELECT replica_pin.pin('chain, first') IS NULL;
COMMIT AND CHAIN;
INSERT INTO note VALUES (1106);
SELECT replica_pin.pin('chain, second') IS NULL;
COMMIT;

-- Each is pinned at the end of a commit record, but for the one rolled back.
SELECT key, EXISTS (
  SELECT FROM capture_log l,
    pg_get_wal_records_info(l.before, pg_current_wal_flush_lsn()) w
  WHERE l.session_key = 'insert' AND w.record_type ~ '^COMMIT'
    AND w.end_lsn = replica_pin.token_lsn((replica_pin.route(key)).required)) AS "at a commit"
FROM unnest(ARRAY['pin after the write', 'pin before the write', 'pin in a savepoint',
  'pin and rollback', 'pin_all one', 'pin_all two', 'chain, first', 'chain, second']) key;
SELECT (replica_pin.route('pin after the write')).required < (replica_pin.route('pin before the write')).required
   AND (replica_pin.route('pin before the write')).required < (replica_pin.route('pin in a savepoint')).required AS "each its own";
SELECT replica_pin.token_lsn((replica_pin.route('pin and rollback')).required) <= :'before_rollback' AS "the rollback pins nothing";
SELECT (replica_pin.route('chain, first')).required < (replica_pin.route('chain, second')).required AS "each its own";
SELECT (replica_pin.route('pin_all one')).required = (replica_pin.route('pin_all two')).required AS "the same commit";

-- A procedure that commits several times pins where it asks to.
CREATE PROCEDURE write_three() LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1..3 LOOP
    INSERT INTO note VALUES (1200 + i);
    PERFORM replica_pin.pin('procedure ' || i);
    COMMIT;
  END LOOP;
END $$;
CALL write_three();
DO $$
BEGIN
  PERFORM set_config('replica_pin.session_key', 'do block', false);
  INSERT INTO note VALUES (1300);
  COMMIT;
  PERFORM set_config('replica_pin.session_key', '', false);
END $$;
SELECT (replica_pin.route('procedure 1')).required < (replica_pin.route('procedure 2')).required
   AND (replica_pin.route('procedure 2')).required < (replica_pin.route('procedure 3')).required
   AND (replica_pin.route('procedure 3')).required < (replica_pin.route('do block')).required AS "one after the other";

-- A decision inside a transaction that has written
BEGIN;
SELECT reason FROM replica_pin.route('insert');
INSERT INTO note VALUES (1400);
SELECT replica, reason, replicas, required FROM replica_pin.route('insert');
SELECT replica_pin.is_pinned('insert'), replica_pin.is_any_pinned(ARRAY['insert']);
ROLLBACK;

-- Prepared transactions
BEGIN;
INSERT INTO note VALUES (1500);
SELECT replica_pin.pin('prepared') IS NULL;
PREPARE TRANSACTION 'p1';
SET replica_pin.session_key = 'prepares';
BEGIN;
INSERT INTO note VALUES (1501);
PREPARE TRANSACTION 'p2';
SET replica_pin.session_key = 'commits prepared';
COMMIT PREPARED 'p2';
SET replica_pin.session_key = '';
SELECT key, replica_pin.token_lsn((replica_pin.route(key)).required) > floor_lsn AS pinned
FROM unnest(ARRAY['prepares', 'commits prepared']) key, replica_pin.status;

-- Nothing is left pending, and commits without a key are counted.
SELECT pending_keys FROM replica_pin.status;
SELECT unkeyed_commits AS before FROM replica_pin.status \gset
INSERT INTO note VALUES (1600);
SELECT unkeyed_commits - :before AS "counted: the INSERT" FROM replica_pin.status;
SELECT unkeyed_commits AS before FROM replica_pin.status \gset
SET replica_pin.capture = off;
INSERT INTO note VALUES (1601);
RESET replica_pin.capture;
SELECT count(*) FROM note WHERE id = 1601;
SELECT unkeyed_commits - :before AS "not counted: capture is off" FROM replica_pin.status;

DROP TABLE note, scratch, capture_log;
DROP SEQUENCE number;
DROP FUNCTION capture_verdict, set_key;
DROP PROCEDURE write_three;
