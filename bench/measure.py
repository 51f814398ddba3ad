"""Rounds in turns, and what they say."""

import statistics

from plot import bars


class Settings:
    """How much is measured: the whole, or quickly to see that it runs."""

    def __init__(self, quick, output):
        self.quick, self.output = quick, output
        self.rounds = 2 if quick else 7
        self.seconds = 1 if quick else 2

    def pick(self, whole, quick):
        return quick if self.quick else whole


def interleave(rounds, variants):
    """Calls every function once a round, the order reversed every other round.

    {name: function} -> {name: [what it answered, per round]}"""
    results = {name: [] for name in variants}
    names = list(variants)
    for _ in range(rounds):
        for name in names:
            results[name].append(variants[name]())
        names.reverse()
    return results


def ratios(ours, theirs):
    return [a / b for a, b in zip(ours, theirs)]


def number(value):
    """Three digits that mean something."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.3g}"


class Goal:
    """A bound: Goal('>=', 0.95), and whether a figure reaches it."""

    def __init__(self, sign, bound, unit=""):
        self.sign, self.bound, self.unit = sign, bound, unit

    def reached(self, value):
        return {">=": value >= self.bound, "<=": value <= self.bound,
                "<": value < self.bound, ">": value > self.bound,
                "=": value == self.bound}[self.sign]

    def __str__(self):
        signs = {">=": "≥", "<=": "≤"}
        return f"{signs.get(self.sign, self.sign)} {number(self.bound)}{self.unit}"


class Report:
    """The figures of one comparison, as they come."""

    header = ("what", "ours", "theirs", "ratio or value", "min – max", "goal", "")

    def __init__(self, name, settings):
        self.name, self.settings = name, settings
        self.rows, self.notes, self.plots = [], [], []

    def ratio(self, what, ours, theirs, unit="", goal=None):
        """ours / theirs, in pairs; a rate or a time, as the goal says."""
        pairs = ratios(ours, theirs)
        self._add(what, number(statistics.median(ours)) + unit,
                  number(statistics.median(theirs)) + unit, pairs, "", goal)
        return statistics.median(pairs)

    def value(self, what, values, unit="", goal=None):
        self._add(what, "", "", values, unit, goal)
        return statistics.median(values)

    def _add(self, what, ours, theirs, values, unit, goal):
        middle = statistics.median(values)
        verdict = "" if goal is None else "reached" if goal.reached(middle) else "**not reached**"
        spread = "" if len(values) == 1 else f"{number(min(values))} – {number(max(values))}"
        row = (what, ours, theirs, number(middle) + unit, spread,
               "" if goal is None else str(goal), verdict)
        self.rows.append(row)
        print("  " + " | ".join(cell for cell in row if cell), flush=True)

    def note(self, text):
        self.notes.append(text)
        print("  " + text, flush=True)

    def plot(self, name, title, unit, series, **more):
        """A plot of medians and spreads: {label: [values]}."""
        bars(f"{self.settings.output}/{self.name}_{name}", title, unit, series, **more)
        self.plots.append(f"{self.name}_{name}.svg")

    def markdown(self):
        lines = [f"### {self.name}", ""]
        if self.rows:
            lines += ["| " + " | ".join(self.header) + " |",
                      "|" + "---|" * len(self.header)]
            lines += ["| " + " | ".join(row) + " |" for row in self.rows]
            lines.append("")
        for note in self.notes:
            lines += [note, ""]
        return "\n".join(lines)

    def csv(self):
        with open(f"{self.settings.output}/{self.name}.csv", "w", encoding="utf-8") as file:
            for row in (self.header[:-1] + ("reached",),) + tuple(self.rows):
                file.write(",".join('"' + cell.replace('"', '""') + '"' for cell in row) + "\n")
