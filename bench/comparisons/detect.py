"""From "every replica has replayed it" to "the key is free"."""

import subprocess

from cluster import Cluster
from load import HERE, BackgroundLoad, fill
from measure import Goal
from plot import lines

WAYS = ("is_pinned", "pg_stat_replication", "poll, 100 ms", "poll, 1 s", "poll, 5 s",
        "poll, 10 s")


def measure(settings, report):
    with Cluster("p", 5500, 3) as cluster:
        fill(cluster.primary, 1)
        cluster.wait_for_replay()
        ask(settings, report, cluster, "idle")
        with BackgroundLoad(cluster.primary, 1000, "-c replica_pin.session_key=session:7 "
                            "-c synchronous_commit=off") as writers:
            ask(settings, report, cluster, "1,000 commits/s")
            report.value("1,000 commits/s: commits a second really done", [writers.rate()], "",
                         Goal(">=", 900))
        cluster.wait_for_replay()
        for pause in (500, 2000):
            long_lag(settings, report, cluster, pause)


def events(cluster, seconds, pause=0):
    """-> [[ms to replay, ms from there by way, …], …]"""
    result = subprocess.run(
        [f"{HERE}/load/detect", str(seconds), str(pause), cluster.primary.dsn]
        + [replica.dsn for replica in cluster.replicas],
        capture_output=True, text=True, check=True)
    return [[float(word) for word in line.split()] for line in result.stdout.splitlines()]


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def ask(settings, report, cluster, what):
    """One run: every way is asked about the same commits."""
    found = events(cluster, settings.pick(40, 8))
    replay = [event[0] for event in found]
    report.note(f"{what}: {len(found)} commits, replayed by the last of three replicas "
                f"{percentile(replay, 0.5):.2f} ms (median) and {percentile(replay, 0.99):.2f} ms "
                "(99th percentile) after their answer.")
    curves = {}
    for i, way in enumerate(WAYS):
        late = [max(event[i + 1], 0.01) for event in found if event[i + 1] != -1]
        if not late:
            continue
        ours = way == "is_pinned"
        for name, share, bound in (("median", 0.5, 3), ("99th percentile", 0.99, 15)):
            report.value(f"{what}: {way}, ms after replay, {name}", [percentile(late, share)],
                         " ms", Goal("<=", bound) if ours else None)
        curves[way] = [(percentile(late, share / 200), share / 2) for share in range(0, 200)]
    path = what.replace(" ", "_").replace(",", "").replace("/", "_")
    lines(f"{report.settings.output}/detect_{path}", f"Known after replay, {what}",
          "ms after replay on the last replica", "% of commits", curves, log="x")


def long_lag(settings, report, cluster, pause):
    found = events(cluster, settings.pick(14, 3), pause)
    for i, way in enumerate(WAYS[:4]):
        shares = [max(event[i + 1], 0) / event[0] for event in found if event[i + 1] != -1]
        if shares:
            report.value(f"replay {pause} ms late: {way}, of the lag", shares, "",
                         Goal("<=", 0.1) if i == 0 else None)
