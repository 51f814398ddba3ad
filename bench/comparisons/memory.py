"""Bytes a key, and false pins of a full table."""

import subprocess
from statistics import median

from cluster import Cluster
from load import HERE
from measure import Goal
from plot import lines

CAPACITY = 30000
LIVE = (1, 2, 5, 10, 25, 50, 75, 100, 200, 400)
SHOWN = (1, 10, 25, 50, 100, 400)


def measure(settings, report):
    of = {keys: shared_memory(keys) for keys in (1000, 1000000)}
    report.value("shared memory a key", [(of[1000000] - of[1000]) / 999000], " bytes",
                 Goal("<=", 24))
    report.value("shared memory at the default of 262,144 keys",
                 [(shared_memory(262144)) / 1048576], " MiB")
    false_pins(settings, report)


def shared_memory(keys):
    with Cluster("p", 5500, conf=f"replica_pin.max_session_keys = {keys}", wait=False) as cluster:
        return float(cluster.primary.value("SELECT shared_memory_bytes FROM replica_pin.status"))


def simulate(live, seconds, seed):
    """-> (false pins of the decisions, the same while replay stands still, in per
    cent; false frees)"""
    result = subprocess.run(
        [f"{HERE}/sim/memory", str(CAPACITY), str(live), str(seconds), str(seed)],
        capture_output=True, text=True, check=True)
    decisions, _, pins, frees, others, still_pins, still_frees = map(int, result.stdout.split())
    return 100 * pins / decisions, 100 * still_pins / others, frees + still_frees


def false_pins(settings, report):
    seconds = settings.pick(600, 60)
    curves = {"as replay goes": [], "while replay stands still": []}
    frees = 0
    for live in LIVE:
        found = [simulate(live, seconds, seed) for seed in range(1, settings.rounds + 1)]
        frees += sum(f[2] for f in found)
        if live in SHOWN:
            report.value(f"keys {live} % of the capacity: false pins, of all decisions",
                         [f[0] for f in found], " %", Goal("<", 0.1, " %") if live <= 50 else None)
            report.value(f"keys {live} % of the capacity, all just written, replay stands still: "
                         "false pins of other keys", [f[1] for f in found[:1]], " %")
        for curve, column in zip(curves.values(), (0, 1)):
            curve.append((live, max(median(f[column] for f in found), 1e-5)))
    report.value("false \"free\", in all", [frees], "", Goal("=", 0))
    lines(f"{settings.output}/memory_false_pins", "False pins of a table",
          "keys, % of the capacity", "% of the decisions", curves, log="xy")
