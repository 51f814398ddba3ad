"""Runs the comparisons that are named, and writes what they found."""

import argparse
import importlib
import platform
import signal
import subprocess
import sys
import time
import traceback

import cluster
from measure import Report, Settings


def machine():
    def first(path, name):
        with open(path, encoding="utf-8") as file:
            for line in file:
                if line.startswith(name):
                    return line.split(":", 1)[1].strip()
        return "unknown"

    cpus = subprocess.run(["nproc"], capture_output=True, text=True, check=True).stdout.strip()
    memory = int(first("/proc/meminfo", "MemTotal").split()[0]) / 1024 / 1024
    version = subprocess.run([f"{cluster.BIN}/postgres", "--version"],
                             capture_output=True, text=True, check=True).stdout.strip()
    with open("/proc/loadavg", encoding="utf-8") as file:
        load = file.read().split()[0]
    return (f"{cpus} × {first('/proc/cpuinfo', 'model name')}, {memory:.0f} GiB, "
            f"Linux {platform.release()}, {version}, an ordinary build; servers and clients on "
            f"this one machine, over Unix sockets; load average at the start {load}.")


def run_one(name, settings):
    """-> (report, failed)"""
    print(f"\n== {name}", flush=True)
    report = Report(name, settings)
    begin = time.monotonic()
    failed = False
    try:
        importlib.import_module(f"comparisons.{name}").measure(settings, report)
    except Exception:  # pylint: disable=broad-except
        failed = True
        traceback.print_exc()
        report.note(f"**Failed**: {sys.exc_info()[1]}")
    report.csv()
    print(f"-- {name}: {'FAILED, ' if failed else ''}{time.monotonic() - begin:.0f} s", flush=True)
    return report, failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", required=True)
    parser.add_argument("names", nargs="+")
    arguments = parser.parse_args()

    # ended from outside, what is frozen must be thawed and stopped all the same
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    settings = Settings(arguments.quick, arguments.output)
    text = ["## Measured", ""]
    if settings.quick:
        text += ["With `--quick`: **too short to be quoted**.", ""]
    text += [f"`script/bench {' '.join(arguments.names)}`, {time.strftime('%Y-%m-%d')}. "
             f"{machine()} {settings.rounds} rounds, in turns; medians.", ""]
    reports = [run_one(name, settings) for name in arguments.names]
    text += [report.markdown() for report, _ in reports]
    text = "\n".join(text).rstrip() + "\n"
    with open(f"{settings.output}/measured.md", "w", encoding="utf-8") as file:
        file.write(text)
    print("\n" + text, flush=True)
    failed = [report.name for report, bad in reports if bad]
    print(f"{len(reports) - len(failed)} comparisons measured, {len(failed)} failed"
          + (f": {', '.join(failed)}" if failed else ""), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
