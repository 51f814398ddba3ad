--
-- explain() and check_setup(): a decision in all its parts, and what is wrong
-- with this server.
--
\pset null (null)

-- Explaining is never an error and counts nothing.
SELECT replica_pin.reset_stats();
SELECT item, verdict, detail FROM replica_pin.explain('never pinned');
SELECT replica_pin.pin('explain:1') AS token \gset
SELECT item, replica, verdict, lsn = replica_pin.token_lsn(:'token') AS "the token's",
       behind_bytes, sample_age
FROM replica_pin.explain('explain:1', :'token');
SELECT item, verdict FROM replica_pin.explain('');
SELECT item, verdict FROM replica_pin.explain('{explain:1}');
SELECT item, verdict FROM replica_pin.explain(NULL);
SELECT item, verdict, lsn FROM replica_pin.explain(NULL, 'no token');
SELECT item, verdict
FROM replica_pin.explain(NULL, '0000000000000001' || substr(:'token', 17));
SELECT item, verdict
FROM replica_pin.explain('explain:1', left(:'token', 26) || 'FFFFFFFFFFFFFFFF');
BEGIN;
SELECT pg_current_xact_id() IS NOT NULL AS has_written;
SELECT item, verdict FROM replica_pin.explain('explain:1', :'token');
ROLLBACK;
SELECT sum(enforced + not_enforced) AS counted FROM replica_pin.stat_decisions;

-- Left out of the rollout.
SET replica_pin.enforce_percent = 0;
SELECT verdict, detail FROM replica_pin.explain(NULL, 'no token') WHERE item = 'decision';
RESET replica_pin.enforce_percent;

-- This server has no replica.
SELECT * FROM replica_pin.check_setup();

-- Settings that are meant for a transaction or a trial, for everybody.
CREATE ROLE regress_setup;
SELECT current_database() AS database \gset
ALTER ROLE regress_setup SET replica_pin.session_key = 'everybody';
ALTER ROLE regress_setup SET work_mem = '4MB';
ALTER DATABASE :"database" SET replica_pin.session_key = '';
ALTER ROLE regress_setup SET replica_pin.capture = yes;
ALTER ROLE regress_setup SET replica_pin.enforce_percent = '0x64';
ALTER DATABASE :"database" SET replica_pin.capture = off;
ALTER ROLE regress_setup IN DATABASE :"database" SET replica_pin.enforce_percent = 10;
ALTER ROLE ALL SET replica_pin.capture = off;
SELECT severity, problem, replace(subject, current_database(), '(database)') AS subject, detail
FROM replica_pin.check_setup()
WHERE problem IN ('session_key_for_all', 'capture_off', 'not_enforced')
ORDER BY problem, subject COLLATE "C";
ALTER DATABASE :"database" RESET ALL;
ALTER ROLE ALL RESET replica_pin.capture;
DROP ROLE regress_setup;

-- Commits that nobody pins.
CREATE PROCEDURE test.commits(how_many integer) LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. how_many LOOP
        PERFORM pg_current_xact_id();
        COMMIT;
    END LOOP;
END
$$;
SELECT replica_pin.reset_stats();
CALL test.commits(900);
SELECT count(*) FROM replica_pin.check_setup() WHERE problem = 'unkeyed_commits';
CALL test.commits(200);
SELECT severity, subject, hint FROM replica_pin.check_setup() WHERE problem = 'unkeyed_commits';
SELECT replica_pin.reset_stats();
DROP PROCEDURE test.commits;
