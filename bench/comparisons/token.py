"""A read on a replica behind require, in one round trip, against the read."""

from cluster import Cluster
from load import fill, pgbench, script
from measure import Goal, interleave

SET = "\\set n random(1, 100000)\n"
READ = "SELECT abalance FROM pgbench_accounts WHERE aid = :n;\n"


def measure(settings, report):
    with Cluster("p", 5500, 1) as cluster:
        fill(cluster.primary, 1)
        token = cluster.primary.value("SELECT replica_pin.current_token()")
        cluster.wait_for_replay()
        replica = cluster.replicas[0]
        require = f"CALL replica_pin.require('{token}');\n"
        scripts = {
            "read": script(SET + READ),
            "pipeline": script(SET + "\\startpipeline\n" + READ + "\\endpipeline"),
            "require": script(SET + "\\startpipeline\n" + require + READ + "\\endpipeline"),
            "two": script(SET + "BEGIN;\n" + require + READ + "COMMIT;"),
        }
        shown = {}
        for clients in (1, 8):
            rates = interleave(settings.rounds, {
                name: lambda path=path: pgbench(replica, clients, settings.seconds, path=path)
                for name, path in scripts.items()})
            where = f"{clients} client{'s' if clients > 1 else ''}"
            report.ratio(f"require and read in one round trip / read, {where}", rates["require"],
                         rates["read"], "/s", Goal(">=", 0.85))
            report.ratio(f"the same / read in a pipeline of its own, {where}", rates["require"],
                         rates["pipeline"], "/s")
            report.ratio(f"the same / BEGIN, require, read, COMMIT one by one, {where}",
                         rates["require"], rates["two"], "/s")
            shown.update({f"{name}, {clients}": values for name, values in rates.items()})
        report.plot("reads", "Reads on a replica, by clients", "per second", shown)
