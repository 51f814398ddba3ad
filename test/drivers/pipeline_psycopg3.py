# usage: pipeline_psycopg3.py token
#
# CALL require and the read behind it in one pipeline, which one Sync ends.
# Prints what the read answered, or the SQLSTATE with which the pipeline ended.
# The server is that of PGHOST and PGPORT.

import sys

import psycopg


def main(token):
    connection = psycopg.connect("dbname=postgres", autocommit=True)
    read = None
    try:
        with connection.pipeline():
            connection.execute("CALL replica_pin.require(%s)", (token,))
            read = connection.execute("SELECT 1")
        print(read.fetchone()[0])
    except psycopg.Error as error:
        print(error.sqlstate)


main(sys.argv[1])
