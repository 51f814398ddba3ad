"""usage: main.py seconds replicas

The clock of script/soak: starts writers, readers and trouble on a cluster that is
there, measures, stops them, and says what was wrong."""

import random
import sys
import threading
import time
import traceback

from cluster import PORTS, List, connect, name_replicas, wait_until
from load import SCHEMA, Checker, act
from measure import Measurements, crashes, descriptors, log_size
from readers import Listener, Reader, read
from trouble import make_trouble, sampler_pid

WRITERS = 4
READERS = 3
PERIOD = 10.0  # between measurements
# Growth from two fifths of the run to its end, however long it is.
SAMPLER = {"private kB": 128, "descriptors": None}  # descriptors: see calm()
SESSION = {"private kB": 1024, "contexts kB": 256, "descriptors": 4}
CONTEXTS = """SELECT name, sum(used_bytes)::float8 / 1024 FROM pg_backend_memory_contexts
  GROUP BY 1"""


class Run:
    def __init__(self, seconds, names):
        self.seconds = seconds
        self.names = names
        self.stop = threading.Event()
        self.checker = Checker()
        self.measurements = Measurements()
        self.failures = []
        self.threads = []
        self.sessions = {}  # who -> pid
        self.contexts = {}  # who -> { context: kB }, as the session says

    def elapsed(self):
        return time.monotonic() - self.began

    # A thread that does something again and again, on the session that it has on
    # the primary; an error ends the run.
    def repeat(self, who, connection, pause, action):
        def loop():
            asked_at = 0.0
            while not self.stop.wait(random.uniform(0, pause)):
                action()
                if self.elapsed() - asked_at > PERIOD:
                    asked_at = self.elapsed()
                    self.contexts[who] = dict(connection.execute(CONTEXTS))

        self.sessions[who] = connection.info.backend_pid
        self.start(who, loop)

    def start(self, who, function):
        def guarded():
            try:
                function()
            except Exception:
                self.failures.append(f"{who} failed: {traceback.format_exc()}")
                self.stop.set()

        self.threads.append(threading.Thread(target=guarded, name=who))

    def prepare(self):
        with connect("primary") as connection:
            connection.execute(SCHEMA)
        self.servers = List(self.names)
        for number in range(1, WRITERS + 1):
            connection = connect("primary")
            self.repeat(f"writer {number}", connection, 0.05,
                        lambda c=connection: act(c, self.checker))
        for number in range(1, READERS + 1):
            reader = Reader(self.names)
            self.repeat(f"reader {number}", reader.primary, 0.03,
                        lambda r=reader: read(r, self.checker, self.servers))
        listener = Listener(self.names)
        self.repeat("listener", listener.reader.primary, 0.02,
                    lambda: listener.read(self.checker, self.servers))
        self.start("trouble", self.trouble)
        self.calm_before = self.calm()

    def trouble(self):
        make_trouble(self.servers, self.names, self.checker,
                     lambda: self.stop.wait(random.uniform(1, 5)), self.stop,
                     lambda: self.elapsed() < self.seconds / 3)

    def measure(self, asked):
        now = self.elapsed()
        pid = asked.execute("SELECT sampler_pid FROM replica_pin.status").fetchone()[0]
        if pid is not None:
            self.measurements.add_process(now, "sampler", pid, SAMPLER)
        for who, pid in self.sessions.items():
            self.measurements.add_process(now, who, pid, SESSION)
            self.measurements.add_contexts(now, who, self.contexts.get(who), SESSION["contexts kB"])
        for name in self.names:
            self.measurements.add(now, name, "connections", sampler_connections(name))
        for name in PORTS:
            self.measurements.add(now, name, "log bytes", log_size(name))

    def go(self):
        self.began = time.monotonic()
        for thread in self.threads:
            thread.start()
        with connect("primary") as asked:
            while self.elapsed() < self.seconds and not self.stop.wait(PERIOD):
                self.measure(asked)
            self.stop.set()
            for thread in self.threads:
                thread.join()

    # What the sampler holds when all is quiet; the same before and after, also if
    # it is another process.
    def calm(self):
        for name in self.names:
            self.servers.wait_for(name)
            wait_until(f"one connection on {name}", lambda n=name: sampler_connections(n) == 1)
        return descriptors(sampler_pid(self.servers))

    def compare_calm(self):
        try:
            after = self.calm()
        except TimeoutError as error:
            return [f"when all is quiet: {error}"]
        print(f"descriptors of the sampler when all is quiet: {self.calm_before} before, {after} after")
        return [] if after == self.calm_before else ["descriptors of the sampler: not as before"]

    def report(self):
        wrong = list(self.failures)
        count = self.checker.count
        wrong += self.measurements.judge(self.seconds * 0.4)
        wrong += [] if self.failures else self.compare_calm()
        print()
        for what in sorted(count):
            print(f"{count[what]:>9} {what}")
        reads = sum(number for what, number in count.items() if what.startswith("read: "))
        print(f"{reads} protected reads on replicas, {len(self.checker.stale)} of them stale")
        wrong += [f"stale read: {read}" for read in self.checker.stale]
        wrong += [f"crash: {line}" for line in crashes(PORTS)]
        if reads == 0 or count["control: stale"] == 0:
            wrong.append("no protected read, or no stale one without protection: nothing is proved")
        return wrong


# None while it is down.
def sampler_connections(name):
    try:
        with connect(name, connect_timeout=5) as connection:
            return connection.execute("SELECT count(*) FROM pg_stat_activity"
                                      " WHERE application_name = 'replica_pin sampler'").fetchone()[0]
    except Exception:
        return None


def main(seconds, replicas):
    run = Run(float(seconds), name_replicas(int(replicas)))
    run.prepare()
    run.go()
    wrong = run.report()
    for line in wrong:
        print(f"WRONG: {line}")
    print("wrong" if wrong else "nothing is wrong")
    return 1 if wrong else 0


sys.exit(main(*sys.argv[1:]))
