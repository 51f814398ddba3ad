# usage: ask_psycopg3.py ask|pin token

import psycopg

import questions

connection = psycopg.connect("dbname=postgres", autocommit=True)


def run(sql, value):
    return connection.execute(sql, (value,)).fetchone()[0]


questions.main(run, psycopg.Error)
