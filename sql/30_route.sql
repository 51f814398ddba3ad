--
-- Deciding, on a primary without replicas: every reason that has no need of one.
--
\pset null (null)
SELECT replica_pin.current_token() AS old \gset
CALL test.write_wal();
SELECT replica_pin.pin('user:1') AS pinned \gset
CALL test.write_wal();
SELECT replica_pin.current_token() AS new \gset

-- What is required, by name.
CREATE FUNCTION test.name_of(token text, old text, pinned text, new text)
RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE token WHEN old THEN 'old' WHEN pinned THEN 'pinned'
        WHEN new THEN 'new' ELSE token END
$$;

-- One key, one token: the greatest of what is given.
SELECT n, kind, replica, reason, replicas,
       test.name_of(required, :'old', :'pinned', :'new') AS required
FROM (VALUES
    (1, 'nothing', NULL, NULL),
    (2, 'key', 'user:1', NULL),
    (3, 'token', NULL, :'old'),
    (4, 'token in lower case', NULL, lower(:'old')),
    (5, 'key, older token', 'user:1', :'old'),
    (6, 'key, newer token', 'user:1', :'new'),
    (7, 'empty key', '', NULL),
    (8, 'empty key, token', '', :'new'),
    (9, 'empty token', NULL, ''),
    (10, 'no token', NULL, 'garbage'),
    (11, 'key, no token', 'user:1', 'garbage'),
    (12, 'a position without identity', NULL, '0/1'),
    (13, 'another cluster', NULL, test.token('0/1', 1, '0000000000000001')),
    (14, 'key, another cluster', 'user:1', test.token('0/1', 1, '0000000000000001')),
    (15, 'a later timeline', NULL, test.token('0/1', 2)),
    (16, 'the future', NULL, test.token('FFFFFFFF/FFFFFFFF')),
    (17, 'key, the future', 'user:1', test.token('FFFFFFFF/FFFFFFFF')),
    (18, 'empty key, the future', '', test.token('FFFFFFFF/FFFFFFFF')),
    (19, '1 MB of token', NULL, repeat('A', 1048576))
) AS v(n, kind, key, token), replica_pin.route(key, token)
ORDER BY n;

-- Several keys.
SELECT n, keys, kind, replica, reason, replicas,
       test.name_of(required, :'old', :'pinned', :'new') AS required
FROM (VALUES
    (1, '{user:1}'::text[], NULL, NULL),
    (2, '{nobody,user:1}', NULL, NULL),
    (3, '{user:1,nobody}', 'older token', :'old'),
    (4, '{user:1,nobody}', 'newer token', :'new'),
    (5, '{{nobody,none},{user:1,never}}', NULL, NULL),
    (6, '[7:8]={nobody,user:1}', NULL, NULL),
    (7, NULL, NULL, NULL),
    (8, NULL, 'token', :'new'),
    (9, '{}', NULL, NULL),
    (10, '{}', 'token', :'new'),
    (11, '{NULL}', NULL, NULL),
    (12, '{user:1,NULL}', NULL, NULL),
    (13, '{NULL,user:1}', 'token', :'new'),
    (14, '{user:1,""}', NULL, NULL),
    (15, '{user:1}', 'no token', 'garbage'),
    (16, '{user:1}', 'the future', test.token('FFFFFFFF/FFFFFFFF'))
) AS v(n, keys, kind, token), replica_pin.route_all(keys, token)
ORDER BY n;

-- Called as people call it.
SELECT reason FROM replica_pin.route();
SELECT reason, required = :'new' AS new FROM replica_pin.route(token => :'new');
SELECT reason, required = :'pinned' AS pinned
FROM replica_pin.route(session_key => 'user:1');
SELECT reason, required = :'new' AS new
FROM replica_pin.route(token => :'new', session_key => 'user:1');
SELECT reason, required = :'new' AS new
FROM replica_pin.route_all(ARRAY['user:1'], token => :'new');
SELECT reason, required = :'pinned' AS pinned
FROM replica_pin.route_all(session_keys => '{user:1}');
SELECT (replica_pin.route('user:1')).reason;
SELECT replica_pin.route('') AS whole;
SELECT to_jsonb(replica_pin.route_all('{}')) AS json;
SELECT key, reason
FROM (VALUES ('user:1'), (''), (NULL)) v(key), replica_pin.route(key);
SELECT replica IS NULL AS primary, a, b, c IS NOT NULL AS c
FROM replica_pin.route('user:1') AS r(replica, a, b, c);
PREPARE decide(text, text) AS
SELECT replica, reason, replicas FROM replica_pin.route($1, $2);
EXECUTE decide('user:1', NULL);
EXECUTE decide(NULL, NULL);
DEALLOCATE decide;

-- An array that came as a text is no session key: nothing is in sync by accident.
SELECT reason, required < :'pinned' AS of_another_key
FROM replica_pin.route('{user:1}');

-- What this transaction has written is on no replica.
BEGIN;
INSERT INTO test.note VALUES (1);
SELECT kind, replica, reason, replicas,
       test.name_of(required, :'old', :'pinned', :'new') AS required
FROM (VALUES
    (1, 'nothing', NULL, NULL),
    (2, 'key', 'user:1', NULL),
    (3, 'key, token', 'user:1', :'new'),
    (4, 'key, no token', 'user:1', 'garbage')
) AS v(n, kind, key, token), replica_pin.route(key, token)
ORDER BY n;
SELECT reason FROM replica_pin.route_all('{user:1}');
SELECT replica_pin.is_pinned('user:1'), replica_pin.is_any_pinned('{user:1}');
COMMIT;

-- is_pinned: true unless every replica is known to have replayed.
SELECT kind, replica_pin.is_pinned(key)
FROM (VALUES
    (1, 'pinned', 'user:1'),
    (2, 'never seen', 'nobody'),
    (3, 'empty', ''),
    (4, 'null', NULL),
    (5, '1 MB', repeat('x', 1048576))
) AS v(n, kind, key)
ORDER BY n;
SELECT keys, replica_pin.is_any_pinned(keys)
FROM (VALUES
    (1, '{user:1}'::text[]),
    (2, '{nobody,user:1}'),
    (3, '{nobody}'),
    (4, '{{nobody,none},{user:1,never}}'),
    (5, '{nobody,NULL}'),
    (6, '{nobody,""}'),
    (7, '{}'),
    (8, NULL)
) AS v(n, keys)
ORDER BY n;
SELECT replica_pin.is_pinned(session_key => 'user:1'),
       replica_pin.is_any_pinned(session_keys => '{user:1}');

--
-- A replica that cannot be sampled: nothing listens on this port.
--
ALTER SYSTEM SET replica_pin.replicas = 'r1=127.0.0.1:1';
SELECT pg_reload_conf();
CALL test.wait_for($$ EXISTS (SELECT FROM replica_pin.replicas
    WHERE name = 'r1' AND failures > 0) $$);

SELECT n, kind, replica, reason, replicas,
       test.name_of(required, :'old', :'pinned', :'new') AS required
FROM (VALUES
    (1, 'nothing', NULL, NULL),
    (2, 'key', 'user:1', NULL),
    (3, 'token', NULL, :'old'),
    (4, 'key, newer token', 'user:1', :'new'),
    (5, 'empty key', '', NULL),
    (6, 'no token', NULL, 'garbage'),
    (7, 'another cluster', NULL, test.token('0/1', 1, '0000000000000001')),
    (8, 'a later timeline', NULL, test.token('0/1', 2)),
    (9, 'the future', NULL, test.token('FFFFFFFF/FFFFFFFF'))
) AS v(n, kind, key, token), replica_pin.route(key, token)
ORDER BY n;
SELECT replica, reason, replicas,
       test.name_of(required, :'old', :'pinned', :'new') AS required
FROM replica_pin.route_all('{nobody,user:1}');
SELECT replica_pin.is_pinned('user:1') AS pinned,
       replica_pin.is_pinned('nobody') AS never_seen,
       replica_pin.is_pinned(NULL) AS null,
       replica_pin.is_any_pinned('{nobody,none}') AS never_seen_any;

-- Not enforcing decisions does not invent a replica that could be read.
SET replica_pin.enforce_percent = 0;
SELECT kind, replica, reason, replicas
FROM (VALUES
    (1, 'key', 'user:1', NULL),
    (2, 'empty key', '', NULL),
    (3, 'no token', NULL, 'garbage'),
    (4, 'the future', NULL, test.token('FFFFFFFF/FFFFFFFF'))
) AS v(n, kind, key, token), replica_pin.route(key, token)
ORDER BY n;
SELECT replica_pin.is_pinned('user:1');
RESET replica_pin.enforce_percent;

ALTER SYSTEM RESET replica_pin.replicas;
SELECT pg_reload_conf();
CALL test.wait_for($$ NOT EXISTS (SELECT FROM replica_pin.replicas) $$);
SELECT replica, reason, replicas FROM replica_pin.route('user:1');

DROP FUNCTION test.name_of(text, text, text, text);
