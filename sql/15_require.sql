--
-- CALL require(token): the proof that what follows sees what the token covers.
--
SELECT replica_pin.current_token() AS token \gset

-- Silent when it does, in either case.
CALL replica_pin.require(:'token');
CALL replica_pin.require(lower(:'token'));
CALL replica_pin.require(token => test.token('0/1'));
\echo :SQLSTATE

-- RP002 for what cannot be compared here.
CALL replica_pin.require(NULL);
\echo :SQLSTATE
CALL replica_pin.require('');
\echo :SQLSTATE
CALL replica_pin.require('garbage');
\echo :SQLSTATE
CALL replica_pin.require(test.token('FFFFFFFF/FFFFFFFF'));
\echo :SQLSTATE
CALL replica_pin.require(test.token('0/1', 2));
\echo :SQLSTATE
-- (the detail names this server's system identifier)
\set VERBOSITY terse
CALL replica_pin.require(test.token('0/1', NULL, '0000000000000001'));
\echo :SQLSTATE
\set VERBOSITY default

-- It waits for replay alone: a primary has nothing to wait for.
SET statement_timeout = '30s';
CALL replica_pin.require(:'token', 600000);
CALL replica_pin.require(token => :'token', timeout => NULL);
CALL replica_pin.require(test.token('0/1', 2), timeout => 600000);
\echo :SQLSTATE
CALL replica_pin.require(:'token', timeout => -1);
\echo :SQLSTATE
RESET statement_timeout;

-- It is no function.
SELECT replica_pin.require('garbage');
\echo :SQLSTATE

--
-- What holds no snapshot goes.
--
BEGIN;
CALL replica_pin.require(:'token');
SELECT count(*) FROM test.note;
CALL replica_pin.require(:'token');
SELECT count(*) FROM test.note;
INSERT INTO test.note VALUES (1);
CALL replica_pin.require(:'token');
SELECT count(*) FROM test.note;
ROLLBACK;

-- One message, one transaction: what stands behind a failure is not run.
CALL replica_pin.require(:'token') \; SELECT 'read behind it' AS then;
CALL replica_pin.require(NULL) \; SELECT 'never read' AS then;
\echo :SQLSTATE

-- A cursor that is closed again, or holds its rows, holds no snapshot.
BEGIN;
DECLARE closed CURSOR FOR SELECT body FROM test.note;
FETCH closed;
CLOSE closed;
CALL replica_pin.require(:'token');
COMMIT;
BEGIN;
DECLARE holds CURSOR WITH HOLD FOR SELECT count(*) FROM test.note;
COMMIT;
CALL replica_pin.require(:'token');
FETCH holds;
CLOSE holds;

-- In a DO block and in a procedure each statement has its own snapshot.
DO $$
BEGIN
    CALL replica_pin.require(replica_pin.current_token());
    RAISE NOTICE 'behind it: % rows', (SELECT count(*) FROM test.note);
END
$$;
CREATE PROCEDURE test.read_behind(token text) LANGUAGE plpgsql AS $$
BEGIN
    CALL replica_pin.require(token);
    RAISE NOTICE 'behind it: % rows', (SELECT count(*) FROM test.note);
    COMMIT;
    CALL replica_pin.require(token);
END
$$;
CALL test.read_behind(:'token');
CALL test.read_behind(NULL);
\echo :SQLSTATE

--
-- What holds one is refused: 25001.
--
BEGIN ISOLATION LEVEL REPEATABLE READ;
CALL replica_pin.require(:'token');
\echo :SQLSTATE
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT count(*) FROM test.note;
CALL replica_pin.require(:'token');
\echo :SQLSTATE
ROLLBACK;

-- Before it looks at the token: the fault would be there with every token.
BEGIN ISOLATION LEVEL REPEATABLE READ;
CALL replica_pin.require(NULL);
\echo :SQLSTATE
ROLLBACK;

\set VERBOSITY terse
-- An open cursor.
BEGIN;
DECLARE open CURSOR FOR SELECT body FROM test.note;
CALL replica_pin.require(:'token');
\echo :SQLSTATE
ROLLBACK;

-- An exported snapshot.
BEGIN;
SELECT pg_export_snapshot() IS NOT NULL AS exported;
CALL replica_pin.require(:'token');
\echo :SQLSTATE
ROLLBACK;

-- A function shares the snapshot of its statement, in any language.
CREATE FUNCTION test.required(token text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    CALL replica_pin.require(token);
    RETURN true;
END
$$;
SELECT test.required(:'token');
\echo :SQLSTATE
CREATE PROCEDURE test.require_in_sql(token text) LANGUAGE sql
AS 'CALL replica_pin.require(token)';
CALL test.require_in_sql(:'token');
\echo :SQLSTATE
DO $$
BEGIN
    PERFORM test.required(replica_pin.current_token());
END
$$;
\echo :SQLSTATE

-- A DO block inside of a transaction block holds one all the time.
BEGIN;
DO $$
BEGIN
    CALL replica_pin.require(replica_pin.current_token());
END
$$;
\echo :SQLSTATE
ROLLBACK;

-- So does a loop over rows.
DO $$
DECLARE
    n integer;
BEGIN
    FOR n IN SELECT id FROM (VALUES (1), (2)) v(id) LOOP
        CALL replica_pin.require(replica_pin.current_token());
    END LOOP;
END
$$;
\echo :SQLSTATE

-- And a block that catches errors.
SELECT code
FROM test.outcome(format('CALL replica_pin.require(%L)', :'token'));
DO $$
BEGIN
    CALL replica_pin.require(replica_pin.current_token());
EXCEPTION WHEN division_by_zero THEN
    NULL;
END
$$;
\echo :SQLSTATE
\set VERBOSITY default

-- A refusal leaves nothing behind.
CALL replica_pin.require(:'token');
BEGIN;
SAVEPOINT before;
CALL replica_pin.require(NULL);
ROLLBACK TO before;
CALL replica_pin.require(:'token');
SELECT count(*) FROM test.note;
COMMIT;

DROP PROCEDURE test.require_in_sql(text);
DROP PROCEDURE test.read_behind(text);
DROP FUNCTION test.required(text);
