"""The writers of script/soak: what sessions of an application do to a primary.
Each action tells the checker what was committed, once the answer is there."""

import collections
import json
import random
import threading

import psycopg

OBJECTS = 50
TABLES = ("counter", "tagged")  # the second has the trigger pin_row

SCHEMA = f"""
CREATE EXTENSION replica_pin;
CREATE TABLE counter AS SELECT id, 0 AS n FROM generate_series(1, {OBJECTS}) id;
ALTER TABLE counter ADD PRIMARY KEY (id);
CREATE TABLE tagged (LIKE counter INCLUDING ALL);
INSERT INTO tagged TABLE counter;
CREATE TRIGGER pin AFTER INSERT OR UPDATE OR DELETE ON tagged FOR EACH ROW
  EXECUTE FUNCTION replica_pin.pin_row('tagged', 'id');
"""


class Checker:
    """What is known to be committed: object -> greatest n. And what was counted."""

    def __init__(self):
        self.lock = threading.Lock()
        self.known = collections.defaultdict(int)
        self.count = collections.Counter()
        self.messages = collections.deque(maxlen=100)  # (object, n, envelope)
        self.tokens = collections.deque(maxlen=100)  # (object, n, token)
        self.stale = []

    def committed(self, thing, n):
        with self.lock:
            self.known[thing] = max(self.known[thing], n)

    def counted(self, what):
        with self.lock:
            self.count[what] += 1

    def read(self, thing, wanted, seen, how):
        self.counted(f"read: {how}")
        if seen < wanted:
            with self.lock:
                self.stale.append(f"{thing}: {seen} instead of {wanted}; {how}")


def key_of(thing):
    return f"{thing[0]}:{thing[1]}"


def raise_n(connection, thing):
    table, identifier = thing
    return connection.execute(f"UPDATE {table} SET n = n + 1 WHERE id = %s RETURNING n",
                              (identifier,)).fetchone()[0]


def some(table):
    return (table, random.randint(1, OBJECTS))


def pinned_by_setting(connection, checker):
    thing = some("counter")
    with connection.transaction():
        connection.execute("SELECT set_config('replica_pin.session_key', %s, true)", (key_of(thing),))
        n = raise_n(connection, thing)
    checker.committed(thing, n)


def pinned_by_trigger(connection, checker):
    thing = some("tagged")
    checker.committed(thing, raise_n(connection, thing))


def pinned_by_call(connection, checker):
    things = [some("counter"), some("counter")]
    with connection.transaction():
        connection.execute("SELECT replica_pin.pin_all(%s)", ([key_of(thing) for thing in things],))
        done = [(thing, raise_n(connection, thing)) for thing in sorted(things)]
    for thing, n in done:
        checker.committed(thing, n)


def subtransactions(connection, checker):
    thing = some("tagged")
    with connection.transaction():
        n = raise_n(connection, thing)
        for _ in range(3):
            with connection.transaction(force_rollback=True):
                raise_n(connection, thing)
        try:
            with connection.transaction():
                connection.execute("INSERT INTO tagged VALUES (1, 0)")
        except psycopg.errors.UniqueViolation:
            pass
    checker.committed(thing, n)


def prepared(connection, checker):
    thing = some("counter")
    name = f"soak-{connection.info.backend_pid}"
    connection.execute("BEGIN")
    n = raise_n(connection, thing)
    connection.execute(f"PREPARE TRANSACTION '{name}'")
    if random.random() < 0.3:
        connection.execute(f"ROLLBACK PREPARED '{name}'")
        return
    connection.execute("SELECT set_config('replica_pin.session_key', %s, false)", (key_of(thing),))
    connection.execute(f"COMMIT PREPARED '{name}'")
    connection.execute("RESET replica_pin.session_key")
    checker.committed(thing, n)


def notified(connection, checker):
    thing = some("tagged")
    with connection.transaction():
        n = raise_n(connection, thing)
        connection.execute("SELECT pg_notify('soak', %s)", (json.dumps([*thing, n]),))
    checker.committed(thing, n)


def message(connection, checker):
    thing = some("tagged")
    n = raise_n(connection, thing)
    envelope = connection.execute("SELECT replica_pin.stamp('{}', 'soak')::text").fetchone()[0]
    checker.messages.append((thing, n, envelope))


def token(connection, checker):
    thing = some("counter")
    n = raise_n(connection, thing)
    checker.tokens.append((thing, n, connection.execute("SELECT replica_pin.current_token()").fetchone()[0]))


def errors(connection, _checker):
    for statement, error in (
            ("UPDATE tagged SET n = n / 0 WHERE id = 1", psycopg.errors.DivisionByZero),
            ("SELECT replica_pin.pin('')", psycopg.Error),
            ("SELECT replica_pin.pin('k', 'no token')", psycopg.Error)):
        try:
            connection.execute(statement)
        except error:
            continue
        raise AssertionError(f"no error: {statement}")
    connection.execute("SELECT replica_pin.route(NULL, 'no token'), replica_pin.route_envelope('{')")


def silent(connection, _checker):
    with connection.transaction():
        connection.execute("SET LOCAL replica_pin.capture = off")
        connection.execute("CREATE TEMP TABLE IF NOT EXISTS audit (at timestamptz) ON COMMIT DELETE ROWS")
        connection.execute("INSERT INTO audit VALUES (now())")


ACTIONS = (pinned_by_setting, pinned_by_trigger, pinned_by_call, subtransactions, prepared, notified,
           message, token, errors, silent)


def act(connection, checker):
    action = random.choice(ACTIONS)
    action(connection, checker)
    checker.counted(f"write: {action.__name__}")
