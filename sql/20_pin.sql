--
-- Recording: pin, pin_all.  What was recorded shows in what route() requires.
--
\pset null (null)
CREATE FUNCTION test.required(session_key text) RETURNS text LANGUAGE sql AS
    'SELECT required FROM replica_pin.route(session_key)';

-- A pin covers everything committed before it, and answers the token of that.
SELECT replica_pin.current_token() AS before \gset
INSERT INTO test.note VALUES (1);
SELECT pg_current_wal_flush_lsn() AS flushed \gset
SELECT replica_pin.pin('user:1') AS token \gset
SELECT :'token' > :'before' AS covers_the_write,
       replica_pin.token_lsn(:'token') >= :'flushed' AS covers_what_is_flushed,
       test.required('user:1') = :'token' AS is_required,
       test.required('user:2') < :'token' AS is_required_of_others;

-- The next pin of the key replaces it.
CALL test.write_wal();
SELECT replica_pin.pin(session_key => 'user:1') AS next \gset
SELECT :'next' > :'token' AS moved, test.required('user:1') = :'next' AS is_required;

--
-- Keys: any text but none.
--
\x on
SELECT statement, outcome.*
FROM (VALUES
    (1, 'SELECT replica_pin.pin(NULL)'),
    (2, 'SELECT replica_pin.pin('''')')
) AS v(n, statement), test.outcome(statement)
ORDER BY n;
\x off

-- A key counts as a whole, every byte of it.
CREATE TABLE test.key (n integer, kind text, key text, other text);
INSERT INTO test.key VALUES
    (1, 'one character', 'k', 'l'),
    (2, 'upper case', 'User:1', 'user:1 '),
    (3, 'blanks', ' ', '  '),
    (4, 'control characters', E'\x01\t', E'\x01\n'),
    (5, 'an accent', 'utilisateur:à', 'utilisateur:a'),
    (6, 'a decomposed accent', E'utilisateur:e\xCC\x81', 'utilisateur:é'),
    (7, '10 kB, its end', repeat('x', 10239) || 'a', repeat('x', 10239) || 'b'),
    (8, '1 MB, its end', repeat('x', 1048575) || 'a', repeat('x', 1048575) || 'b'),
    (9, '1 MB, its beginning', 'a' || repeat('y', 1048575), 'b' || repeat('y', 1048575));
SELECT kind, octet_length(key) AS bytes,
       test.required(key) = pinned AS is_required,
       test.required(other) < pinned AS other_is_free
FROM test.key, replica_pin.pin(key) AS pinned
ORDER BY n;

-- Stored out of line and compressed it is the same key.
SELECT replica_pin.pin(key) AS stored FROM test.key WHERE n = 8 \gset
SELECT test.required(repeat('x', 1048575) || 'a') = :'stored' AS same_key;
DROP TABLE test.key;

-- A transaction that may not write may pin.
BEGIN READ ONLY;
SELECT replica_pin.pin('read only') IS NOT NULL AS pinned;
COMMIT;

-- A pin is not taken back with its transaction.
CALL test.write_wal();
BEGIN;
SELECT replica_pin.pin('rolled back') AS token \gset
ROLLBACK;
SELECT test.required('rolled back') = :'token' AS stays;

--
-- pin_all: all or nothing.
--
CALL test.write_wal();
SELECT replica_pin.pin_all(ARRAY['note:1', 'note:2', 'note:1']) AS token \gset
SELECT test.required('note:1') = :'token' AS note_1,
       test.required('note:2') = :'token' AS note_2,
       test.required('note:3') < :'token' AS note_3_is_free;

-- An array as a driver sends it, one with other bounds, one of two dimensions.
CALL test.write_wal();
SELECT replica_pin.pin_all('{"note:1", note:3}') AS token \gset
SELECT test.required('note:1') = :'token' AS note_1,
       test.required('note:2') < :'token' AS note_2_is_free,
       test.required('note:3') = :'token' AS note_3;
CALL test.write_wal();
SELECT replica_pin.pin_all(session_keys => '[7:8]={note:1,note:2}') AS token \gset
SELECT test.required('note:1') = :'token' AS note_1,
       test.required('note:2') = :'token' AS note_2;
CALL test.write_wal();
SELECT replica_pin.pin_all(ARRAY[['note:1', 'note:2'], ['note:3', 'note:4']]) AS token \gset
SELECT n, test.required('note:' || n) = :'token' AS pinned
FROM generate_series(1, 4) n;
CALL test.write_wal();
SELECT replica_pin.pin_all(array_agg('many:' || n)) AS token
FROM generate_series(1, 1000) n \gset
SELECT count(*) FILTER (WHERE test.required('many:' || n) >= :'token') AS pinned
FROM generate_series(1, 1000) n;

\x on
SELECT statement, outcome.*
FROM (VALUES
    (1, 'SELECT replica_pin.pin_all(NULL)'),
    (2, 'SELECT replica_pin.pin_all(''{}'')'),
    (3, 'SELECT replica_pin.pin_all(''{NULL}'')'),
    (4, 'SELECT replica_pin.pin_all(''{""}'')'),
    (5, 'SELECT replica_pin.pin_all(''{all:1,NULL,all:3}'')'),
    (6, 'SELECT replica_pin.pin_all(''{all:1,all:2,""}'')'),
    (7, 'SELECT replica_pin.pin_all(''{{all:1,all:2},{all:3,NULL}}'')')
) AS v(n, statement), test.outcome(statement)
ORDER BY n;
\x off

-- None of them recorded anything, not even the keys before the bad one.
SELECT n, test.required('all:' || n) < replica_pin.current_token() AS free,
       test.required('all:' || n) = test.required('never seen') AS never_seen
FROM generate_series(1, 3) n;

--
-- pin(key, token): a position that came from elsewhere.
--
SELECT replica_pin.current_token() AS old \gset
CALL test.write_wal();
SELECT replica_pin.current_token() AS new \gset
CALL test.write_wal();

-- It is recorded as it is, and answered as this server writes it.
SELECT replica_pin.pin('job:1', :'old') = :'old' AS old,
       test.required('job:1') = :'old' AS is_required;
SELECT replica_pin.pin('job:1', lower(:'new')) = :'new' AS new,
       test.required('job:1') = :'new' AS is_required;
SELECT replica_pin.pin(session_key => 'job:2', token => :'old') = :'old' AS old,
       test.required('job:2') = :'old' AS is_required;

-- It never lowers what the key needs already, whoever recorded that.
SELECT replica_pin.pin('job:1', :'old') = :'old' AS old,
       test.required('job:1') = :'new' AS stays;
SELECT replica_pin.pin('job:2') AS token \gset
SELECT replica_pin.pin('job:2', :'new') = :'new' AS new,
       test.required('job:2') = :'token' AS stays;

-- Nor what every key needs.
SELECT replica_pin.pin('job:3', test.token('0/1')) = test.token('0/1') AS old,
       test.required('job:3') = test.required('never seen') AS never_seen;

\x on
SELECT statement, outcome.*
FROM (VALUES
    (1, 'SELECT replica_pin.pin(''job:1'', NULL)'),
    (2, 'SELECT replica_pin.pin(''job:1'', '''')'),
    (3, 'SELECT replica_pin.pin(''job:1'', ''garbage'')'),
    (4, 'SELECT replica_pin.pin(''job:1'', ''0/16B3748'')'),
    (5, 'SELECT replica_pin.pin(''job:1'', test.token(''FFFFFFFF/FFFFFFFF''))'),
    (6, 'SELECT replica_pin.pin(''job:1'', test.token(''0/1'', 2))'),
    (7, 'SELECT replica_pin.pin(''job:1'', test.token(''0/1'', 1, ''0000000000000001''))'),
    (8, 'SELECT replica_pin.pin(NULL, test.token(''0/1''))'),
    (9, 'SELECT replica_pin.pin('''', test.token(''0/1''))'),
    (10, 'SELECT replica_pin.pin(NULL, NULL)')
) AS v(n, statement), test.outcome(statement)
ORDER BY n;
\x off
SELECT test.required('job:1') = :'new' AS nothing_changed;

-- One byte beyond the end of WAL is the future, the end is not.
SELECT replica_pin.pin('job:1', replica_pin.current_token()) IS NOT NULL AS the_end;
SELECT code, message
FROM test.outcome($$ SELECT replica_pin.pin('job:1',
    test.token(pg_current_wal_insert_lsn() + 1000000)) $$);

DROP FUNCTION test.required(text);
