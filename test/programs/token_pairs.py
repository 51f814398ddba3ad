#!/usr/bin/python3
"""Write-then-read pairs in token mode, against replicas that lag at random.

usage: token_pairs.py PAIRS PRIMARY REPLICA...

The token of each write is pushed with its COMMIT. The read goes to a replica
taken at random, behind require(): at once, or within WAIT_MS, or else to the next
replica, or else to the primary. Every tenth pair also reads without a token, as a
control. While it writes, each replica's replay is paused and resumed at random.
With the token of every pair, the reads go on after the primary was stopped: the
program says "written", waits for a line, and reads everything again.

Prints counts: pairs, at_once, waited, other, primary, stale, control, naive; and
then again, for the reads without a primary: pairs, at_once, waited, other, none,
stale.
"""

import collections
import random
import sys
import threading

import psycopg2

WAIT_MS = 5

pairs, primary, replicas = int(sys.argv[1]), sys.argv[2], sys.argv[3:]


def connect(conninfo):
    connection = psycopg2.connect(conninfo)
    connection.autocommit = True
    return connection


def lag(conninfo, stop):
    """Stands still for up to 30 ms, moves for up to 60 ms, and so on."""
    cursor = connect(conninfo).cursor()
    chance = random.Random(conninfo)
    while not stop.wait(chance.uniform(0, 0.06)):
        cursor.execute("SELECT pg_wal_replay_pause()")
        stop.wait(chance.uniform(0, 0.03))
        cursor.execute("SELECT pg_wal_replay_resume()")


def rows(cursor, note, token=None, timeout=0):
    """How many rows, or None if the replica is behind."""
    proof = f"CALL replica_pin.require('{token}', {timeout}); " if token else ""
    try:
        cursor.execute(f"{proof}SELECT count(*) FROM note WHERE id = {note}")
    except psycopg2.Error as error:
        if error.pgcode != "RP001":
            raise
        return None
    return cursor.fetchone()[0]


def read(readers, note, token, count):
    order = random.sample(readers, len(readers))
    for served, reader, timeout in (
        ("at_once", order[0], 0),
        ("waited", order[0], WAIT_MS),
        *(("other", reader, 0) for reader in order[1:]),
    ):
        found = rows(reader, note, token, timeout)
        if found is not None:
            count[served] += 1
            return found
    return None


def report(count, *names):
    print(" ".join(f"{name}={count[name]}" for name in names), flush=True)


writing = connect(primary)
writer = writing.cursor()
writer.execute("SET replica_pin.report_commit_token = on")
readers = [connect(conninfo).cursor() for conninfo in replicas]
stop = threading.Event()
lags = [threading.Thread(target=lag, args=(conninfo, stop)) for conninfo in replicas]
for thread in lags:
    thread.start()

count = collections.Counter()
tokens = {}
for note in range(1, pairs + 1):
    writer.execute(f"INSERT INTO note VALUES ({note})")
    token = tokens[note] = writing.get_parameter_status("replica_pin.commit_token")
    if note % 10 == 0:
        count["control"] += 1
        count["naive"] += rows(random.choice(readers), note) == 0
    found = read(readers, note, token, count)
    if found is None:
        found = rows(writer, note)
        count["primary"] += 1
    count["pairs"] += 1
    count["stale"] += found != 1
stop.set()
for thread in lags:
    thread.join()
writing.close()
report(count, "pairs", "at_once", "waited", "other", "primary", "stale", "control", "naive")

print("written", flush=True)
sys.stdin.readline()
count.clear()
for note, token in tokens.items():
    found = read(readers, note, token, count)
    count["none"] += found is None
    count["pairs"] += 1
    count["stale"] += found == 0
report(count, "pairs", "at_once", "waited", "other", "none", "stale")
