#!/usr/bin/python3
"""Notes: a publisher and its consumers.

A publisher writes a note on the primary and tells about it by NOTIFY.  The
message has the id of the note, the position of its commit and the identifier of
the request, and nothing else.  Each consumer turns the id into the note, on a
replica, and delivers it to somebody.

    notes.py publish PRIMARY COUNT
    notes.py consume PRIMARY after|before COUNT NAME=REPLICA ...

after    resolves the id on a replica, as consumers do that know of no positions.
         A note that is not there is dropped: the update is lost.
before   asks route_envelope() with the raw message, before anything in it is
         resolved, and reads where it is told to.

A consumer says "listening", and at the end how many notes it delivered and from
where, and which requests' notes it lost.
"""

import collections
import json
import random
import select
import sys

import psycopg2


def connect(conninfo, **options):
    connection = psycopg2.connect(conninfo, **options)
    connection.autocommit = True
    return connection


def publish(primary, count):
    cursor = connect(primary, application_name="publisher").cursor()
    for number in range(1, count + 1):
        cursor.execute("INSERT INTO note (body) VALUES (%s) RETURNING id", (f"note {number}",))
        note = cursor.fetchone()[0]

        # After the commit: the position must cover it.
        cursor.execute(
            "SELECT pg_notify('note', replica_pin.stamp(%s, %s)::text)",
            (json.dumps({"id": note}), f"request-{number}"),
        )


def read_body(cursor, note):
    cursor.execute("SELECT body FROM note WHERE id = %s", (note,))
    row = cursor.fetchone()
    return row and row[0]


class Consumer:
    def __init__(self, primary, decides, replicas):
        name = f"consumer-{decides}"
        self.listener = connect(primary, application_name=name)
        self.primary = connect(primary, application_name=name).cursor()
        self.replicas = {
            replica: connect(conninfo, application_name=name).cursor()
            for replica, conninfo in replicas.items()
        }
        self.decides = decides
        self.served = collections.Counter()
        self.lost = []

    def choose(self, message):
        """Where to read: the name of a replica, or None for the primary."""
        if self.decides == "after":
            return random.choice(list(self.replicas))
        self.primary.execute("SELECT replica FROM replica_pin.route_envelope(%s)", (message,))
        return self.primary.fetchone()[0]

    def consume(self, message):
        replica = self.choose(message)
        payload = json.loads(message)
        body = read_body(self.replicas.get(replica, self.primary), payload["id"])
        if body is None:
            self.lost.append(payload["correlation_id"])
        else:
            self.served[replica or "primary"] += 1

    def run(self, count):
        self.listener.cursor().execute("LISTEN note")
        print("listening", flush=True)
        while count > 0:
            if not select.select([self.listener], [], [], 60)[0]:
                sys.exit("no message for a minute")
            self.listener.poll()
            while self.listener.notifies:
                self.consume(self.listener.notifies.pop(0).payload)
                count -= 1

    def report(self):
        served = " ".join(f"{name}={number}" for name, number in sorted(self.served.items()))
        print(f"delivered={sum(self.served.values())} lost={len(self.lost)} {served}".rstrip())
        print("lost requests:", " ".join(self.lost))


def main():
    arguments = sys.argv[1:]
    if len(arguments) == 3 and arguments[0] == "publish":
        publish(arguments[1], int(arguments[2]))
    elif len(arguments) > 4 and arguments[0] == "consume" and arguments[2] in ("after", "before"):
        replicas = dict(argument.split("=", 1) for argument in arguments[4:])
        consumer = Consumer(arguments[1], arguments[2], replicas)
        consumer.run(int(arguments[3]))
        consumer.report()
    else:
        sys.exit(__doc__)


main()
