"""What the trigger pin_row costs a row."""

from time import perf_counter

from cluster import Cluster
from load import pgbench, script
from measure import Goal, interleave

TABLES = """
CREATE TABLE none (id bigint, body text);
CREATE TABLE pin_row (id bigint, body text);
CREATE TABLE plpgsql (id bigint, body text);
CREATE TRIGGER pin AFTER INSERT OR UPDATE OR DELETE ON pin_row
  FOR EACH ROW EXECUTE FUNCTION replica_pin.pin_row('note', 'id');
CREATE FUNCTION pin_note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM replica_pin.pin('note:' || NEW.id);
  RETURN NULL;
END $$;
CREATE TRIGGER pin AFTER INSERT OR UPDATE OR DELETE ON plpgsql
  FOR EACH ROW EXECUTE FUNCTION pin_note();
"""
NAMES = ("none", "pin_row", "plpgsql")


def measure(settings, report):
    with Cluster("p", 5500, 1) as cluster:
        server = cluster.primary
        server.rows(TABLES)
        server.set("synchronous_commit", "off")
        for rows, statements in ((settings.pick(200000, 50000), 1), (1000, settings.pick(200, 50))):
            bulk(settings, report, server, rows, statements)
        single(settings, report, server)


def insert(server, table, rows, statements):
    """-> microseconds a row"""
    server.rows(f"TRUNCATE {table}")
    begin = perf_counter()
    for _ in range(statements):
        server.rows(f"INSERT INTO {table} SELECT n, 'a note' FROM generate_series(1, {rows}) n")
    return (perf_counter() - begin) * 1e6 / rows / statements


def bulk(settings, report, server, rows, statements):
    times = interleave(settings.rounds, {
        name: lambda name=name: insert(server, name, rows, statements) for name in NAMES})
    say(report, f"INSERT of {rows:,} rows", times)


def say(report, what, times):
    report.ratio(f"{what}: pin_row / no trigger", times["pin_row"], times["none"], " µs")
    report.ratio(f"{what}: pin_row / PL/pgSQL trigger", times["pin_row"], times["plpgsql"], " µs",
                 Goal("<", 1))
    report.value(f"{what}: pin_row, a row more",
                 [a - b for a, b in zip(times["pin_row"], times["none"])], " µs")
    report.plot(what.split(":")[0].replace(" ", "_").replace(",", ""), what, "µs a row", times)


def single(settings, report, server):
    """One row, one commit, one client; the mean latency, in microseconds."""
    scripts = {name: script(f"\\set n random(1, 1000000)\nINSERT INTO {name} VALUES (:n, 'a note');")
               for name in NAMES}
    times = interleave(settings.rounds, {
        name: lambda name=name: 1e6 / pgbench(server, 1, settings.seconds, path=scripts[name])
        for name in NAMES})
    say(report, "INSERT and commit of one row, synchronous_commit = off", times)
