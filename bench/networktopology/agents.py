"""``python -m bench.networktopology.agents``: reports of thousands of nodes on a real API server, and their weights.

Reports are written by the agents' own writer, first all of them, then each in its turn as agents do that have nothing
new to say, then those that a slower zone gives reason to. The weights are compared with :mod:`.reference` when all have
reported and after the change: those of a NetworkTopology that was there all the time must be as near as small
differences may wait, those of one that is made at that moment must be the same.
"""

from __future__ import annotations

import argparse
import asyncio
import operator
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil

from agents.node.probing.publication import HEARTBEAT_SECONDS
from bench.networktopology import reference
from bench.networktopology.fleet import WRITERS, Fleet
from berth.api.labels import LABEL_REGION, LABEL_ZONE
from berth.kube.client import ApiClient
from berth.kube.connection import load_connection
from controllers.networktopology.places import Places
from controllers.networktopology.write_pacing import COST_SHARE, COST_STEP
from hack.harness.cluster import install_crds
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from hack.localcluster.rest import Api

TOPOLOGIES: Final = "/apis/networktopology.diktyo.x-k8s.io/v1alpha1/namespaces/default/networktopologies"
DEADLINE: Final = 120.0
"""Seconds within which weights must be those of the reference."""

Costs = dict[tuple[str, str, str, str], int]
"""Cost by weight set, topology key, origin and destination."""


@dataclass(frozen=True, slots=True)
class Phase:
    """What one phase took."""

    name: str
    seconds: float
    """how long it was"""
    reports: int
    """reports written"""
    cpu: float
    """the controller's processor time, seconds"""
    resident: float
    """its resident memory at the end, MiB"""
    writes: tuple[int, int]
    """its writes of weights, and of the status"""
    settled: float | None = None
    """seconds from the last report until weights were near the reference; None where none were waited for"""

    def row(self) -> str:
        """Return it as a row of the table."""
        settled = "-" if self.settled is None else f"{self.settled:.0f}"
        share = 100 * self.cpu / self.seconds
        return (
            f"| {self.name} | {self.seconds:.0f} | {self.reports} | {self.cpu:.1f} | {share:.1f} "
            f"| {self.resident:.0f} | {self.writes[0]} | {self.writes[1]} | {settled} |"
        )


def expected(round_trips: reference.RoundTrips, places: Places) -> Costs:
    """Return the costs that the controller should write."""
    found: Costs = {}
    of_region = {name: place.region for name, place in places.nodes.items()}
    of_zone = {name: place.zone for name, place in places.nodes.items()}
    for key, place_of in ((LABEL_REGION, of_region), (LABEL_ZONE, of_zone)):
        links = reference.direct(round_trips, place_of)
        for name, lengths in (("NetperfCosts", links), ("Dijkstra", {**reference.cheapest(links), **links})):
            for (origin, destination), cost in reference.costs(lengths).items():
                if key == LABEL_REGION or places.region_of[origin] == places.region_of[destination]:
                    found[name, key, origin, destination] = cost
    return found


def written(weights: Iterable[Mapping[str, Any]]) -> Costs:
    """Return the costs of ``spec.weights``."""
    return {
        (item["name"], level["topologyKey"], row["origin"], cost["destination"]): cost["networkCost"]
        for item in weights
        for level in item["topologyList"]
        for row in level["originList"]
        for cost in row["costList"]
    }


def near(found: int, exact: int) -> bool:
    """Return whether a cost differs by no more than what is not written at once."""
    return abs(found - exact) <= max(COST_STEP, COST_SHARE * found)


def create_topology(api: Api, name: str) -> None:
    """Create a NetworkTopology without costs."""
    body = {
        "apiVersion": "networktopology.diktyo.x-k8s.io/v1alpha1",
        "kind": "NetworkTopology",
        "metadata": {"name": name},
        "spec": {"configmapName": "", "weights": []},
    }
    api.request("POST", TOPOLOGIES, body)


class Watched:
    """The controller's use of the machine, phase by phase."""

    def __init__(self, controller: ControllerProcess, cluster: LocalCluster) -> None:
        """Begin the first phase."""
        self._controller, self._api = controller, cluster.api()
        self._made = 0
        self._begin()

    def _begin(self) -> None:
        self._begun, self._cpu, self._writes = time.monotonic(), self._processor(), self._written()

    def _processor(self) -> float:
        spent = psutil.Process(self._controller.pid).cpu_times()
        return float(spent.user + spent.system)

    def _written(self) -> tuple[int, int]:
        weights, status = (
            int(self._controller.metric("berth_networktopology_writes_total", part=part))
            for part in ("weights", "status")
        )
        return weights, status

    def settle(self, costs: Costs) -> float:
        """Wait until weights that were there are near these costs, and new ones the same; return the former's seconds.

        Raises:
            TimeoutError: they did not become so.
        """
        begun = time.monotonic()
        self._wait("net", costs, near)
        settled = time.monotonic() - begun
        self._made += 1
        create_topology(self._api, name := f"new-{self._made}")
        self._wait(name, costs, operator.eq)
        self._api.request("DELETE", f"{TOPOLOGIES}/{name}")
        return settled

    def _wait(self, name: str, costs: Costs, alike: Callable[[int, int], bool]) -> None:
        deadline = time.monotonic() + DEADLINE
        while True:
            found = written(self._api.request("GET", f"{TOPOLOGIES}/{name}")["spec"]["weights"])
            differing = sum(key not in found or not alike(found[key], cost) for key, cost in costs.items())
            if not differing and found.keys() == costs.keys():
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"{name}: {differing} of {len(costs)} costs differ, {len(found)} are there")
            time.sleep(1.0)

    def end(self, name: str, reports: int, settled: float | None = None) -> Phase:
        """End the phase and begin the next."""
        writes = self._written()
        phase = Phase(
            name=name,
            seconds=time.monotonic() - self._begun,
            reports=reports,
            cpu=self._processor() - self._cpu,
            resident=self._controller.resident_bytes() / 2**20,
            writes=(writes[0] - self._writes[0], writes[1] - self._writes[1]),
            settled=settled,
        )
        self._begin()
        return phase


async def phases(fleet: Fleet, watched: Watched, kubeconfig: Path, *, seconds: float) -> None:
    """Go through the phases and print a row of each."""
    nodes = list(fleet.places.nodes)
    pace = HEARTBEAT_SECONDS / len(nodes)
    async with ApiClient(await load_connection(kubeconfig=str(kubeconfig)), max_connections=WRITERS) as client:
        count = await fleet.write(client, nodes)
        settled = await asyncio.to_thread(watched.settle, expected(fleet.round_trips, fleet.places))
        print(watched.end("all report for the first time", count, settled).row(), flush=True)
        count = await fleet.write(client, nodes[: round(seconds / pace)], pace=pace)
        print(watched.end("each in its turn, nothing new", count).row(), flush=True)
        count = await fleet.write(client, fleet.slow_down())
        settled = await asyncio.to_thread(watched.settle, expected(fleet.round_trips, fleet.places))
        print(watched.end("one zone is slower", count, settled).row(), flush=True)


def measure(nodes: int, zones: int, *, seconds: float) -> None:
    """Measure one size on a control plane of its own."""
    fleet = Fleet(nodes, zones)
    directory = Path(tempfile.mkdtemp(prefix="berth-bench-"))
    name = "bench-nt-agents"
    cluster = LocalCluster.start(name, root=directory, kwok=False, die_with_parent=True)
    try:
        install_crds(cluster)
        cluster.create_nodes(fleet.specs())
        create_topology(cluster.api(), "net")
        with ControllerProcess.start(
            ["networktopology"], kubeconfig=cluster.kubeconfig, directory=directory, arguments=["--no-leader-elect"]
        ) as controller:
            controller.wait_ready(timeout=60)
            asyncio.run(phases(fleet, Watched(controller, cluster), cluster.kubeconfig, seconds=seconds))
    finally:
        LocalCluster.remove(name, root=directory)


def main() -> None:
    """Measure, print Markdown."""
    parser = argparse.ArgumentParser(prog="python -m bench.networktopology.agents", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000, help="nodes, each with a report (default: 5000)")
    parser.add_argument("--zones", type=int, default=200, help="zones of four regions (default: 200)")
    parser.add_argument("--seconds", type=float, default=120.0, help="length of the quiet phase (default: 120)")
    options = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}; ", end="")
    print(f"{options.nodes} nodes, {options.zones} zones\n")
    print(
        "| phase | s | reports | CPU s | CPU % | RSS MiB | weights written | status written "
        "| near the reference after s |"
    )
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    measure(options.nodes, options.zones, seconds=options.seconds)


if __name__ == "__main__":
    main()
