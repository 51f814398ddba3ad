"""What happens to the servers of script/soak, one thing after the other."""

import os
import random
import signal

from cluster import connect, pg_ctl, wait_until


def stopped(servers, name, rest, mode="fast"):
    pg_ctl(name, "stop", "-m", mode)
    rest()
    pg_ctl(name, "start")
    servers.wait_for(name)


def crashed(servers, name, rest):
    stopped(servers, name, rest, "immediate")


def paused(_servers, name, rest):
    with connect(name) as connection:
        connection.execute("SELECT pg_wal_replay_pause()")
        rest()
        connection.execute("SELECT pg_wal_replay_resume()")


def taken_out(servers, name, rest):
    servers.remove(name)
    rest()
    servers.add(name)


TROUBLES = (stopped, crashed, paused, taken_out)


def sampler_pid(servers):
    return servers.asked.execute("SELECT sampler_pid FROM replica_pin.status").fetchone()[0]


def terminate_sampler(servers, names, checker):
    before = sampler_pid(servers)
    if before is not None:
        os.kill(before, signal.SIGTERM)
        checker.counted("trouble: sampler terminated")
        wait_until("another sampler runs", lambda: sampler_pid(servers) not in (None, before))
    for name in names:
        servers.wait_for(name)


# terminating() says whether the sampler may still be terminated: what is measured
# of it is one process.
def make_trouble(servers, names, checker, rest, stop, terminating):
    while not stop.is_set():
        trouble = random.choice(TROUBLES)
        trouble(servers, random.choice(names), rest)
        checker.counted(f"trouble: {trouble.__name__}")
        if terminating():
            terminate_sampler(servers, names, checker)
        rest()
