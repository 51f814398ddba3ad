# usage: storm.py id clients rounds
#
# Clients at the same time, each on a connection of its own, each writing one note
# per round. Prints "id token" for each, or "id none" if no new token came, and
# "id unasked" if one came for a round that wrote nothing. The server, and the
# role that has the setting on, are those of PGHOST, PGPORT, PGUSER, ...

import sys
from concurrent.futures import ThreadPoolExecutor

import psycopg

TOKEN = "replica_pin.commit_token"
INSERT = "INSERT INTO note (id) VALUES (%s)"


def implicit(connection, note):
    connection.execute(INSERT, (note,))


def explicit(connection, note):
    with connection.transaction():
        connection.execute("SELECT 1")
        connection.execute(INSERT, (note,))


def statements(connection, note):
    connection.execute(f"SELECT 1; INSERT INTO note (id) VALUES ({note})")


def pipeline(connection, note):
    with connection.pipeline():
        connection.execute(INSERT, (note,))


SHAPES = [implicit, explicit, statements, pipeline]


def token_of(connection, work, *arguments):
    before = connection.info.parameter_status(TOKEN)
    work(*arguments)
    after = connection.info.parameter_status(TOKEN)
    return after if after != before else None


def client(first, rounds):
    lines = []
    connection = psycopg.connect("", autocommit=True, prepare_threshold=None)
    for note in range(first, first + rounds):
        shape = SHAPES[note % len(SHAPES)]
        token = token_of(connection, shape, connection, note)
        lines.append(f"{note} {token or 'none'}")
        if token_of(connection, connection.execute, "SELECT count(*) FROM note WHERE id = 0"):
            lines.append(f"{note} unasked")
    return lines


def main(first, clients, rounds):
    with ThreadPoolExecutor(clients) as pool:
        starts = range(first, first + clients * rounds, rounds)
        for lines in pool.map(client, starts, [rounds] * clients):
            print("\n".join(lines))


main(*map(int, sys.argv[1:]))
