# Token mode with psycopg2: the read is asked of the replica itself, in one round
# trip; the primary is not needed.
#
# usage: psycopg2_example.py write PRIMARY ID            prints the token
#        psycopg2_example.py read TOKEN ID PRIMARY REPLICA...
#
# PRIMARY and REPLICA are connection strings. A read prints where it was served,
# whether the row was there, and the token to carry on with.

import sys

import psycopg2

WAIT_MS = 50


def connect(address):
    connection = psycopg2.connect(address)
    connection.autocommit = True
    return connection


def write(primary, note):
    connection = connect(primary)
    with connection.cursor() as cursor:
        cursor.execute(
            "BEGIN; SET LOCAL replica_pin.report_commit_token = on;"
            " INSERT INTO note (id) VALUES (%s); COMMIT", (note,))
    return connection.get_parameter_status("replica_pin.commit_token")


def read_behind(connection, token, sql, parameters):
    """The read, in one message with the proof: psycopg2 sends simple queries, and
    the statements of one are one transaction; when require() fails the server
    skips the read. The connection must be in autocommit: else psycopg2 sends a
    BEGIN by itself, which is a round trip more."""
    with connection.cursor() as cursor:
        cursor.execute("CALL replica_pin.require(%s, %s); " + sql, (token, WAIT_MS, *parameters))
        return cursor.fetchall()


def renew(primary, token):
    """What to carry instead of a token that a replica cannot compare. No replica
    can ever have a write that a failover lost (required is NULL): begin anew."""
    with primary.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(required, replica_pin.current_token())"
            " FROM replica_pin.route(token => %s)", (token,))
        return cursor.fetchone()[0]


def read(replicas, connect_primary, token, sql, parameters):
    """(rows, where, token to carry). RP001: the next replica, then the primary,
    and the token stays. RP002: the primary renews it, once."""
    renewed = False
    for name, connection in replicas.items():
        while True:
            try:
                return read_behind(connection, token, sql, parameters), name, token
            except psycopg2.Error as error:
                if error.pgcode not in ("RP001", "RP002"):
                    raise
                if error.pgcode == "RP001" or renewed:
                    break
                token, renewed = renew(connect_primary(), token), True
    with connect_primary().cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchall(), "primary", token


def main(command, *arguments):
    if command == "write":
        print(write(*arguments))
        return
    token, note, primary, *addresses = arguments
    replicas = {f"r{i}": connect(a) for i, a in enumerate(addresses, 1)}
    rows, where, token = read(
        replicas, lambda: connect(primary), token,
        "SELECT id FROM note WHERE id = %s", (note,))
    print(where, len(rows), token)


main(*sys.argv[1:])
