--
-- Messages: stamp() and route_envelope(). There are no replicas here, so a
-- position that can be judged is answered with no_replicas and stands in
-- "required".
--
\pset null (null)
SELECT replica_pin.current_token() AS old \gset
CALL test.write_wal();
SELECT replica_pin.current_token() AS token \gset
SELECT replica_pin.token_lsn(:'token') AS lsn \gset

-- What stamp() adds, and what it leaves.
CREATE FUNCTION test.hide(message jsonb) RETURNS text LANGUAGE sql AS $$
  SELECT regexp_replace(message::text, '[0-9A-F]{16}-[0-9A-F]{8}-[0-9A-F]{16}', 'TOKEN', 'g')
$$;
SELECT test.hide(replica_pin.stamp('{"id": 1}'));
SELECT test.hide(replica_pin.stamp('{"id": 1}', 'request-1'));
SET replica_pin.correlation_id = 'request-2';
SELECT test.hide(replica_pin.stamp('{"id": 1}'));
SELECT test.hide(replica_pin.stamp('{"id": 1}', 'given'));
RESET replica_pin.correlation_id;
SELECT test.hide(replica_pin.stamp('{"correlation_id": "kept"}'));
SELECT test.hide(replica_pin.stamp('{"wal_locations": {"ci": "its own", "main": "older"}}'));
SELECT replica_pin.stamp('{"wal_locations": 1}');
SELECT replica_pin.stamp('[1]');
SELECT replica_pin.stamp('1');
SELECT replica_pin.stamp(NULL);
BEGIN;
CREATE TABLE written ();
SELECT replica_pin.stamp('{"id": 1}');
ROLLBACK;
CREATE TABLE triggered (id integer);
CREATE FUNCTION test.stamp_it() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN PERFORM replica_pin.stamp('{}'); RETURN NEW; END $$;
CREATE TRIGGER stamp_it AFTER INSERT ON triggered FOR EACH ROW EXECUTE FUNCTION test.stamp_it();
INSERT INTO triggered VALUES (1);
DROP TABLE triggered;
-- After the commit it covers that commit.
CREATE TABLE written (id integer);
SELECT pg_current_wal_insert_lsn() AS before \gset
INSERT INTO written VALUES (1);
SELECT replica_pin.token_lsn(replica_pin.stamp('{}') #>> '{wal_locations,main}') > :'before' AS covers;
DROP TABLE written;

-- Every form of envelope.
CREATE TEMP TABLE envelope (id serial, kind text, text text);
INSERT INTO envelope (kind, text) VALUES
  ('stamped', replica_pin.stamp('{"id": 1}', 'r')::text),
  ('a token', '{"wal_locations":{"main":"' || :'token' || '"}}'),
  ('in lower case', lower('{"wal_locations":{"main":"' || :'token' || '"}}')),
  ('a bare LSN', '{"wal_locations":{"main":"' || :'lsn' || '"}}'),
  ('with others', '{"wal_locations":{"ci":"x","main":"' || :'token' || '","sec":[1]}}'),
  ('escaped names', '{"wal\u005flocations":{"m\u0061in":"' || :'token' || '"}}'),
  ('escaped value', '{"wal_locations":{"main":"' || replace(:'lsn', '/', '\/') || '"}}'),
  ('blanks around', E'\n\t {"wal_locations" : {"main" : "' || :'token' || E'"} } \r\n'),
  ('payload that looks like ours', '{"a":{"wal_locations":{"main":"x"}},"wal_locations":{"main":"' || :'token' || '"},"b":[{"main":1}]}'),
  ('names nested one deeper', '{"wal_locations":{"x":{"main":"' || :'token' || '"}}}'),
  ('empty object', '{}'),
  ('an array', '[{"wal_locations":{"main":"' || :'token' || '"}}]'),
  ('a string', '"x"'),
  ('a number', '1'),
  ('locations null', '{"wal_locations":null}'),
  ('locations an array', '{"wal_locations":["' || :'token' || '"]}'),
  ('locations empty', '{"wal_locations":{}}'),
  ('only others', '{"wal_locations":{"ci":"' || :'token' || '"}}'),
  ('name in another case', '{"wal_locations":{"Main":"' || :'token' || '"}}'),
  ('value a number', '{"wal_locations":{"main":1}}'),
  ('value an object', '{"wal_locations":{"main":{"lsn":"0/1"}}}'),
  ('value null', '{"wal_locations":{"main":null}}'),
  ('value no position', '{"wal_locations":{"main":"soon"}}'),
  ('value empty', '{"wal_locations":{"main":""}}'),
  ('value 0/0', '{"wal_locations":{"main":"0/0"}}'),
  ('value too long', '{"wal_locations":{"main":"' || repeat('0', 100) || '"}}'),
  ('locations twice', '{"wal_locations":{"main":"' || :'token' || '"},"wal_locations":{"main":"' || :'token' || '"}}'),
  ('our name twice', '{"wal_locations":{"main":"' || :'token' || '","m\u0061in":"' || :'token' || '"}}'),
  ('doubled', '{"wal_locations":{"main":"0/1"}}{"wal_locations":{"main":"0/1"}}'),
  ('truncated', '{"wal_locations":{"main":"' || :'token' || '"'),
  ('empty', ''),
  ('not JSON', 'note 42'),
  ('a byte order mark', E'\uFEFF{}'),
  ('a zero', '{"a":"\u0000","wal_locations":{"main":"' || :'token' || '"}}'),
  ('a bad escape', '{"a":"\x","wal_locations":{"main":"' || :'token' || '"}}'),
  ('nested 64 deep', repeat('[', 64) || repeat(']', 64)),
  ('nested 65 deep', repeat('[', 65) || repeat(']', 65)),
  ('a million brackets', repeat('[', 1000000)),
  ('a million escapes', '{"a":"' || repeat('\n', 1000000) || '"}'),
  ('a megabyte', '{"wal_locations":{"main":"' || :'token' || '"},"a":"' || repeat('x', 1048576) || '"}'),
  ('another cluster', '{"wal_locations":{"main":"0000000000000001-00000001-0000000000000001"}}'),
  ('another timeline', '{"wal_locations":{"main":"' || overlay(:'token' placing '00000009' from 18 for 8) || '"}}'),
  ('the future', '{"wal_locations":{"main":"' || left(:'token', 26) || 'FFFFFFFFFFFFFFFF"}}'),
  ('the future, bare', '{"wal_locations":{"main":"FFFFFFFF/FFFFFFFF"}}'),
  ('NULL', NULL);
SELECT kind, replica, reason, replicas,
  CASE required WHEN :'token' THEN 'the token' ELSE left(required, 0) || 'another' END AS required
FROM envelope, replica_pin.route_envelope(text) ORDER BY id;

-- A byte beyond the end of WAL is the future, however near.
SELECT reason FROM replica_pin.route_envelope(
  '{"wal_locations":{"main":"' || (pg_current_wal_insert_lsn() + 1) || '"}}');
-- An insert pointer behind a page header is the end of the record before it.
SELECT pg_switch_wal() IS NOT NULL AS switched;
SELECT reason FROM replica_pin.route_envelope(
  '{"wal_locations":{"main":"' || pg_current_wal_insert_lsn() || '"}}');

-- Several names of one cluster: the greatest position, wherever it stands.
-- The setting that has to be lowered tells when the server has read both.
ALTER SYSTEM SET replica_pin.location_names = 'n1,n2,n3,n4,n5,n6,n7,n8,n9,n10,n11,n12,n13,n14,n15,n16';
ALTER SYSTEM SET replica_pin.sample_interval = '60s';
SELECT pg_reload_conf();
CALL test.wait_for($$ (SELECT clamped_settings <> '{}' FROM replica_pin.status) $$);
\c -
\pset null (null)
SELECT place, reason, required = :'token' AS "the greatest"
FROM generate_series(1, 16) place,
  LATERAL (SELECT jsonb_object_agg('n' || n, CASE n WHEN place THEN :'token' ELSE :'old' END) AS locations
           FROM generate_series(1, 16) n) l,
  LATERAL replica_pin.route_envelope(jsonb_build_object('wal_locations', locations)::text)
ORDER BY place;
SELECT reason FROM replica_pin.route_envelope('{"wal_locations":{"n1":"0/1","n2":"0/1","n3":"0/1","n4":"0/1","n5":"0/1","n6":"0/1","n7":"0/1","n8":"0/1","n9":"0/1","n10":"0/1","n11":"0/1","n12":"0/1","n13":"0/1","n14":"0/1","n15":"0/1","n16":"0/1","n1":"0/1"}}');
ALTER SYSTEM SET replica_pin.location_names = 'a, b!';
ALTER SYSTEM SET replica_pin.location_names = '';
ALTER SYSTEM SET replica_pin.location_names = 'n1,n2,n3,n4,n5,n6,n7,n8,n9,n10,n11,n12,n13,n14,n15,n16,n17';
ALTER SYSTEM RESET replica_pin.location_names;
ALTER SYSTEM RESET replica_pin.sample_interval;
SELECT pg_reload_conf();
CALL test.wait_for($$ (SELECT clamped_settings = '{}' FROM replica_pin.status) $$);
\c -

-- Counts: each decision once, under its reason.
SELECT replica_pin.reset_stats();
SELECT count(replica_pin.route('k')) + count(replica_pin.route_envelope('x')) + count(replica_pin.is_pinned('k'))
  + count(replica_pin.is_any_pinned('{k}')) + count(replica_pin.route_all('{k}')) AS asked
FROM generate_series(1, 20);
SELECT * FROM replica_pin.stat_decisions WHERE enforced + not_enforced > 0;

-- What no replica could serve stands at every percentage.
SET replica_pin.enforce_percent = 0;
SELECT reason FROM replica_pin.route('k');
SELECT replica_pin.is_pinned('k');
SELECT sum(not_enforced) AS "none is softened" FROM replica_pin.stat_decisions;
RESET replica_pin.enforce_percent;
DROP FUNCTION test.hide, test.stamp_it;
