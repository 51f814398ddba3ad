"""The servers of script/soak: addresses, connections, starting and stopping, and
which replicas readers may use."""

import os
import subprocess
import threading
import time

import psycopg

WORK = os.environ["RPIN_WORK"]
PG_CTL = os.environ["RPIN_BIN"] + "/pg_ctl"
PATIENCE = 120.0
SAMPLE_LIFETIME = 2.0  # the setting in script/soak
PORTS = {"primary": 5432}


def name_replicas(count):
    for number in range(1, count + 1):
        PORTS[f"r{number}"] = 5440 + number
    return [name for name in PORTS if name != "primary"]


def connect(name, **options):
    return psycopg.connect(host=WORK, port=PORTS[name], user="postgres", dbname="postgres",
                           autocommit=True, **options)


def log_file(name):
    return f"{WORK}/{name}.log"


def postmaster_pid(name):
    with open(f"{WORK}/{name}/postmaster.pid") as file:
        return int(file.readline())


def pg_ctl(name, action, *options):
    subprocess.run([PG_CTL, "-s", "-w", "-D", f"{WORK}/{name}", "-l", log_file(name), action, *options],
                   check=True, stdout=subprocess.DEVNULL)


def wait_until(what, question):
    deadline = time.monotonic() + PATIENCE
    while not question():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited in vain: {what}")
        time.sleep(0.05)


class List:
    """The setting replica_pin.replicas, and the readers' endpoint: what a load
    balancer would have. One may read from the endpoint only under its lock."""

    def __init__(self, names):
        self.asked = connect("primary")
        self.lock = threading.Lock()
        self.endpoint = []
        self.listed = []
        for name in names:
            self.add(name)

    def write(self):
        value = ", ".join(f"{name}={WORK}:{PORTS[name]}" for name in self.listed)
        path = f"{WORK}/primary/replicas.conf"
        with open(path + ".new", "w") as file:
            file.write(f"replica_pin.replicas = '{value}'\n")
        os.replace(path + ".new", path)
        self.asked.execute("SELECT pg_reload_conf()")
        wait_until("the sampler works with the list", lambda: self.asked.execute(
            "SELECT array_agg(name::text ORDER BY name) FROM replica_pin.replicas").fetchone()[0] == self.listed)

    # First the list, then the endpoint; the other way round when removing.
    def add(self, name):
        self.listed = sorted(self.listed + [name])
        self.write()
        self.wait_for(name)
        with self.lock:
            self.endpoint.append(name)

    def remove(self, name):
        with self.lock:
            self.endpoint.remove(name)
        self.listed = [other for other in self.listed if other != name]
        self.write()

    def wait_for(self, name):
        wait_until(f"{name} is eligible", lambda: self.asked.execute(
            "SELECT bool_and(eligible) FROM replica_pin.replicas WHERE name = %s", (name,)).fetchone()[0])
