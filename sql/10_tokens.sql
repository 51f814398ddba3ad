--
-- Tokens, and the calls that compare one with the server asked.
--
\pset null (null)

-- A token is of this server, its timeline, and a position that covers
-- everything flushed before.
SELECT pg_current_wal_flush_lsn() AS flushed \gset
SELECT replica_pin.current_token() AS token \gset
SELECT pg_current_wal_insert_lsn() AS inserted \gset
SELECT :'token' ~ '^[0-9A-F]{16}-[0-9A-F]{8}-[0-9A-F]{16}$' AS is_token,
       :'token' = test.token(replica_pin.token_lsn(:'token')) AS is_ours,
       replica_pin.token_lsn(:'token') >= :'flushed' AS covers_the_past,
       replica_pin.token_lsn(:'token') <= :'inserted' AS not_the_future;

-- It covers a commit whose answer we have, also an asynchronous one.
SET synchronous_commit = off;
INSERT INTO test.note VALUES (1);
SELECT pg_current_wal_insert_lsn() AS inserted \gset
RESET synchronous_commit;
SELECT replica_pin.current_token() > :'token' AS moved,
       replica_pin.token_lsn(replica_pin.current_token()) + 40 >= :'inserted'
       AS covers_it;

-- Its position is that of the last record's end, not where the next record will
-- start: nothing ever ends right behind the header of a segment.
SELECT pg_switch_wal() IS NOT NULL AS switched;
SELECT (replica_pin.token_lsn(replica_pin.current_token()) - '0/0') %
       pg_size_bytes(current_setting('wal_segment_size')) <> 40 AS is_an_end;

--
-- token_lsn: the position of a token, NULL for what is none.  As a number: its
-- text is another one from PostgreSQL 19 on.
--
SELECT token, replica_pin.token_lsn(token) - '0/0' AS token_lsn
FROM (VALUES
    (1, '6A93C1F0D2B45E78-00000001-00000000016B3748'),
    (2, '6a93c1f0d2b45e78-0000000a-00000000016b3748'),
    (3, '6A93c1f0D2b45e78-0000000A-ABCDEF00016b3748'),
    (4, '0000000000000000-00000001-0000000000000001'),
    (5, 'FFFFFFFFFFFFFFFF-FFFFFFFF-FFFFFFFFFFFFFFFF'),
    -- no timeline and no position has this number
    (6, '6A93C1F0D2B45E78-00000000-00000000016B3748'),
    (7, '6A93C1F0D2B45E78-00000001-0000000000000000'),
    -- one character less, one more
    (8, '6A93C1F0D2B45E78-00000001-00000000016B374'),
    (9, '6A93C1F0D2B45E78-00000001-00000000016B37480'),
    (10, ' 6A93C1F0D2B45E78-00000001-00000000016B3748'),
    (11, '6A93C1F0D2B45E78-00000001-00000000016B3748 '),
    (12, E'6A93C1F0D2B45E78-00000001-00000000016B3748\n'),
    -- the right length, one wrong character
    (13, '6A93C1F0D2B45E78-00000001-00000000016B374G'),
    (14, 'GA93C1F0D2B45E78-00000001-00000000016B3748'),
    (15, '6A93C1F0D2B45E78-0000000x-00000000016B3748'),
    (16, '6A93C1F0D2B45E78 00000001-00000000016B3748'),
    (17, '6A93C1F0D2B45E78-00000001+00000000016B3748'),
    (18, '6A93C1F0D2B45E78-00000001-+0000000016B3748'),
    (19, '6A93C1F0D2B45E78-00000001-0x000000016B3748'),
    (20, '6A93C1F0D2B45E78-00000001-0000000/016B3748'),
    (21, '6A93C1F0D2B45E7-800000001-00000000016B3748'),
    -- other things that applications carry
    (22, '0/16B3748'),
    (23, ''),
    (24, NULL),
    (25, 'null'),
    (26, '1719230400.25'),
    (27, '{"token": "6A93C1F0D2B45E78-00000001-00000"}')
) AS v(n, token)
ORDER BY n;

-- As long as a token, but in other characters, and far longer.
SELECT replica_pin.token_lsn(repeat('é', 21)) AS accents,
       replica_pin.token_lsn(repeat('A', 1000000)) AS long;

-- Of any text type.
SELECT replica_pin.token_lsn(:'token'::varchar) = replica_pin.token_lsn(:'token')
       AS from_varchar,
       replica_pin.token_lsn(:'token'::char(42)) = replica_pin.token_lsn(:'token')
       AS from_char;

-- The order of tokens is the order of their positions, in this database's
-- collation and in C, for GREATEST and max too.
CREATE TEMPORARY TABLE position (lsn pg_lsn, token text);
INSERT INTO position
SELECT lsn, test.token(lsn)
FROM (SELECT '0/0'::pg_lsn + (2::numeric ^ bit + delta) AS lsn
      FROM generate_series(1, 63) bit, generate_series(-1, 1) delta) s;
SELECT count(*) AS pairs,
       count(*) FILTER (WHERE (a.token < b.token) IS DISTINCT FROM
                              (a.lsn < b.lsn)) AS out_of_order,
       count(*) FILTER (WHERE (a.token COLLATE "C" < b.token COLLATE "C")
                              IS DISTINCT FROM (a.lsn < b.lsn)) AS out_of_order_c,
       count(*) FILTER (WHERE replica_pin.token_lsn(greatest(a.token, b.token))
                              <> greatest(a.lsn, b.lsn)) AS not_the_greatest
FROM position a, position b;
SELECT replica_pin.token_lsn(max(token)) = max(lsn) AS greatest_by_token
FROM position;

--
-- current_token in a transaction that has written: its commit has no position.
--
BEGIN;
SELECT replica_pin.current_token() >= :'token' AS before_writing;
INSERT INTO test.note VALUES (2);
\x on
SELECT * FROM test.outcome('SELECT replica_pin.current_token()');
\x off
COMMIT;
SELECT replica_pin.current_token() > :'token' AS after_commit;

-- What it wrote may have been taken back: the transaction still counts.
BEGIN;
SAVEPOINT before;
INSERT INTO test.note VALUES (3);
ROLLBACK TO before;
SELECT code FROM test.outcome('SELECT replica_pin.current_token()');
ROLLBACK;

-- A transaction that only reads, or reads only, may ask.
BEGIN READ ONLY;
SELECT count(*) FROM test.note;
SELECT replica_pin.current_token() IS NOT NULL AS named;
COMMIT;

--
-- has_replayed: true for what this server has, false for all else.
--
SELECT kind, replica_pin.has_replayed(token)
FROM (VALUES
    (1, 'now', :'token'),
    (2, 'lower case', lower(:'token')),
    (3, 'long ago', test.token('0/1')),
    (4, 'future', test.token('FFFFFFFF/FFFFFFFF')),
    (5, 'a later timeline', test.token('0/1', 2)),
    (6, 'the last timeline', test.token('0/1', 4294967295)),
    (7, 'another cluster', test.token('0/1', NULL, '0000000000000001')),
    (8, 'no token', 'garbage'),
    (9, 'empty', ''),
    (10, 'null', NULL)
) AS v(n, kind, token)
ORDER BY n;
