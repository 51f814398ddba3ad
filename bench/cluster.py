"""Clusters in the temporary folder: a primary and streaming replicas."""

import contextlib
import os
import shutil
import signal
import subprocess
import time

import psycopg2

WORK = os.environ["RPIN_WORK"]
BIN = os.environ["RPIN_BIN"]
PATIENCE = 120

COMMON = """
listen_addresses = ''
unix_socket_directories = '{work}'
max_connections = 60
max_wal_senders = 20
max_wal_size = 8GB
wal_keep_size = 4GB
checkpoint_timeout = 1h
autovacuum = off
log_checkpoints = off
shared_buffers = {buffers}
"""


def run(*command, **more):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **more)


def wait_until(what, condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited for {what}")
        time.sleep(0.02)


class Server:
    def __init__(self, name, port, conf=""):
        self.name, self.port = name, port
        self.data = f"{WORK}/{name}"
        self.conf = conf
        self._connection = None

    @property
    def dsn(self):
        return f"host={WORK} port={self.port} dbname=postgres user=postgres"

    def dsn_with(self, options):
        """With settings of the session: "-c name=value -c …"."""
        return f"{self.dsn} options='{options}'"

    def start(self, buffers="256MB"):
        with open(f"{self.data}/postgresql.conf", "a", encoding="utf-8") as file:
            file.write(COMMON.format(work=WORK, buffers=buffers))
            file.write(f"port = {self.port}\n{self.conf}\n")
        self.control("-w", "start")

    def control(self, *words):
        run(f"{BIN}/pg_ctl", "-s", "-D", self.data, "-l", f"{self.data}.log", *words)

    def drop(self):
        self.disconnect()
        if os.path.exists(f"{self.data}/postmaster.pid"):
            self.control("-w", "-m", "immediate", "stop")
        shutil.rmtree(self.data, ignore_errors=True)

    def connect(self):
        connection = psycopg2.connect(self.dsn)
        connection.autocommit = True
        return connection

    def disconnect(self):
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def rows(self, query, *parameters):
        if self._connection is None:
            self._connection = self.connect()
        with self._connection.cursor() as cursor:
            cursor.execute(query, parameters or None)
            return cursor.fetchall() if cursor.description else []

    def value(self, query, *parameters):
        return self.rows(query, *parameters)[0][0]

    def set(self, name, value):
        """A setting of the running server."""
        self.rows(f"ALTER SYSTEM SET {name} = '{value}'")
        self.rows("SELECT pg_reload_conf()")
        wait_until(name, lambda: self._has(name, value))

    def _has(self, name, value):
        # seen by a new session, so by everybody soon
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT setting FROM pg_file_settings WHERE name = %s "
                           "AND applied", (name,))
            row = cursor.fetchone()
        return row is not None and row[0] == str(value)

    def processes(self):
        """The postmaster and all beneath it."""
        with open(f"{self.data}/postmaster.pid", encoding="utf-8") as file:
            first = int(file.readline())
        with open(f"/proc/{first}/task/{first}/children", encoding="utf-8") as file:
            return [first] + [int(pid) for pid in file.read().split()]

    def signal(self, number):
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def freeze(self):
        self.signal(signal.SIGSTOP)

    def thaw(self):
        self.signal(signal.SIGCONT)


class Cluster:
    """A primary, with the library or without, and its replicas."""

    def __init__(self, name, port, replicas=0, library=True, conf="", wait=True):
        self.library = library
        self.names = [f"r{i + 1}" for i in range(replicas)]
        if library:
            conf = ("shared_preload_libraries = 'replica_pin'\n"
                    f"replica_pin.replicas = '{self.listing(port, replicas)}'\n" + conf)
        self.primary = Server(name, port, conf)
        self.replicas = [Server(f"{name}_r{i + 1}", port + 1 + i) for i in range(replicas)]
        run(f"{BIN}/initdb", "-D", self.primary.data, "-A", "trust", "-N", "-U", "postgres")
        self.primary.start()
        if library:
            self.primary.rows("CREATE EXTENSION replica_pin")
            self.primary.rows("CREATE EXTENSION rpin_test")
        for replica in self.replicas:
            run(f"{BIN}/pg_basebackup", "-N", "-D", replica.data, "-R", "-c", "fast",
                "-d", self.primary.dsn)
            replica.start(buffers="128MB")
        if library and wait:
            self.wait_for_samples(replicas)

    @staticmethod
    def listing(port, replicas, entries=None):
        return ", ".join(f"r{i + 1}={WORK}:{port + 1 + i % replicas}"
                         for i in range(replicas if entries is None else entries))

    def watch(self, replicas, entries=None):
        """Lists the first replicas only, or so many entries over them."""
        self.primary.set("replica_pin.replicas",
                         self.listing(self.primary.port, replicas, entries))
        self.wait_for_samples(replicas if entries is None else entries)

    def wait_for_samples(self, count):
        wait_until(f"{count} eligible replicas", lambda: self.primary.rows(
            "SELECT count(*), count(*) FILTER (WHERE eligible) "
            "FROM replica_pin.replicas")[0] == (count, count))

    def wait_for_replay(self):
        end = self.primary.value("SELECT pg_current_wal_insert_lsn()")
        self.primary.rows("SELECT pg_logical_emit_message(true, 'bench', 'x')")
        for replica in self.replicas:
            wait_until(f"replay of {replica.name}", lambda server=replica: server.value(
                "SELECT pg_last_wal_replay_lsn() >= %s", end))

    def drop(self):
        for server in self.replicas + [self.primary]:
            server.drop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.drop()
