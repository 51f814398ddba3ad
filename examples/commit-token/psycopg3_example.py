# The token of a commit, with psycopg 3.
#
# usage: psycopg3_example.py id      (the server is that of PGHOST, PGPORT, ...)

import sys

import psycopg

TOKEN = "replica_pin.commit_token"


def commit(connection, sql, parameters):
    """Runs a statement in a transaction. The token of its commit, or None.

    The connection keeps the last token until the next one comes: if it is still
    the one of before, this commit wrote nothing. (An inner transaction() is a
    savepoint; the token comes with the outermost.)
    """
    before = connection.info.parameter_status(TOKEN)
    with connection.transaction():
        connection.execute("SET LOCAL replica_pin.report_commit_token = on")
        connection.execute(sql, parameters)
    after = connection.info.parameter_status(TOKEN)
    return after if after != before else None


def route(connection, token):
    """Where may the next read go? No replica is the primary."""
    return connection.execute(
        "SELECT replica, reason FROM replica_pin.route(token => %s)", (token,)).fetchone()


def main(note):
    connection = psycopg.connect("", autocommit=True)
    carried = commit(connection, "INSERT INTO note (id) VALUES (%s)", (note,))
    print("token", carried)
    replica, reason = route(connection, carried)
    print(f"read on {replica or 'primary'}, {reason}")

    token = commit(connection, "UPDATE note SET body = '' WHERE id = %s AND false", (note,))
    carried = token or carried
    print("token" if token else "no new token, carry", carried)


main(sys.argv[1])
