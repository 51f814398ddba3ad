#!/usr/bin/python3
"""Read-your-writes in one of several ways, once, for counting its round trips.

usage: token_round_trips.py WAY PRIMARY REPLICA NOTE

plain      a write on the primary and a read on the replica
route      the write pins; route() on the primary; the read
require    the write; current_token() on the primary; require + read
pushed     the write, whose token comes with the COMMIT; require + read

Prints whether the row was there. The reading connection is in autocommit; the
write is one message of several statements.
"""

import sys

import psycopg2

way, primary, replica, note = sys.argv[1:]

READ = f"SELECT count(*) FROM note WHERE id = {note}"


def connect(conninfo):
    connection = psycopg2.connect(conninfo)
    connection.autocommit = True
    return connection


def answer(connection, sql):
    cursor = connection.cursor()
    cursor.execute(sql)
    return cursor.fetchone()[0]


writing, reading = connect(primary), connect(replica)
insert = f"INSERT INTO note VALUES ({note})"
pin = f"SET LOCAL replica_pin.session_key = 'note:{note}'; " if way == "route" else ""
writing.cursor().execute(f"BEGIN; {pin}{insert}; COMMIT")
proof = ""
if way == "route":
    answer(writing, f"SELECT replica FROM replica_pin.route('note:{note}')")
elif way == "require":
    token = answer(writing, "SELECT replica_pin.current_token()")
    proof = f"CALL replica_pin.require('{token}', 5000); "
elif way == "pushed":
    token = writing.get_parameter_status("replica_pin.commit_token")
    proof = f"CALL replica_pin.require('{token}', 5000); "
print(answer(reading, proof + READ))
