"""The controller on a real API server: from a written ConfigMap to the new weights, and resident memory.

The nodes are objects without kubelets and without heartbeats. Every round replaces every value of a full ConfigMap
and waits, by reading the object every few milliseconds, until a cost of that round is in the weights.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from bench.networktopology.compute import measurements
from hack.harness.cluster import REPOSITORY, install_crds
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster

TOPOLOGIES = "/apis/networktopology.diktyo.x-k8s.io/v1alpha1/namespaces/default/networktopologies"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
DEADLINE = 60.0
"""Seconds after which a round counts as failed."""


@dataclass(frozen=True, slots=True)
class LiveResult:
    """One size."""

    nodes: int
    """nodes of the cluster"""
    measurements: int
    """measurements in the ConfigMap"""
    first: float
    """seconds from the controller's start to the first weights"""
    median: float
    """milliseconds from the ConfigMap's write to the new weights, the 200 ms of debouncing included"""
    slowest: float
    """the same, slowest round"""
    resident: float
    """resident memory after the rounds, MiB"""
    idle_writes: float
    """writes in the rounds beyond one of the weights and one of the status each"""


def _wait(probe: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not probe():
        if time.monotonic() > deadline:
            raise TimeoutError(f"no new weights within {DEADLINE:.0f} s")
        time.sleep(0.005)


def measure(nodes: int, *, rounds: int, report: Callable[[str], None]) -> LiveResult:
    """Run the controller against ``nodes`` nodes of a control plane of its own."""
    directory = Path(tempfile.mkdtemp(prefix="berth-bench-"))
    name = f"bench-nt-{nodes}"
    cluster = LocalCluster.start(name, root=directory, kwok=False, die_with_parent=True)
    try:
        install_crds(cluster)
        names = cluster.create_nodes(REPOSITORY / "hack" / "topologies" / f"scale-{nodes}.yaml")
        report(f"{nodes} nodes created")
        api = cluster.api()
        data = measurements(names, seed=nodes)
        api.request("POST", CONFIGMAPS, {"metadata": {"name": "netperf"}, "data": data})
        body = {
            "apiVersion": "networktopology.diktyo.x-k8s.io/v1alpha1",
            "kind": "NetworkTopology",
            "metadata": {"name": "net"},
            "spec": {"configmapName": "netperf", "weights": []},
        }
        api.request("POST", TOPOLOGIES, body)

        def lowest() -> int:
            """The lowest zone cost: the value that every measurement of the latest round has."""
            weights: list[dict[str, Any]] = api.request("GET", f"{TOPOLOGIES}/net")["spec"]["weights"]
            zones = [level for level in weights[0]["topologyList"] if level["topologyKey"].endswith("/zone")]
            return min(int(cost["networkCost"]) for origin in zones[0]["originList"] for cost in origin["costList"])

        def reached(value: int) -> bool:
            return lowest() == value

        begun = time.monotonic()
        arguments = ["--no-leader-elect"]
        with ControllerProcess.start(
            ["networktopology"], kubeconfig=cluster.kubeconfig, directory=directory, arguments=arguments
        ) as controller:
            _wait(lambda: bool(api.request("GET", f"{TOPOLOGIES}/net")["spec"]["weights"]))
            first = time.monotonic() - begun
            _wait(lambda: "observedGeneration" in api.request("GET", f"{TOPOLOGIES}/net").get("status", {}))
            before = _writes(controller)
            times = []
            for number in range(rounds):
                value = 1000 + number
                document = {"metadata": {"name": "netperf"}, "data": dict.fromkeys(data, f"{value / 10:g}")}
                begun = time.perf_counter()
                api.request("PUT", f"{CONFIGMAPS}/netperf", document)
                _wait(partial(reached, value))
                times.append(1000 * (time.perf_counter() - begun))
            time.sleep(1.0)  # the last status
            resident = controller.resident_bytes() / 2**20
            extra = _writes(controller) - before - 2 * rounds
        return LiveResult(nodes, len(data), first, median(times), max(times), resident, extra)
    finally:
        LocalCluster.remove(name, root=directory)


def _writes(controller: ControllerProcess) -> float:
    return sum(controller.metric("berth_networktopology_writes_total", part=part) for part in ("weights", "status"))
