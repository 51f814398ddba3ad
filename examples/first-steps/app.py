# The smallest application in both modes, for docs/first-steps.md: writes on the
# primary, reads on the replicas. Debian: python3-psycopg2.
#
# usage: app.py TEXT PRIMARY NAME=REPLICA...    host or host:port; names as in
#                                               replica_pin.replicas

import sys

import psycopg2

READ = "SELECT body FROM note WHERE id = %s"


def connect(address):
    host, _, port = address.partition(":")
    connection = psycopg2.connect(host=host, port=port or None, dbname="app", user="app")
    connection.autocommit = True
    return connection


def ask(connection, sql, *parameters):
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchone() if cursor.description else None


def write(primary, user, note, body):
    """One message, one transaction. Its commit pins the key (key mode) and tells
    its token (token mode)."""
    ask(primary,
        "SET LOCAL replica_pin.session_key = %s;"
        " SET LOCAL replica_pin.report_commit_token = on;"
        " INSERT INTO note VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET body = EXCLUDED.body",
        f"user:{user}", note, body)
    return primary.get_parameter_status("replica_pin.commit_token")


def read_behind(primary, replica, token, note):
    """Token mode: the replica proves that it has the write, or the primary is
    read. What to do with a token after RP002: examples/token-mode."""
    try:
        return ask(replica, "CALL replica_pin.require(%s, 20); " + READ, token, note), "replayed"
    except psycopg2.Error as error:
        if error.pgcode not in ("RP001", "RP002"):
            raise
        return ask(primary, READ, note), f"{error.pgcode}, so from the primary"


def read_by_key(primary, replicas, user, note):
    """Key mode: the primary says where to read. These connections are young, so
    the replica that it names has to prove it, too (promise P1)."""
    name, reason, required = ask(
        primary, "SELECT replica, reason, required FROM replica_pin.route(%s)", f"user:{user}")
    if name not in replicas:
        return "primary", reason, ask(primary, READ, note)
    return name, reason, *read_behind(primary, replicas[name], required, note)


def main(text, address, *others):
    primary = connect(address)
    replicas = {name: connect(where) for name, where in (other.split("=") for other in others)}
    token = write(primary, 42, 24, text)
    print("token:", token)
    for name, replica in replicas.items():
        print(f"unprotected, {name}:", ask(replica, READ, 24))
        print(f"token mode,  {name}:", *read_behind(primary, replica, token, 24))
    print("key mode, route:    ", *read_by_key(primary, replicas, 42, 24))
    print("key mode, is_pinned:", *ask(primary, "SELECT replica_pin.is_pinned('user:42')"))


main(*sys.argv[1:])
