"""Reads that stay on replicas, by rule; simulated, on the objects of src/core."""

import subprocess
from statistics import median

from load import HERE
from measure import Goal


def trace(seconds, seed):
    """-> {rule: (share of the reads on replicas in per cent, stale reads)}"""
    result = subprocess.run([f"{HERE}/sim/offload", str(seconds), str(seed)],
                            capture_output=True, text=True, check=True)
    found = {}
    for line in result.stdout.splitlines():
        rule, reads, on_replica, stale = line.split(";")
        found[rule] = (100 * int(on_replica) / int(reads), int(stale))
    return found


def measure(settings, report):
    seconds = settings.pick(3600, 1800)
    traces = [trace(seconds, seed) for seed in range(1, settings.rounds + 1)]
    rules = {rule: ([t[rule][0] for t in traces], sum(t[rule][1] for t in traces))
             for rule in traces[0]}
    best = max((median(shares) for rule, (shares, stale) in rules.items()
                if stale == 0 and rule not in ("route", "is_pinned")), default=0)
    for rule, (shares, stale) in rules.items():
        ours = rule in ("route", "is_pinned")
        report.value(f"{rule}: reads on replicas", shares, " %",
                     Goal(">", best, " %") if ours else None)
        report.value(f"{rule}: stale reads in all", [stale], "", Goal("=", 0) if ours else None)
    report.note(f"{len(traces)} traces of {seconds} s; the goal of the share is the best of the "
                "other rules that have no stale read.")
    report.plot("share", "Reads that stay on replicas", "%",
                {f"{rule} ({stale:,} stale)": shares for rule, (shares, stale) in rules.items()})
