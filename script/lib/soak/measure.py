"""What script/soak measures of processes, and what it makes of it."""

import os
import re

from cluster import log_file



def memory(pid):
    """Private memory, proportional and resident set, in kB."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        size = dict(re.findall(r"^(\w+): +(\d+) kB", file.read(), re.M))
    return {"private": int(size["Anonymous"]), "pss": int(size["Pss"]), "rss": int(size["Rss"])}


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def slope(points):
    """Least squares, per second."""
    mean_t = sum(t for t, _ in points) / len(points)
    mean_v = sum(v for _, v in points) / len(points)
    square = sum((t - mean_t) ** 2 for t, _ in points)
    return sum((t - mean_t) * (v - mean_v) for t, v in points) / square if square else 0.0


class Series:
    """The measurements of one thing. Only those from begin on are judged: by then
    caches are filled."""

    def __init__(self, allowed):
        self.allowed = allowed  # growth from begin to the end; None: only shown
        self.points = []

    def row(self, begin):
        points = [point for point in self.points if point[0] >= begin]
        if len(points) < 3:
            return None
        per_second = slope(points)
        growth = per_second * (points[-1][0] - points[0][0])
        return {"first": points[0][1], "last": points[-1][1], "greatest": max(v for _, v in points),
                "per hour": per_second * 3600, "growth": growth, "allowed": self.allowed,
                "wrong": self.allowed is not None and growth > self.allowed}


class Measurements:
    def __init__(self):
        self.series = {}
        self.contexts = {}

    def add(self, now, who, what, value, allowed=None):
        if value is not None:
            self.series.setdefault((who, what), Series(allowed)).points.append((now, value))

    def add_process(self, now, who, pid, allowed):
        try:
            for what, value in memory(pid).items():
                self.add(now, who, f"{what} kB", value, allowed["private kB"] if what == "private" else None)
            self.add(now, who, "descriptors", descriptors(pid), allowed["descriptors"])
        except (FileNotFoundError, ProcessLookupError):
            pass

    # By name, to tell which of them grew.
    def add_contexts(self, now, who, sizes, allowed):
        if sizes:
            self.add(now, who, "contexts kB", sum(sizes.values()), allowed)
            self.contexts.setdefault(who, []).append((now, sizes))

    def grown_contexts(self, who, begin):
        first, last = [[sizes for now, sizes in self.contexts[who] if now >= begin][i] for i in (0, -1)]
        growth = {name: size - first.get(name, 0) for name, size in last.items()}
        most = sorted(growth, key=growth.get, reverse=True)[:3]
        return ", ".join(f"{name} {growth[name]:.1f}" for name in most)

    def judge(self, begin):
        """Prints the table; what is wrong."""
        wrong = []
        form = "{:<12} {:<14} {:>10} {:>10} {:>10} {:>10} {:>10} {:>9}  {}"
        print(form.format("who", "what", "first", "last", "greatest", "per hour", "growth", "allowed", ""))
        for (who, what), series in self.series.items():
            row = series.row(begin)
            if row is None:
                if series.allowed is not None:
                    wrong.append(f"{who}, {what}: not measured often enough")
                continue
            numbers = [f"{row[name]:.0f}" for name in ("first", "last", "greatest")]
            numbers += [f"{row[name]:.1f}" for name in ("per hour", "growth")]
            print(form.format(who, what, *numbers, "" if series.allowed is None else series.allowed,
                              "GROWS" if row["wrong"] else ""))
            if row["wrong"]:
                wrong.append(f"{who}, {what}: grew by {row['growth']:.1f}, {series.allowed} is allowed")
                if what == "contexts kB":
                    wrong.append(f"{who}, contexts that grew: {self.grown_contexts(who, begin)}")
        return wrong


CRASH = re.compile(rb"^.*(?:PANIC:|TRAP:|was terminated by signal|reinitializing).*$", re.M)


def crashes(names):
    found = []
    for name in names:
        with open(log_file(name), "rb") as file:
            found += [f"{name}: {line.decode(errors='replace')}" for line in CRASH.findall(file.read())]
    return found


def log_size(name):
    return os.path.getsize(log_file(name))
