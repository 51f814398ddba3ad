#!/usr/bin/python3
"""A listener that asks where to read as soon as a NOTIFY wakes it.

usage: notify_race.py PRIMARY ROUNDS NAME=CONNINFO...

Writers insert a row, pin its key by the setting, and notify its id, all in one
transaction.  The listener asks route() for the key at once and reads the row on
the replica it is given.  A replica that lacks the row is a stale read.

Two writers work at once, each of them one message ahead: a listener that is
still reading the queue for one message can be handed the next as soon as its
transaction leaves the snapshot, before that commit's last step.

Prints: rounds, how many were served by each replica, how many by the primary,
how many were stale, and how many would have been stale on a replica taken at
random.
"""

import collections
import random
import select
import sys
import threading

import psycopg2

primary, rounds = sys.argv[1], int(sys.argv[2])
replicas = dict(argument.split("=", 1) for argument in sys.argv[3:])


def connect(conninfo):
    connection = psycopg2.connect(conninfo)
    connection.autocommit = True
    return connection


class Writer(threading.Thread):
    """Writes a row for each turn it is given."""

    def __init__(self, first):
        super().__init__(daemon=True)
        self.first = first
        self.turn = threading.Semaphore(1)

    def run(self):
        write(self.first, self.turn)


def write(first, turn):
    connection = connect(primary)
    cursor = connection.cursor()
    for note in range(first, first + rounds // 2):
        turn.acquire()
        cursor.execute(
            "BEGIN; SET LOCAL replica_pin.session_key = 'note:%(id)s';"
            " INSERT INTO note VALUES (%(id)s); NOTIFY note, '%(id)s'; COMMIT",
            {"id": note},
        )


def has_row(cursor, note):
    cursor.execute("SELECT FROM note WHERE id = %s", (note,))
    return cursor.rowcount == 1


listener = connect(primary)
listening = listener.cursor()
listening.execute("LISTEN note")
asking = connect(primary).cursor()
reading = {name: connect(conninfo).cursor() for name, conninfo in replicas.items()}

writers = [Writer(1), Writer(1_000_000)]
for writer in writers:
    writer.start()

count = collections.Counter()
while count["rounds"] < rounds:
    if not select.select([listener], [], [], 30)[0]:
        sys.exit("no message for half a minute")
    listener.poll()
    while listener.notifies:
        note = listener.notifies.pop(0).payload
        writers[int(note) >= writers[1].first].turn.release()
        asking.execute("SELECT replica FROM replica_pin.route(%s)", ("note:" + note,))
        replica = asking.fetchone()[0]
        count["rounds"] += 1
        count[replica or "primary"] += 1
        if replica and not has_row(reading[replica], note):
            count["stale"] += 1
        if not has_row(reading[random.choice(list(reading))], note):
            count["naive"] += 1
for writer in writers:
    writer.join()
print(" ".join(f"{name}={count[name]}" for name in ["rounds", "primary", *replicas, "stale", "naive"]))
