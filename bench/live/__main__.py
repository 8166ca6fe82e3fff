"""Command line of the live benchmark."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import re
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from bench.live.scenario import Result, clean_up, run
from bench.live.workload import network_topology
from berth.api.labels import LABEL_REGION, LABEL_ZONE
from berth.api.networktopology import API_VERSION, KIND, NetworkTopology
from berth.kube.client import ApiClient
from berth.kube.connection import load_connection
from berth.kube.resources import NETWORK_TOPOLOGIES, NODES
from controllers.placement.network.costs import read_costs
from hack.localcluster import LocalCluster, Options
from hack.localcluster.topology import load
from tests.support.processes import ControllerProcess

REPOSITORY = Path(__file__).resolve().parents[2]
TOPOLOGIES = REPOSITORY / "hack" / "topologies"
SIZES = {
    "large": {"cpu": "16", "memory": "64Gi", "pods": "110"},
    "third": {"cpu": "600m", "memory": "700Mi", "pods": "110"},
}
"""Node sizes: a whole application fits (large), about a third of one fits (third)."""


def say(text: str) -> None:
    """Show progress."""
    print(text, file=sys.stderr, flush=True)


class KubeScheduler:
    """The peer: kube-scheduler with clientConnection qps and burst of 5000."""

    scheduler_name = "default-scheduler"

    def __init__(self, cluster: LocalCluster, _directory: Path) -> None:
        """Remember the cluster."""
        self._cluster = cluster
        self._started = False

    def start(self) -> list[int]:
        """Start it; returns its pid."""
        self._cluster.start_scheduler()
        self._started = True
        return [self._cluster.process("kube-scheduler").pid]

    def decision_p99(self) -> float:
        """Not comparable: its own metric leaves out what ours includes."""
        return float("nan")

    def stop(self) -> None:
        """Stop it."""
        if self._started:
            self._cluster.stop_scheduler()


class Berth:
    """``berth run placement`` as a process of its own."""

    scheduler_name = "berth-scheduler"

    def __init__(self, cluster: LocalCluster, directory: Path) -> None:
        """Remember the cluster."""
        self._cluster = cluster
        self._directory = directory
        self._process: ControllerProcess | None = None

    def start(self) -> list[int]:
        """Start it and wait until it is ready; returns its pid."""
        self._process = ControllerProcess.start(
            ["placement"], kubeconfig=self._cluster.kubeconfig, directory=self._directory
        )
        self._process.wait_ready()
        return [self._process.process.pid]

    def decision_p99(self) -> float:
        """Planning time per pod, from its metrics."""
        if self._process is None:
            return float("nan")
        return histogram_bound(self._process.get("/metrics")[1], "berth_placement_decision_per_pod_seconds", 0.99)

    def stop(self) -> None:
        """Stop it."""
        if self._process is not None:
            self._process.stop()


def histogram_bound(metrics: str, name: str, share: float) -> float:
    """Upper bound of the bucket that holds the given share of a Prometheus histogram's observations."""
    buckets = [
        (float(bound), float(count))
        for bound, count in re.findall(rf'^{name}_bucket{{le="([^"]+)"}} (\S+)$', metrics, flags=re.MULTILINE)
    ]
    total = max((count for _, count in buckets), default=0.0)
    return next((bound for bound, count in sorted(buckets) if total and count >= share * total), float("nan"))


CONTENDERS: dict[str, type[KubeScheduler] | type[Berth]] = {"kube-scheduler": KubeScheduler, "berth": Berth}


async def measure(cluster: LocalCluster, arguments: argparse.Namespace) -> list[Result]:
    """Run every scheduler in turn on the same, empty cluster."""
    results: list[Result] = []
    connection = await load_connection(kubeconfig=str(cluster.kubeconfig))
    async with ApiClient(connection) as client:
        nodes = await client.list_all(NODES)
        zones = sorted({(n.metadata.labels[LABEL_REGION], n.metadata.labels[LABEL_ZONE]) for n in nodes})
        await client.create(NETWORK_TOPOLOGIES, network_topology(zones), namespace="default")
        stored = await client.get(NETWORK_TOPOLOGIES, "bench", namespace="default")
        costs = read_costs(NetworkTopology.parse(stored.document(api_version=API_VERSION, kind=KIND)))
        for number in range(arguments.rounds):
            for label in arguments.schedulers:
                namespace = f"{label}-{number}"
                say(f"{label}, round {number + 1} of {arguments.rounds}: {arguments.groups} applications")
                with tempfile.TemporaryDirectory() as directory:
                    contender = CONTENDERS[label](cluster, Path(directory))
                    try:
                        result = await run(
                            client,
                            namespace=namespace,
                            scheduler=contender.scheduler_name,
                            label=label,
                            groups=arguments.groups,
                            nodes=nodes,
                            costs=costs,
                            start=contender.start,
                            load=arguments.load,
                            patience=arguments.patience,
                        )
                        result = replace(result, decision_p99=contender.decision_p99())
                    finally:
                        contender.stop()
                say(f"  {result.pods_per_second:.0f} pods/s, mean edge cost {result.mean_edge_cost:.2f}")
                results.append(result)
                await clean_up(client, namespace)
    return results


def main() -> None:
    """Start a cluster, measure, print a table or JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.live", description=__doc__)
    parser.add_argument("--topology", default="scale-1000", help="file in hack/topologies (default scale-1000)")
    parser.add_argument("--size", choices=sorted(SIZES), default="large", help="node size (default large)")
    parser.add_argument("--groups", type=int, default=100, help="Online Boutique applications (default 100)")
    parser.add_argument("--rounds", type=int, default=1, help="runs of each scheduler (default 1)")
    parser.add_argument("--schedulers", nargs="+", default=list(CONTENDERS), choices=list(CONTENDERS))
    parser.add_argument(
        "--load",
        choices=["backlog", "arrival"],
        default="backlog",
        help="pods exist before the scheduler starts (its own rate), or arrive while it runs (latency)",
    )
    parser.add_argument("--patience", type=float, default=60.0, help="seconds without a binding that end a run")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    specs = [
        replace(spec, capacity=SIZES[arguments.size], allocatable=SIZES[arguments.size])
        for spec in load(TOPOLOGIES / f"{arguments.topology}.yaml")
    ]
    options = Options(controller_manager_args=("--controllers=namespace-controller,serviceaccount-controller",))
    with LocalCluster.start(
        f"bench-{os.getpid()}", kwok=False, options=options, die_with_parent=True, report=say
    ) as cluster:
        cluster.kubectl("apply", "--server-side", "-f", str(REPOSITORY / "crds"))
        say(f"creating {len(specs)} nodes")
        cluster.create_nodes(specs)
        results = asyncio.run(measure(cluster, arguments))
    print_table(results)
    if arguments.json:
        machine = {"cpus": os.cpu_count(), "platform": platform.platform(), "python": platform.python_version()}
        document = {"machine": machine, "command": " ".join(sys.argv), "results": [r.row() for r in results]}
        arguments.json.write_text(json.dumps(document, indent=2) + "\n")


def print_table(results: list[Result]) -> None:
    """One line per run."""
    head = (
        "scheduler",
        "nodes",
        "pods",
        "bound",
        "pods/s",
        "p50 s",
        "p99 s",
        "edge cost",
        "over",
        "twice",
        "CPU s",
        "MiB",
        "plan p99 ms",
    )
    print("{:<15}{:>7}{:>7}{:>7}{:>9}{:>8}{:>8}{:>11}{:>6}{:>7}{:>8}{:>7}{:>13}".format(*head))
    for r in results:
        print(
            f"{r.scheduler:<15}{r.nodes:>7}{r.pods:>7}{r.bound:>7}{r.pods_per_second:>9.0f}{r.p50:>8.2f}{r.p99:>8.2f}"
            f"{r.mean_edge_cost:>11.2f}{r.overcommitted:>6}{r.rebound:>7}{r.cpu_seconds:>8.1f}{r.rss_mib:>7.0f}"
            f"{'<= ' + format(r.decision_p99 * 1e3, 'g') if r.decision_p99 == r.decision_p99 else '-':>13}"
        )


if __name__ == "__main__":
    main()
