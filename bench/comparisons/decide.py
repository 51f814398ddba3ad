"""What a decision costs."""

import os
import signal
import time
from statistics import median

from cluster import Cluster, wait_until
from load import Redis, load, pgbench, script
from measure import Goal, interleave

REPLICAS = 8

# nanoseconds a call takes, over keys in an order that no cache can guess
COST = """
CREATE OR REPLACE FUNCTION pg_temp.cost(call text, keys bigint, calls integer) RETURNS float
LANGUAGE plpgsql AS $$
DECLARE
  started timestamptz := clock_timestamp();
BEGIN
  EXECUTE format($q$SELECT count(*) FROM generate_series(1, %s) n WHERE %s$q$, calls,
    replace(call, $q$key$q$, format($q$((n * 48271::bigint + %s) %% %s)::text$q$,
      (random() * 1e6)::integer, keys)));
  RETURN extract(epoch FROM clock_timestamp() - started) * 1e9 / calls;
END $$"""

CALLS = {
    "nothing": "rpin_test_nothing(key)",
    "is_pinned": "replica_pin.is_pinned(key)",
    "hash": "hashtextextended(key, 1) = 0",
}


def measure(settings, report):
    with Cluster("p", 5500, REPLICAS) as cluster, Redis() as redis:
        cluster.watch(3)
        against_select_1(settings, report, cluster)
        against_redis(settings, report, cluster, redis)
        against_stat_replication(settings, report, cluster)
        while_broken(settings, report, cluster)
    with Cluster("p", 5500, 3,
                 conf="replica_pin.max_session_keys = 16000000\nmax_connections = 60") as cluster:
        inside(settings, report, cluster)


def pin_all(server, keys, first=0, prefix=""):
    step = 100000
    for begin in range(first, keys, step):
        server.rows("SELECT replica_pin.pin_all(array_agg(%s || n::text)) "
                    "FROM generate_series(%s, %s) n", prefix, begin, min(begin + step, keys) - 1)


def against_select_1(settings, report, cluster):
    """A prepared statement's round trip, with nothing in it and with a decision."""
    server = cluster.primary
    pin_all(server, 1000)
    cluster.wait_for_replay()
    wait_until("free keys", lambda: not server.value("SELECT replica_pin.is_pinned('1')"))
    key = "\\set n random(0, 999)\n"
    scripts = {
        "SELECT 1": script(key + "SELECT 1;"),
        "is_pinned": script(key + "SELECT replica_pin.is_pinned(:n);"),
        "route": script(key + "SELECT * FROM replica_pin.route(:n);"),
    }
    shown = {}
    for clients in (1, 2, 8):
        rates = interleave(settings.rounds, {
            name: lambda path=path: pgbench(server, clients, settings.seconds, path=path)
            for name, path in scripts.items()})
        plural = "client" if clients == 1 else "clients"
        report.ratio(f"is_pinned / SELECT 1, {clients} {plural}", rates["is_pinned"],
                     rates["SELECT 1"], "/s", Goal(">=", 0.95))
        report.ratio(f"route / SELECT 1, {clients} {plural}", rates["route"],
                     rates["SELECT 1"], "/s", Goal(">=", 0.90))
        shown.update({f"{name}, {clients}": values for name, values in rates.items()})
    report.plot("select_1", "A round trip, by clients", "per second", shown)


def against_redis(settings, report, cluster, redis):
    """The position from Redis and one query a replica, or one call of ours."""
    server = cluster.primary
    position = server.value("SELECT pg_current_wal_flush_lsn()::text")
    pin_all(server, 1000, prefix="user:")
    cluster.wait_for_replay()
    load(script(f"seed {position}\nset"), [], seconds=0.5, redis=redis)

    seconds = settings.pick(1.5, 0.5)
    route = script("0:k SELECT * FROM replica_pin.route($1)")
    balancer = {n: script(f"seed {position}\nget\n" + "\n".join(
        f"{i + 1}:l SELECT pg_wal_lsn_diff(pg_last_wal_replay_lsn(), $1::pg_lsn) >= 0"
        for i in range(n))) for n in (1, 2, 4, 8)}

    def watching(n, path, servers, **more):
        cluster.watch(n)
        return load(path, servers, seconds=seconds, **more)[0]

    variants = {}
    for n, path in balancer.items():
        variants["route", n] = lambda n=n: watching(n, route, [server])
        variants["balancer", n] = lambda n=n, path=path: watching(
            n, path, [server] + cluster.replicas[:n], redis=redis)
    rates = interleave(settings.rounds, variants)
    for n in balancer:
        report.ratio(f"route / Redis GET and {n} replica quer{'y' if n == 1 else 'ies'}",
                     rates["route", n], rates["balancer", n], "/s",
                     Goal(">=", 2.5) if n == 2 else None)
    report.ratio("route with 8 replicas / with 1", rates["route", 8], rates["route", 1], "/s",
                 Goal(">=", 0.9))
    report.plot("redis", "One decision, by replicas", "per second",
                {f"{name}, {n}": values for (name, n), values in rates.items()})

    cluster.watch(2)
    redis.command("FLUSHALL")
    get = script("get")
    select_1 = script("0 SELECT 1")
    never = script("0:k SELECT * FROM replica_pin.route($1)")
    alone = interleave(settings.rounds, {
        "route": lambda: load(never, [server], seconds=seconds, keys=1000000)[0],
        "get": lambda: load(get, [], seconds=seconds, redis=redis)[0],
        "select 1": lambda: load(select_1, [server], seconds=seconds)[0]})
    report.ratio("route of a key not written / Redis GET alone", alone["route"], alone["get"], "/s")
    report.ratio("SELECT 1 / Redis GET alone", alone["select 1"], alone["get"], "/s")


def against_stat_replication(settings, report, cluster):
    server = cluster.primary
    cluster.watch(3)
    key = "\\set n random(0, 999)\n"
    route = script(key + "SELECT * FROM replica_pin.route(:n);")
    view = script("SELECT min(replay_lsn) FROM pg_stat_replication;")
    rates = interleave(settings.rounds, {
        "route": lambda: pgbench(server, 1, settings.seconds, path=route),
        "view": lambda: pgbench(server, 1, settings.seconds, path=view)})
    report.ratio(f"route / min(replay_lsn) of pg_stat_replication ({REPLICAS} standbys)",
                 rates["route"], rates["view"], "/s", Goal(">=", 1.5))


def while_broken(settings, report, cluster):
    """A replica that does not answer any more, and a sampler that does not run."""
    server = cluster.primary
    cluster.watch(3)
    route = script("0:k SELECT * FROM replica_pin.route($1)")
    seconds = settings.pick(1.0, 0.5)

    def rate():
        return load(route, [server], seconds=seconds)[0]

    healthy, hung, stopped = [], [], []
    sampler = server.value("SELECT sampler_pid FROM replica_pin.status")
    for _ in range(settings.rounds):
        healthy.append(rate())
        cluster.replicas[1].freeze()
        try:
            hung.append(rate())
        finally:
            cluster.replicas[1].thaw()
        cluster.wait_for_samples(3)
        healthy.append(rate())
        os.kill(sampler, signal.SIGSTOP)
        try:
            stopped.append(rate())
        finally:
            os.kill(sampler, signal.SIGCONT)
        cluster.wait_for_samples(3)
    report.ratio("route, a replica hangs / healthy", hung, healthy[0::2], "/s", Goal(">=", 0.9))
    report.ratio("route, the sampler is stopped / healthy", stopped, healthy[1::2], "/s",
                 Goal(">=", 0.9))
    os.kill(sampler, signal.SIGSTOP)
    try:
        wait_until("stale samples", lambda: server.value(
            "SELECT reason FROM replica_pin.route('user:1')") == "samples_stale")
        stale = [rate() for _ in range(settings.rounds)]
    finally:
        os.kill(sampler, signal.SIGCONT)
    cluster.wait_for_samples(3)
    report.ratio("route, the sampler stopped for long, samples stale / healthy", stale,
                 healthy[1::2], "/s")


def inside(settings, report, cluster):
    """In a loop inside one statement; with and without a replica that is behind."""
    server = cluster.primary
    calls = settings.pick(300000, 100000)
    server.rows(COST)
    keys_before = 0
    net = {}
    lagging = cluster.replicas[2]
    for keys in settings.pick((1000, 1000000, 10000000), (1000, 1000000)):
        pin_all(server, keys, keys_before)
        keys_before = keys
        cluster.wait_for_replay()
        wait_until("free keys", lambda: not server.value("SELECT replica_pin.is_pinned('1')"))
        costs = rounds_inside(settings, server, keys, calls)
        shown = f"{keys:,} keys, all replicas caught up"
        say_inside(report, shown, costs, Goal("<=", 1.5) if keys == 1000 else None)

        lagging.rows("SELECT pg_wal_replay_pause()")
        wait_until("the pause", lambda: lagging.value(
            "SELECT pg_get_wal_replay_pause_state()") == "paused")
        server.rows("SELECT pg_logical_emit_message(true, 'bench', 'x')")
        server.rows("SELECT replica_pin.pin('written now')")
        costs = rounds_inside(settings, server, keys, calls)
        net[keys] = say_inside(report, f"{keys:,} keys, another key is pinned", costs, None)
        lagging.rows("SELECT pg_wal_replay_resume()")
    least, most = min(net), max(net)
    report.ratio(f"is_pinned over nothing, the bucket read: {most:,} keys / {least:,}",
                 net[most], net[least], " ns", Goal("<=", 4))
    report.plot("inside", "is_pinned over a call of nothing, another key pinned", "ns",
                {f"{keys:,} keys": values for keys, values in net.items()})


def rounds_inside(settings, server, keys, calls):
    return interleave(settings.rounds, {
        name: lambda call=call: server.value("SELECT pg_temp.cost(%s, %s, %s)", call, keys, calls)
        for name, call in CALLS.items()})


def say_inside(report, what, costs, goal):
    """-> nanoseconds over a function that does nothing, per round"""
    net = [a - b for a, b in zip(costs["is_pinned"], costs["nothing"])]
    report.ratio(f"is_pinned / hashtextextended, a call, {what}", costs["is_pinned"],
                 costs["hash"], " ns", goal)
    report.value(f"is_pinned over a function that does nothing, {what}", net, " ns")
    report.note(f"{what}: a call of nothing {median(costs['nothing']):.0f} ns, hashtextextended "
                f"{median(costs['hash']):.0f} ns, is_pinned {median(costs['is_pinned']):.0f} ns.")
    return net
