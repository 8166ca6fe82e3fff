"""Command line of the live benchmark."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.live.contenders import BASELINE, CONTENDERS, contender
from bench.live.scenario import Result, run, until_idle
from bench.live.workload import SYSTEM_NAMESPACE, network_topology
from berth.api.labels import LABEL_REGION, LABEL_ZONE, WEIGHTS_DIJKSTRA
from berth.api.networktopology import API_VERSION, KIND, NetworkTopology
from berth.kube.client import ApiClient
from berth.kube.connection import load_connection
from berth.kube.resources import NAMESPACES, NETWORK_TOPOLOGIES, NODES
from berth.network.costs import NetworkCosts, read_costs
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from hack.localcluster.topology import load

REPOSITORY = Path(__file__).resolve().parents[2]
TOPOLOGIES = REPOSITORY / "hack" / "topologies"
SIZES = {
    "large": {"cpu": "16", "memory": "64Gi", "pods": "110"},
    "third": {"cpu": "600m", "memory": "700Mi", "pods": "110"},
}
"""Node sizes: several whole applications fit (large), about a third of one fits (third)."""


@dataclass(frozen=True, slots=True)
class Case:
    """One comparison."""

    nodes: int
    """nodes of the cluster: scale-<nodes>.yaml"""
    size: str
    """key of SIZES"""
    groups: int
    """Online Boutique applications"""
    load: str
    """backlog or arrival"""
    replicas: int = 1
    """of every workload"""


STANDARD = (
    Case(1000, "large", 100, "backlog"),
    Case(1000, "large", 100, "arrival"),
    Case(1000, "large", 500, "backlog"),
    Case(1000, "third", 100, "backlog"),
    Case(1000, "large", 30, "backlog", replicas=3),
    Case(1000, "large", 30, "arrival", replicas=3),
    Case(5000, "large", 100, "backlog"),
    Case(5000, "large", 500, "backlog"),
    Case(5000, "third", 500, "backlog"),
)
"""What is measured without further arguments."""


def say(text: str) -> None:
    """Show progress."""
    print(text, file=sys.stderr, flush=True)


async def computed_costs(client: ApiClient, cluster: LocalCluster) -> NetworkCosts:
    """The costs of the NetworkTopology once its weights are computed, which placement waits for.

    Its controller computes them before anything is measured, and ends.
    """
    with tempfile.TemporaryDirectory() as directory:
        controller = ControllerProcess.start(
            ["networktopology"], kubeconfig=cluster.kubeconfig, directory=Path(directory)
        )
        try:
            controller.wait_ready(timeout=120)
            async with asyncio.timeout(120):
                while True:
                    stored = await client.get(NETWORK_TOPOLOGIES, "bench", namespace=SYSTEM_NAMESPACE)
                    costs = read_costs(NetworkTopology.parse(stored.document(api_version=API_VERSION, kind=KIND)))
                    if costs.current and WEIGHTS_DIJKSTRA in costs.weight_sets:
                        return costs
                    await asyncio.sleep(0.1)
        finally:
            controller.stop()


async def measure(cluster: LocalCluster, case: Case, label: str, number: int, arguments: argparse.Namespace) -> Result:
    """Run one scheduler on a cluster of its own."""
    connection = await load_connection(kubeconfig=str(cluster.kubeconfig))
    async with ApiClient(connection) as client:
        nodes = await client.list_all(NODES)
        zones = sorted({(n.metadata.labels[LABEL_REGION], n.metadata.labels[LABEL_ZONE]) for n in nodes})
        await client.create(NAMESPACES, {"metadata": {"name": SYSTEM_NAMESPACE}})
        await client.create(NETWORK_TOPOLOGIES, network_topology(zones), namespace=SYSTEM_NAMESPACE)
        costs = await computed_costs(client, cluster)
        until_idle(cluster.process("kube-apiserver").pid)
        with tempfile.TemporaryDirectory() as directory:
            runner = contender(
                label, cluster, Path(directory), baseline=arguments.baseline, config=arguments.placement_config
            )
            try:
                result = await run(
                    client,
                    namespace=f"{label}-{number}",
                    scheduler=runner.scheduler_name,
                    label=label,
                    groups=case.groups,
                    replicas=case.replicas,
                    nodes=nodes,
                    costs=costs,
                    start=runner.start,
                    load=case.load,
                    patience=arguments.patience,
                )
                return replace(result, size=case.size, decision_p99=runner.decision_p99())
            finally:
                runner.stop()


def run_cases(cases: Sequence[Case], arguments: argparse.Namespace) -> Iterator[Result]:
    """Start a cluster for each run: the heap of an API server grows, and with it what its garbage collections take."""
    runs = [(case, label) for case in cases for _ in range(arguments.rounds) for label in arguments.schedulers]
    for number, (case, label) in enumerate(runs):
        specs = [
            replace(spec, capacity=SIZES[case.size], allocatable=SIZES[case.size])
            for spec in load(TOPOLOGIES / f"scale-{case.nodes}.yaml")
        ]
        say(
            f"{label}: {case.groups} applications, {case.replicas} of each workload, on {case.nodes} {case.size} "
            f"nodes ({case.load})"
        )
        with LocalCluster.start(f"bench-{os.getpid()}", kwok=False, die_with_parent=True) as cluster:
            cluster.kubectl("apply", "--server-side", "-f", str(REPOSITORY / "crds"))
            cluster.create_nodes(specs)
            result = asyncio.run(measure(cluster, case, label, number, arguments))
        say(f"  {result.pods_per_second:.0f} pods/s, mean edge cost {result.mean_edge_cost:.2f}")
        yield result


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.live",
        description="Berth and kube-scheduler place the same applications, each on a real control plane of its own. "
        "Without --nodes, all standard cases run (about twenty minutes on two cores).",
    )
    parser.add_argument("--nodes", type=int, choices=[1000, 5000], help="measure one case: this many nodes")
    parser.add_argument("--size", choices=sorted(SIZES), default="large", help="its node size (default large)")
    parser.add_argument("--groups", type=int, default=100, help="its Online Boutique applications (default 100)")
    parser.add_argument("--replicas", type=int, default=1, help="replicas of every workload (default 1)")
    parser.add_argument("--placement-config", type=Path, help="configuration of Berth's placement (default: none)")
    parser.add_argument(
        "--load",
        choices=["backlog", "arrival"],
        default="backlog",
        help="pods exist before the scheduler starts (its own rate), or arrive while it runs (latency)",
    )
    parser.add_argument("--rounds", type=int, default=1, help="runs of each scheduler per case (default 1)")
    parser.add_argument("--schedulers", nargs="+", default=list(CONTENDERS), choices=list(CONTENDERS))
    parser.add_argument("--patience", type=float, default=60.0, help="seconds without a binding that end a run")
    parser.add_argument("--json", type=Path, help="also write the figures to this file, after every run")
    parser.add_argument(
        "--baseline", type=Path, help="checkout of an earlier Berth with its .venv, run in turn with this one's"
    )
    arguments = parser.parse_args()
    if arguments.baseline is not None:
        arguments.schedulers.append(BASELINE)
    return arguments


def main() -> None:
    """Measure, print a table, write JSON."""
    arguments = parse()
    one = Case(arguments.nodes, arguments.size, arguments.groups, arguments.load, arguments.replicas)
    cases = [one] if arguments.nodes else STANDARD
    results: list[Result] = []
    for result in run_cases(cases, arguments):
        results.append(result)
        if arguments.json:
            write_json(arguments.json, results)
    print_table(results)


def write_json(path: Path, results: Sequence[Result]) -> None:
    """Figures with the machine and the command that made them."""
    machine = {"cpus": os.cpu_count(), "platform": platform.platform(), "python": platform.python_version()}
    command = f"python -m bench.live {' '.join(sys.argv[1:])}".strip()
    document = {"machine": machine, "command": command, "results": [result.row() for result in results]}
    path.write_text(json.dumps(document, indent=2) + "\n")


COLUMNS = (
    "scheduler", "nodes", "size", "load", "replicas", "pods", "bound", "pods/s", "p50 s", "p99 s", "edge cost",
    "survive node", "survive zone", "over", "twice", "CPU s", "MiB", "plan p99 ms",
)  # fmt: skip


def print_table(results: Sequence[Result]) -> None:
    """One Markdown row per run."""
    print(f"| {' | '.join(COLUMNS)} |")
    print(f"|{'---|' * len(COLUMNS)}")
    for r in results:
        known = r.decision_p99 == r.decision_p99
        cells = (
            r.scheduler, r.nodes, r.size, r.load, r.replicas, r.pods, r.bound, f"{r.pods_per_second:.0f}",
            f"{r.p50:.2f}", f"{r.p99:.2f}", f"{r.mean_edge_cost:.2f}", _share(r.survive_node), _share(r.survive_zone),
            r.overcommitted, r.rebound, f"{r.cpu_seconds:.1f}", f"{r.rss_mib:.0f}",
            f"<= {r.decision_p99 * 1e3:g}" if known else "",
        )  # fmt: skip
        print(f"| {' | '.join(str(cell) for cell in cells)} |")


def _share(part: float) -> str:
    return f"{part:.0%}" if part == part else ""


if __name__ == "__main__":
    main()
