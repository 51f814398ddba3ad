--
-- What CREATE EXTENSION makes.
--
CREATE EXTENSION replica_pin;

-- Members, as everything below sees them.  In later versions of PostgreSQL, row
-- types are members, too.
CREATE VIEW members AS
SELECT classid, objid,
       pg_describe_object(classid, objid, 0) COLLATE "C" AS object,
       obj_description(objid, classid::regclass::name) AS description
FROM pg_depend
WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
  AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'replica_pin')
  AND (classid <> 'pg_type'::regclass
       OR objid IN (SELECT reltype FROM pg_class WHERE relkind = 'c'));
SELECT object FROM members ORDER BY object;

-- Each says what it is for, and so do the schema and the extension.
SELECT count(*) > 0 AS has_members FROM members;
SELECT object FROM members WHERE description IS NULL;
SELECT obj_description('replica_pin'::regnamespace) AS schema_description;
SELECT obj_description(oid) AS extension_description
FROM pg_extension WHERE extname = 'replica_pin';

-- Each argument can be named in a call.
SELECT oid::regprocedure
FROM pg_proc
WHERE pronamespace = 'replica_pin'::regnamespace
  AND pronargs > 0
  AND (proargnames IS NULL OR '' = ANY (proargnames));

-- Nothing is in the schema that is not a member.
SELECT oid::regprocedure
FROM pg_proc
WHERE pronamespace = 'replica_pin'::regnamespace
  AND oid NOT IN (SELECT objid FROM members WHERE classid = 'pg_proc'::regclass);

-- Deciding and recording is volatile, and recording is for the leader alone.
-- NULL is an argument like any other.  Everything runs as its caller.
SELECT oid::regprocedure::text COLLATE "C" AS routine,
       CASE provolatile WHEN 'v' THEN 'volatile' WHEN 's' THEN 'stable'
           ELSE 'immutable' END AS volatility,
       CASE proparallel WHEN 'u' THEN 'unsafe' WHEN 'r' THEN 'restricted'
           ELSE 'safe' END AS parallel,
       proisstrict AS strict, prosecdef AS definer, proleakproof AS leakproof
FROM pg_proc
WHERE pronamespace = 'replica_pin'::regnamespace
ORDER BY 1;

-- What they take and what they answer.
\pset format unaligned
SELECT oid::regprocedure::text COLLATE "C" AS routine,
       pg_get_function_arguments(oid) AS arguments,
       pg_get_function_result(oid) AS result
FROM pg_proc
WHERE pronamespace = 'replica_pin'::regnamespace
  AND proname NOT IN ('replica_rows', 'status_row')
ORDER BY 1;
\pset format aligned

-- It has one place, and it is there once.
ALTER EXTENSION replica_pin SET SCHEMA public;
CREATE EXTENSION replica_pin;

DROP VIEW members;

--
-- What the other tests share.
--
CREATE SCHEMA test;

-- Waits until a condition holds.
CREATE PROCEDURE test.wait_for(condition text) LANGUAGE plpgsql AS $$
DECLARE
    deadline timestamptz := clock_timestamp() + interval '60 s';
    holds boolean;
BEGIN
    LOOP
        EXECUTE 'SELECT ' || condition INTO holds;
        EXIT WHEN holds;
        IF clock_timestamp() > deadline THEN
            RAISE EXCEPTION 'gave up waiting for: %', condition;
        END IF;
    END LOOP;
END
$$;

-- What becomes of a statement.
CREATE FUNCTION test.outcome(statement text, OUT code text,
    OUT message text, OUT detail text, OUT hint text)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
    code := '00000';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE,
        message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
        hint = PG_EXCEPTION_HINT;
END
$$;

-- A token, written without replica_pin's help.
CREATE FUNCTION test.token(lsn pg_lsn, timeline bigint = NULL,
    system_identifier text = NULL)
RETURNS text LANGUAGE sql STABLE AS $$
    SELECT concat_ws('-',
        coalesce(system_identifier,
            (SELECT lpad(upper(to_hex(s.system_identifier)), 16, '0')
             FROM pg_control_system() s)),
        lpad(upper(to_hex(coalesce(timeline,
            (SELECT c.timeline_id FROM pg_control_checkpoint() c)))), 8, '0'),
        lpad(split_part(lsn::text, '/', 1), 8, '0') ||
        lpad(split_part(lsn::text, '/', 2), 8, '0'))
$$;

-- Inserts WAL, so that what comes later has another position.
CREATE PROCEDURE test.write_wal() LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_logical_emit_message(false, 'test', 'a position of its own');
END
$$;

CREATE TABLE test.note (id integer, body text);
CREATE ROLE regress_rpin_app;
CREATE ROLE regress_rpin_monitor IN ROLE pg_monitor;
GRANT USAGE ON SCHEMA test TO PUBLIC;

-- The sampler has started and knows this server's timelines.
CALL test.wait_for($$ (SELECT sampler_pid IS NOT NULL FROM replica_pin.status)
    AND (SELECT reason FROM replica_pin.route(token => test.token('0/1', 2)))
        <> 'samples_stale' $$);
