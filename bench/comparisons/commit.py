"""What capture adds to a commit, and what the other ways of keeping its position do."""

import re
import shutil
import subprocess
from statistics import median

from cluster import BIN, WORK, Cluster, run
from load import Redis, fill, load, pgbench, script
from measure import Goal, interleave

KEY = "-c replica_pin.session_key=session:42"
PUSH = KEY + " -c replica_pin.report_commit_token=on"

# the transaction of pgbench -N
TRANSACTION = """0 BEGIN
0:nn UPDATE pgbench_accounts SET abalance = abalance + $1::int WHERE aid = $2::int
0:n SELECT abalance FROM pgbench_accounts WHERE aid = $1::int
0:n INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 1, $1::int, 1, now())
0 END
"""

# what is done after it to remember its position, by way
AFTER = {
    "Redis SET": "seed 0/1000000\nset",
    "pg_current_wal_insert_lsn() and Redis SET": "0 SELECT pg_current_wal_insert_lsn()\nset",
    "upsert into an unlogged table": "0:k INSERT INTO position VALUES ($1, "
    "pg_current_wal_insert_lsn()) ON CONFLICT (key) DO UPDATE SET lsn = excluded.lsn",
}


def measure(settings, report):
    instructions(report)
    with Cluster("with", 5500, 1) as ours, \
            Cluster("without", 5520, 1, library=False,
                    conf="synchronous_standby_names = '*'\nsynchronous_commit = local") as theirs, \
            Redis() as redis:
        for cluster in (ours, theirs):
            fill(cluster.primary, settings.pick(10, 1))
        theirs.primary.rows("CREATE UNLOGGED TABLE position (key text PRIMARY KEY, lsn pg_lsn)")
        for mode in ("off", "local"):
            shown = {}
            for clients in (1, 8):
                shown.update(against_none(settings, report, ours.primary, theirs.primary,
                                          mode, clients))
            report.plot(f"none_{mode}", f"pgbench -N, synchronous_commit = {name(mode)}",
                        "transactions/s", shown)
            for clients in (1, 8):
                against_others(settings, report, ours.primary, theirs.primary, redis,
                               mode, clients)


def name(mode):
    """Without a synchronous standby "local" is what "on" does."""
    return {"local": "on", "off": "off"}[mode]


def against_none(settings, report, ours, theirs, mode, clients):
    """What is looked for is smaller than what a disk varies by: many short rounds."""
    sync = f"-c synchronous_commit={mode} "
    rates = interleave(settings.pick(25, 2), {
        "no library": lambda: pgbench(theirs, clients, 1, settings=sync),
        "capture": lambda: pgbench(ours, clients, 1, settings=sync + KEY),
        "token push": lambda: pgbench(ours, clients, 1, settings=sync + PUSH)})
    where = f"synchronous_commit = {name(mode)}, {clients} client{'s' if clients > 1 else ''}"
    for way in ("capture", "token push"):
        report.ratio(f"{way} / no library, {where}", rates[way], rates["no library"], "/s",
                     Goal(">=", 0.98))
    return {f"{way}, {clients}": values for way, values in rates.items()}


def against_others(settings, report, ours, theirs, redis, mode, clients):
    sync = f"-c synchronous_commit={mode}"
    plain = script(TRANSACTION)
    seconds = settings.pick(1.5, 0.5)

    def way_of(path, dsn):
        return lambda: load(path, [dsn], clients=clients, seconds=seconds, redis=redis)

    ways = {"ours": way_of(plain, ours.dsn_with(f"{sync} {PUSH}"))}
    for way, steps in AFTER.items():
        ways[way] = way_of(script(TRANSACTION + steps), theirs.dsn_with(sync))
    if mode == "local":
        ways["synchronous_commit = remote_apply"] = \
            way_of(plain, theirs.dsn_with("-c synchronous_commit=remote_apply"))
    results = interleave(settings.rounds, ways)
    where = f"synchronous_commit = {name(mode)}, {clients} client{'s' if clients > 1 else ''}"
    rates = {way: [r[0] for r in rounds] for way, rounds in results.items()}
    for way in list(ways)[1:]:
        report.ratio(f"capture and token push / {way}, {where}", rates["ours"], rates[way], "/s",
                     Goal(">", 1))
    report.note(f"Latency, {where} (mean / median / 99th percentile, µs): " + "; ".join(
        f"{way} " + " / ".join(f"{median(r[i] for r in rounds):,.0f}" for i in (1, 2, 3))
        for way, rounds in results.items()) + ".")
    report.plot(f"others_{mode}_{clients}", f"The same transaction, {where}", "transactions/s",
                rates)


def instructions(report):
    """INSERT and commit in a standalone backend, counted by valgrind: what they
    take, whatever the machine does.  Twice as many the second time; the
    difference is theirs."""
    counts = {}
    for way, options in (("without", []), ("with", [
            "-c", "shared_preload_libraries=replica_pin", "-c",
            "replica_pin.session_key=user:42"])):
        data = f"{WORK}/single"
        run(f"{BIN}/initdb", "-D", data, "-A", "trust", "-N")
        count_instructions(data, [], ["CREATE TABLE t (i integer)"])
        few, many = (count_instructions(data, options, ["INSERT INTO t VALUES (1)"] * n)
                     for n in (500, 1500))
        counts[way] = (many - few) / 1000
        shutil.rmtree(data)
    report.ratio("instructions of INSERT and commit, with a key / no library",
                 [counts["with"]], [counts["without"]])
    report.note(f"Capture of one key takes {counts['with'] - counts['without']:,.0f} instructions "
                "of a commit.")


def count_instructions(data, options, statements):
    result = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", f"{BIN}/postgres",
         "--single", "-c", "synchronous_commit=off", "-c", "autovacuum=off", *options, "-D", data,
         "postgres"], input="\n".join(statements) + "\n", capture_output=True, text=True,
        check=True)
    return int(re.search(r"Collected : (\d+)", result.stderr)[1])
