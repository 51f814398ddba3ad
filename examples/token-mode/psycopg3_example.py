# Token mode with psycopg 3: the read is asked of the replica itself, in one round
# trip; the primary is not needed.
#
# usage: psycopg3_example.py write PRIMARY ID            prints the token
#        psycopg3_example.py read TOKEN ID PRIMARY REPLICA...
#
# PRIMARY and REPLICA are connection strings. A read prints where it was served,
# whether the row was there, and the token to carry on with.

import sys

import psycopg

WAIT_MS = 50


def write(primary, note):
    with psycopg.connect(primary, autocommit=True) as connection:
        with connection.transaction():
            connection.execute("SET LOCAL replica_pin.report_commit_token = on")
            connection.execute("INSERT INTO note (id) VALUES (%s)", (note,))
        return connection.info.parameter_status("replica_pin.commit_token")


def read_behind(connection, token, sql, parameters):
    """The read, in one pipeline with the proof: one Sync, so one transaction, and
    when require() fails the server skips the read. The connection must be in
    autocommit: with BEGIN it is still one round trip, and two statements more."""
    with connection.pipeline():
        connection.execute("CALL replica_pin.require(%s, %s)", (token, WAIT_MS))
        cursor = connection.execute(sql, parameters)
    return cursor.fetchall()


def renew(primary, token):
    """What to carry instead of a token that a replica cannot compare. No replica
    can ever have a write that a failover lost (required is NULL): begin anew."""
    row = primary.execute(
        "SELECT coalesce(required, replica_pin.current_token())"
        " FROM replica_pin.route(token => %s)", (token,))
    return row.fetchone()[0]


def read(replicas, connect_primary, token, sql, parameters):
    """(rows, where, token to carry). RP001: the next replica, then the primary,
    and the token stays. RP002: the primary renews it, once."""
    renewed = False
    for name, connection in replicas.items():
        while True:
            try:
                return read_behind(connection, token, sql, parameters), name, token
            except psycopg.Error as error:
                if error.sqlstate not in ("RP001", "RP002"):
                    raise
                if error.sqlstate == "RP001" or renewed:
                    break
                token, renewed = renew(connect_primary(), token), True
    return connect_primary().execute(sql, parameters).fetchall(), "primary", token


def main(command, *arguments):
    if command == "write":
        print(write(*arguments))
        return
    token, note, primary, *addresses = arguments
    replicas = {f"r{i}": psycopg.connect(a, autocommit=True) for i, a in enumerate(addresses, 1)}
    rows, where, token = read(
        replicas, lambda: psycopg.connect(primary, autocommit=True), token,
        "SELECT id FROM note WHERE id = %s", (note,))
    print(where, len(rows), token)


main(*sys.argv[1:])
