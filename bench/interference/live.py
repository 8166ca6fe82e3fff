"""The same pods on a real API server, with and without sockets: ``python -m bench.interference.live``.

5000 nodes of 2, 4 or 8 sockets with their SocketStatuses, 10,000 pods of 20 workloads in four classes. Both choices
take turns on one control plane that is emptied in between. A placement controller that has just started finds all pods
waiting, so that its own rate is measured and not that of their creation. Figures in docs/benchmarks/interference.md.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import yaml

from bench.interference.scale import SCHEDULER, SOCKET_CPUS, SOCKETS, WORKLOADS, pod
from bench.live.contenders import Berth
from bench.live.scenario import Cpu, clean_up, in_parallel
from berth.api.socketstatus import API_VERSION, KIND, PLACEMENT_MANAGER
from berth.kube.client import ApiClient
from berth.kube.connection import load_connection
from berth.kube.custom_object import decoded
from berth.kube.reflector import Reflector
from berth.kube.resources import NAMESPACES, PODS, SOCKET_STATUSES
from berth.scheduling.interference.policy import InterferencePolicy
from hack.harness.observe import PodLog, percentiles
from hack.localcluster import LocalCluster
from hack.localcluster.topology import NodeSpec, load

REPOSITORY = Path(__file__).resolve().parents[2]
MANAGER: Final = "berth-pinning"
PATIENCE: Final = 60.0
"""Seconds without any binding after which a run ends."""
CHOICES: Final = (InterferencePolicy.OFF, InterferencePolicy.LEAST_SLOWDOWN)


def say(text: str) -> None:
    """Show progress."""
    print(text, file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True)
class Figures:
    """One run."""

    bound: int
    """pods that got a node"""
    pods_per_second: float
    """from the first binding to the last"""
    cpu_ms: float
    """processor time of the controller for each pod"""
    planning_ms: float
    """of this, time for its plan by the controller's own metric"""
    p99: float
    """99th percentile of the seconds from the first binding to a pod's own"""
    rss_mib: float
    """resident memory at the end"""
    seated: int
    """pods with a socket in a SocketStatus"""


def nodes_of(count: int, drawn: random.Random) -> tuple[list[NodeSpec], dict[str, int]]:
    """Return nodes, and how many sockets each has."""
    specs, sockets = [], dict[str, int]()
    for spec in load(REPOSITORY / "hack" / "topologies" / "scale-5000.yaml")[:count]:
        sockets[spec.name] = drawn.choice(SOCKETS)
        room = {"cpu": str(sockets[spec.name] * SOCKET_CPUS), "memory": "512Gi", "pods": "110"}
        specs.append(replace(spec, capacity=room, allocatable=room))
    return specs, sockets


async def state_sockets(client: ApiClient, sockets: dict[str, int]) -> None:
    """Write SocketStatuses as agents do."""

    async def write(name: str, count: int) -> None:
        head = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}}
        found = [
            {
                "socket": number,
                "cpus": f"{SOCKET_CPUS * number}-{SOCKET_CPUS * (number + 1) - 1}",
                "cpuCount": SOCKET_CPUS,
            }
            for number in range(count)
        ]
        await client.apply(SOCKET_STATUSES, name, head, field_manager=MANAGER)
        body = head | {"status": {"sockets": found}}
        await client.apply(SOCKET_STATUSES, name, body, field_manager=MANAGER, subresource="status")

    await in_parallel([partial(write, name, count) for name, count in sockets.items()])


async def assigned(client: ApiClient) -> dict[str, int]:
    """Return how many pods SocketStatuses assign, by node, where there are any."""
    items = await client.list_all(SOCKET_STATUSES)
    found = {item.metadata.name: len(decoded(item.spec).get("assignments", ())) for item in items}
    return {name: count for name, count in found.items() if count}


async def take_back(client: ApiClient) -> None:
    """Have no pod assigned to a socket."""
    head, calls = {"apiVersion": API_VERSION, "kind": KIND, "spec": {"assignments": []}}, list[Any]()
    for name in await assigned(client):
        body = head | {"metadata": {"name": name}}
        calls.append(partial(client.apply, SOCKET_STATUSES, name, body, field_manager=PLACEMENT_MANAGER))
    await in_parallel(calls)


def manifest(number: int, workload: int) -> dict[str, Any]:
    """Return the pod that the planner's benchmark has, as the API server takes it."""
    one = pod(number, workload)
    containers = [
        {"name": each.name, "image": "none", "resources": {"requests": dict(each.resources.requests)}}
        for each in one.spec.containers
    ]
    return {
        "metadata": {"name": one.metadata.name, "labels": dict(one.metadata.labels)},
        "spec": {"schedulerName": SCHEDULER, "terminationGracePeriodSeconds": 0, "containers": containers},
    }


async def place(
    client: ApiClient, cluster: LocalCluster, choice: InterferencePolicy, namespace: str, pods: int, seed: int
) -> Figures:
    """Create the pods, start a placement controller with this choice, and wait until all have a node."""
    drawn = random.Random(seed)
    bodies = [manifest(number, drawn.randrange(WORKLOADS)) for number in range(pods)]
    await client.create(NAMESPACES, {"metadata": {"name": namespace}})
    log, watch = PodLog(), Reflector(client, PODS, namespace=namespace)
    watch.add_handler(log.note)
    following = asyncio.create_task(watch.run())
    with tempfile.TemporaryDirectory() as directory:
        config = Path(directory) / "placement.yaml"
        profile = {"schedulerName": SCHEDULER, "interference": choice.value}
        config.write_text(yaml.safe_dump({"profiles": [profile]}))
        berth = Berth(cluster, Path(directory), config=config)
        try:
            await watch.synced.wait()
            await in_parallel([partial(client.create, PODS, body, namespace=namespace) for body in bodies])
            cpu, known, last = Cpu(await asyncio.to_thread(berth.start)), -1, time.monotonic()
            while len(log.bound) < pods and time.monotonic() - last < PATIENCE:
                if len(log.bound) != known:
                    known, last = len(log.bound), time.monotonic()
                await asyncio.sleep(0.1)
            spent, memory, planning = cpu.spent(), cpu.rss(), planned(berth.metrics())
            seated = await written(client) if choice is not InterferencePolicy.OFF else 0
        finally:
            berth.stop()
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
    first, end = min(log.bound.values()), max(log.bound.values())
    rate = len(log.bound) / (end - first)
    _, p99 = percentiles([at - first for at in log.bound.values()])
    count = max(1, len(log.bound))
    return Figures(len(log.bound), rate, 1000 * spent / count, 1000 * planning / count, p99, memory, seated)


async def written(client: ApiClient) -> int:
    """Wait until no more assignments are written; returns how many there are."""
    known, found = -1, 0
    while found != known:
        known, found = found, sum((await assigned(client)).values())
        await asyncio.sleep(1.0)
    return found


def planned(metrics: str) -> float:
    """Return the seconds of planning by the controller's metrics."""
    found = re.findall(r'^berth_placement_decision_duration_seconds_sum\{entry="pod"\} (\S+)$', metrics, re.MULTILINE)
    return float(found[0]) if found else float("nan")


async def measure(cluster: LocalCluster, sockets: dict[str, int], arguments: argparse.Namespace) -> None:
    """Have the choices take turns, and print a line for each run and each choice."""
    found: dict[InterferencePolicy, list[Figures]] = {choice: [] for choice in CHOICES}
    connection = await load_connection(kubeconfig=str(cluster.kubeconfig))
    async with ApiClient(connection) as client:
        say("writing SocketStatuses")
        await state_sockets(client, sockets)
        for number in range(arguments.rounds):
            for choice in CHOICES if number % 2 == 0 else CHOICES[::-1]:
                namespace = f"{choice.value.lower()}-{number}"
                figures = await place(client, cluster, choice, namespace, arguments.pods, number)
                say(f"{choice}: {figures}")
                found[choice].append(figures)
                await clean_up(client, namespace)
                await take_back(client)
    print("| choice | pods/s | processor ms a pod | of it planning | last 1 % after s | MiB | with a socket |")
    print("|---|---|---|---|---|---|---|")
    for choice, runs in found.items():
        rate, cpu, planning, p99, memory, seated = (
            median(getattr(run, name) for run in runs)
            for name in ("pods_per_second", "cpu_ms", "planning_ms", "p99", "rss_mib", "seated")
        )
        print(f"| {choice} | {rate:.0f} | {cpu:.2f} | {planning:.2f} | {p99:.1f} | {memory:.0f} | {seated:.0f} |")


def main() -> None:
    """Start a control plane, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000, help="nodes, 5000 at most (default)")
    parser.add_argument("--pods", type=int, default=10_000, help="pods of each run (10,000)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each choice (3)")
    arguments = parser.parse_args()
    specs, sockets = nodes_of(arguments.nodes, random.Random(0))
    with LocalCluster.start("bench-interference", kwok=False, die_with_parent=True, report=say) as cluster:
        cluster.kubectl("apply", "--server-side", "-f", str(REPOSITORY / "crds"))
        cluster.create_nodes(specs)
        asyncio.run(measure(cluster, sockets, arguments))


if __name__ == "__main__":
    main()
