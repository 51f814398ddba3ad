"""How often the sampler asks, and what that costs."""

import time

from cluster import Cluster, wait_until
from load import BackgroundLoad, fill
from measure import Goal

SESSION = "-c replica_pin.session_key=session:7 -c synchronous_commit=off"


def measure(settings, report):
    with Cluster("p", 5500, 4) as cluster:
        fill(cluster.primary, 1)
        cluster.wait_for_replay()
        for entries in (3, 32):
            cluster.watch(min(entries, 4), entries)
            say(settings, report, cluster, f"{entries} replicas, idle", entries,
                Goal("<=", 5), Goal("<=", 0.3, " %") if entries == 3 else None)
            with BackgroundLoad(cluster.primary, 1000, SESSION) as writers:
                say(settings, report, cluster, f"{entries} replicas, 1,000 commits/s", entries,
                    None, Goal("<=", 10, " %") if entries == 32 else None, writers=writers)
            cluster.wait_for_replay()
        report.note("32 replicas are 32 entries, each with a connection of its own, over four "
                    "standbys.")
        cluster.watch(3)
        an_hour_behind(settings, report, cluster)


def an_hour_behind(settings, report, cluster):
    """Behind for some seconds, as after an hour: the pace does not change any more."""
    late = cluster.replicas[2]
    late.set("recovery_min_apply_delay", "1h")
    cluster.primary.rows("CREATE TABLE note (body text)")
    cluster.primary.rows("SELECT replica_pin.pin('note:1')")
    wait_until("lag", lambda: cluster.primary.value(
        "SELECT coalesce(max(lag), '0') > '4 s' FROM replica_pin.replicas"))
    say(settings, report, cluster, "one of 3 has an hour of lag, a key waits", 3, Goal("<=", 5),
        None)
    with BackgroundLoad(cluster.primary, 1000, SESSION) as writers:
        say(settings, report, cluster, "the late one, 1,000 commits/s", 1, Goal("<=", 5), None,
            "WHERE name = 'r3'", writers)


def read(cluster, where):
    """-> (time, samples, nanoseconds of the sampler)"""
    samples, pid = cluster.primary.rows(
        "SELECT (SELECT sum(samples) FROM replica_pin.replicas " + where + "), sampler_pid "
        "FROM replica_pin.status")[0]
    with open(f"/proc/{pid}/schedstat", encoding="utf-8") as file:
        return time.monotonic(), float(samples), int(file.read().split()[0])


def say(settings, report, cluster, what, entries, rate_goal, core_goal, where="",
        writers=None):
    """Windows in a row: one of them is one round."""
    rates, cores, commits = [], [], []
    for _ in range(settings.rounds):
        if writers:
            writers.rate()
        begin = read(cluster, where)
        time.sleep(settings.pick(3, 1))
        end_ = read(cluster, where)
        if writers:
            commits.append(writers.rate())
        seconds = end_[0] - begin[0]
        rates.append((end_[1] - begin[1]) / seconds / entries)
        cores.append((end_[2] - begin[2]) / seconds / 1e9 * 100)
    report.value(f"{what}: samples a second and replica", rates, "", rate_goal)
    report.value(f"{what}: the sampler, of a core", cores, " %", core_goal)
    if writers:
        report.value(f"{what}: commits a second really done", commits, "", Goal(">=", 900))
