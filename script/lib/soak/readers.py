"""The readers of script/soak. Each reads as the README says that one may, and
tells the checker what it wanted and what it saw."""

import json
import random
import time

import psycopg

from cluster import SAMPLE_LIFETIME, connect
from load import TABLES, key_of, some


class Reader:
    """One session on the primary, and one on each replica as long as it lives."""

    def __init__(self, names):
        self.primary = connect("primary")
        self.names = names
        self.replica = {}  # name -> (connection, since when)

    # The connection, and whether it was older than a sample lives at that time.
    def direct(self, name, asked_at):
        if name not in self.replica:
            connection = connect(name, connect_timeout=5)
            self.replica[name] = (connection, time.monotonic())
        connection, since = self.replica[name]
        return connection, asked_at - since > SAMPLE_LIFETIME + 0.1

    def drop(self, name):
        if name in self.replica:
            self.replica.pop(name)[0].close()


def select(connection, thing):
    return connection.execute(f"SELECT n FROM {thing[0]} WHERE id = %s", (thing[1],)).fetchone()[0]


# A replica that was named: by an old connection, or else behind the proof.
def read_named(reader, checker, name, thing, wanted, asked_at, required, how):
    try:
        connection, old = reader.direct(name, asked_at)
        if old:
            checker.read(thing, wanted, select(connection, thing), f"{how}, old connection")
        elif required:
            read_proved(checker, connection, thing, wanted, required, f"{how}, require")
    except psycopg.OperationalError:
        reader.drop(name)
        checker.counted(f"lost: {how}")


def read_proved(checker, connection, thing, wanted, token, how):
    try:
        with connection.transaction():
            connection.execute(f"CALL replica_pin.require('{token}', 20)")
            seen = select(connection, thing)
    except psycopg.Error as error:
        if error.sqlstate not in ("RP001", "RP002"):
            raise
        checker.counted(f"{error.sqlstate}: {how}")
        return
    checker.read(thing, wanted, seen, how)


def read_decided(reader, checker, statement, argument, thing, wanted, how):
    asked_at = time.monotonic()
    name, reason, required = reader.primary.execute(
        f"SELECT replica, reason, required FROM replica_pin.{statement}", (argument,)).fetchone()
    if name is None:
        checker.counted(f"primary: {how}, {reason}")
    else:
        read_named(reader, checker, name, thing, wanted, asked_at, required, how)


def by_route(reader, checker, _servers):
    thing = some(random.choice(TABLES))
    wanted = checker.known.get(thing, 0)
    read_decided(reader, checker, "route(%s)", key_of(thing), thing, wanted, "route")


# One endpoint: any replica of it, if nobody pins the key.
def by_is_pinned(reader, checker, servers):
    thing = some(random.choice(TABLES))
    wanted = checker.known.get(thing, 0)
    with servers.lock:
        asked_at = time.monotonic()
        if reader.primary.execute("SELECT replica_pin.is_pinned(%s)", (key_of(thing),)).fetchone()[0]:
            checker.counted("primary: is_pinned")
        else:
            read_named(reader, checker, random.choice(servers.endpoint), thing, wanted, asked_at, None,
                       "is_pinned")


def by_message(reader, checker, _servers):
    if checker.messages:
        thing, n, envelope = random.choice(tuple(checker.messages))
        read_decided(reader, checker, "route_envelope(%s)", envelope, thing, n, "message")


def by_token(reader, checker, _servers):
    if checker.tokens:
        thing, n, token = random.choice(tuple(checker.tokens))
        name = random.choice(reader.names)
        try:
            connection, _old = reader.direct(name, 0)
            read_proved(checker, connection, thing, n, token, "token")
        except psycopg.OperationalError:
            reader.drop(name)
            checker.counted("lost: token")


# Nobody is asked: what the checker must find stale, or it proves nothing.
def unprotected(reader, checker, _servers):
    thing = some(random.choice(TABLES))
    wanted = checker.known.get(thing, 0)
    name = random.choice(reader.names)
    try:
        connection, _old = reader.direct(name, 0)
        seen = select(connection, thing)
    except psycopg.OperationalError:
        reader.drop(name)
        return
    checker.counted("control: stale" if seen < wanted else "control: not stale")


WAYS = (by_route, by_route, by_is_pinned, by_is_pinned, by_message, by_token, unprotected)


def read(reader, checker, servers):
    random.choice(WAYS)(reader, checker, servers)


class Listener:
    """Learns of writes by NOTIFY, and reads at once."""

    def __init__(self, names):
        self.reader = Reader(names)
        self.heard = []
        self.reader.primary.add_notify_handler(lambda notify: self.heard.append(notify.payload))
        self.reader.primary.execute("LISTEN soak")

    def read(self, checker, _servers):
        self.reader.primary.execute("SELECT 1")
        heard, self.heard[:] = list(self.heard), []
        for payload in heard:
            table, identifier, n = json.loads(payload)
            read_decided(self.reader, checker, "route(%s)", f"{table}:{identifier}", (table, identifier), n,
                         "notify")
