# The token of a commit, with psycopg2.
#
# usage: psycopg2_example.py id      (the server is that of PGHOST, PGPORT, ...)

import sys

import psycopg2

TOKEN = "replica_pin.commit_token"


def commit(connection, sql, parameters):
    """Runs a statement in a transaction. The token of its commit, or None.

    The connection keeps the last token until the next one comes: if it is still
    the one of before, this commit wrote nothing.
    """
    before = connection.get_parameter_status(TOKEN)
    with connection, connection.cursor() as cursor:
        cursor.execute("SET LOCAL replica_pin.report_commit_token = on")
        cursor.execute(sql, parameters)
    after = connection.get_parameter_status(TOKEN)
    return after if after != before else None


def route(connection, token):
    """Where may the next read go? No replica is the primary."""
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT replica, reason FROM replica_pin.route(token => %s)", (token,))
        return cursor.fetchone()


def main(note):
    connection = psycopg2.connect("")
    carried = commit(connection, "INSERT INTO note (id) VALUES (%s)", (note,))
    print("token", carried)
    replica, reason = route(connection, carried)
    print(f"read on {replica or 'primary'}, {reason}")

    token = commit(connection, "UPDATE note SET body = '' WHERE id = %s AND false", (note,))
    carried = token or carried
    print("token" if token else "no new token, carry", carried)


main(sys.argv[1])
