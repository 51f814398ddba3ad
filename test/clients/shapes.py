# usage: shapes.py id shape ...
#
# Writes one note per shape of commit, with ids from the given one on, and prints
# "shape id token" for each, or "shape id none" if its commit pushed no token.
# The server, and the role that has the setting on, are those of PGHOST, PGPORT,
# PGUSER, ...

import sys

import psycopg

TOKEN = "replica_pin.commit_token"


def simple(connection, note):
    connection.execute(f"INSERT INTO note (id) VALUES ({note})")


def statements(connection, note):
    """One simple query of several statements, which is one transaction."""
    connection.execute(f"SELECT 1; INSERT INTO note (id) VALUES ({note}); SELECT 2")


def block(connection, note):
    """The same with a transaction block of its own."""
    connection.execute(f"BEGIN; INSERT INTO note (id) VALUES ({note}); COMMIT; SELECT 2")


def chain(connection, note):
    connection.execute("BEGIN")
    connection.execute(f"INSERT INTO note (id) VALUES ({note})")
    connection.execute("COMMIT AND CHAIN")
    connection.execute("COMMIT")


def extended(connection, note):
    connection.execute("INSERT INTO note (id) VALUES (%s)", (note,))


def prepared(connection, note):
    connection.execute("INSERT INTO note (id) VALUES (%s)", (note,), prepare=True)


def pipeline(connection, note):
    """Committed by the Sync, behind the answer to the statement."""
    with connection.pipeline():
        connection.execute("SELECT 1")
        connection.execute("INSERT INTO note (id) VALUES (%s)", (note,))


def pipeline_block(connection, note):
    with connection.pipeline(), connection.transaction():
        connection.execute("INSERT INTO note (id) VALUES (%s)", (note,))


def copy(connection, note):
    with connection.cursor().copy("COPY note (id) FROM STDIN") as rows:
        rows.write_row((note,))


def procedure(connection, note):
    """Commits within one statement: the last token is that of the last commit."""
    connection.execute(f"""
        DO $$ BEGIN
          INSERT INTO note (id) VALUES (-{note}); COMMIT;
          INSERT INTO note (id) VALUES ({note}); COMMIT;
        END $$""")


def nothing(connection, note):
    with connection.transaction():
        connection.execute("UPDATE note SET body = '' WHERE id = %s AND false", (note,))


def rolled_back(connection, note):
    with connection.transaction():
        connection.execute("INSERT INTO note (id) VALUES (%s)", (note,))
        raise psycopg.Rollback


def main(note, shapes):
    connection = psycopg.connect("", autocommit=True)
    for shape in shapes:
        before = connection.info.parameter_status(TOKEN)
        globals()[shape](connection, note)
        after = connection.info.parameter_status(TOKEN)
        print(shape, note, after if after != before else "none")
        note += 1


main(int(sys.argv[1]), sys.argv[2:])
