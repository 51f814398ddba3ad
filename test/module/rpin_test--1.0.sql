\echo Use "CREATE EXTENSION rpin_test" to load this file. \quit

CREATE FUNCTION rpin_test_worker(database text, statement text, times integer)
RETURNS integer
AS 'MODULE_PATHNAME', 'rpin_test_worker'
LANGUAGE C STRICT;

COMMENT ON FUNCTION rpin_test_worker(text, text, integer) IS
  'runs a statement in a background worker, each time in a transaction of its own, and waits for its end';

CREATE FUNCTION rpin_test_nothing(session_key text)
RETURNS boolean
AS 'MODULE_PATHNAME', 'rpin_test_nothing'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION rpin_test_nothing(text) IS
  'does nothing: what a call costs';
