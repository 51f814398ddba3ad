# usage: ask_psycopg2.py ask|pin token

import psycopg2

import questions

connection = psycopg2.connect("dbname=postgres")
connection.autocommit = True
cursor = connection.cursor()


def run(sql, value):
    cursor.execute(sql, (value,))
    return cursor.fetchone()[0]


questions.main(run, psycopg2.Error)
