"""Load generators: pgbench where it can do it, load/load where it cannot."""

import os
import re
import subprocess
import time

from cluster import BIN, WORK, wait_until

HERE = os.path.dirname(os.path.abspath(__file__))


def script(text):
    """A script's file."""
    script.count = getattr(script, "count", 0) + 1
    path = f"{WORK}/tmp/script{script.count}"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + "\n")
    return path


def pgbench(server, clients, seconds, *, path=None, settings=""):
    """A script, or pgbench -N -> transactions a second."""
    source = ["-f", path] if path else ["-N"]
    result = subprocess.run(
        [f"{BIN}/pgbench", "-n", "-M", "prepared", "-c", str(clients), "-j",
         str(min(clients, 2)), "-T", str(seconds), *source, "-h", WORK,
         "-p", str(server.port), "postgres"],
        capture_output=True, text=True, check=True, env={**os.environ, "PGOPTIONS": settings})
    rate = re.search(r"^tps = ([0-9.]+)", result.stdout, re.M)
    # a machine that is too busy to do one transaction in that time
    return float(rate[1]) if rate else pgbench(server, clients, 2 * seconds, path=path,
                                               settings=settings)


def load(path, servers, clients=1, seconds=1.0, redis=None, keys=1000):
    """-> (transactions a second, latency in us: mean, median, 99th percentile)"""
    command = [f"{HERE}/load/load", "-c", str(clients), "-T", str(seconds), "-k", str(keys)]
    if redis:
        command += ["-r", redis.path]
    dsns = [server if isinstance(server, str) else server.dsn for server in servers]
    result = subprocess.run(command + [path] + dsns, capture_output=True, text=True, check=True)
    return tuple(float(word) for word in result.stdout.split())


class BackgroundLoad:
    """pgbench -N at a rate, while the block lasts.  Begins when it really commits,
    and says how much it did: on a busy machine that is less than was asked for."""

    def __init__(self, server, rate, settings="", clients=4):
        self.server = server
        self.command = [f"{BIN}/pgbench", "-N", "-n", "-M", "prepared", "-c", str(clients), "-j",
                        "1", "-R", str(rate), "-T", "100000", "-h", WORK, "-p",
                        str(server.port), "postgres"]
        self.environment = {**os.environ, "PGOPTIONS": settings}

    def __enter__(self):
        before = self._rows()
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, env=self.environment)
        wait_until("the load", lambda: self._rows() > before)
        self.begin, self.rows_then = time.monotonic(), self._rows()
        return self

    def __exit__(self, *_):
        end(self.process)

    def _rows(self):
        return self.server.value("SELECT count(*) FROM pgbench_history")

    def rate(self):
        """Commits a second since the last call, or the beginning."""
        if self.process.poll() is not None:
            raise RuntimeError("the load ended by itself")
        now, rows = time.monotonic(), self._rows()
        rate = (rows - self.rows_then) / (now - self.begin)
        self.begin, self.rows_then = now, rows
        return rate


def fill(server, scale):
    """pgbench's tables."""
    subprocess.run([f"{BIN}/pgbench", "-i", "-q", "-s", str(scale), "-h", WORK, "-p",
                    str(server.port), "postgres"], capture_output=True, check=True)


def end(process):
    process.terminate()
    process.wait()


class Redis:
    """A server of our own on a Unix socket, without persistence."""

    def __init__(self):
        self.path = f"{WORK}/redis"

    def __enter__(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.path, "--save", "",
             "--appendonly", "no", "--dir", f"{WORK}/tmp"], stdout=subprocess.DEVNULL)
        wait_until("redis", lambda: os.path.exists(self.path))
        return self

    def __exit__(self, *_):
        end(self.process)

    def command(self, *words):
        """Through redis-cli; the reply."""
        return subprocess.run(["redis-cli", "-s", self.path, *words], check=True,
                              capture_output=True, text=True).stdout.strip()
