\echo Use "CREATE EXTENSION rpin_test" to load this file. \quit

CREATE FUNCTION rpin_test_worker(database text, statement text, times integer)
RETURNS integer
AS 'MODULE_PATHNAME', 'rpin_test_worker'
LANGUAGE C STRICT;

COMMENT ON FUNCTION rpin_test_worker(text, text, integer) IS
  'runs a statement in a background worker, each time in a transaction of its own, and waits for its end';
