"""What one pod with thousands of names costs: ``python -m bench.planning.names``.

A waiting pod that selects 5000 labels, and a running one that asks for 1500 resources, in a cluster of 1000 nodes: how
long their own turn takes, what it leaves behind, and what an ordinary decision takes before and after.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from typing import Any

import msgspec

from bench.planning.__main__ import COSTS, make_node
from berth.kube.memory import freeze_objects, give_back_large_blocks
from berth.kube.objects import Pod
from berth.scheduling.cache.cache import Cache
from berth.scheduling.configuration import Profile
from berth.scheduling.planner import Planner

PAGE = resource.getpagesize()


def make_pod(name: str, requests: dict[str, str] | None = None, **spec: Any) -> Pod:
    """A pod outside any AppGroup."""
    container = {"name": "main", "resources": {"requests": {"cpu": "100m", **(requests or {})}}}
    body = {"schedulerName": "berth-scheduler", "containers": [container], **spec}
    return msgspec.convert({"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": body}, Pod)


def resident() -> float:
    """MiB of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * PAGE / 2**20


class Cluster:
    """Nodes, and a planner."""

    def __init__(self, nodes: int) -> None:
        """Create the nodes."""
        self.cache = Cache(clock=time.monotonic)
        for number in range(nodes):
            self.cache.update_node(make_node(number, 16))
        self.planner = Planner(self.cache, Profile())

    def decide(self, pod: Pod) -> float:
        """Seconds to place a pod (or find that nothing takes it); it is forgotten again."""
        start = time.perf_counter()
        self.cache.update_pod(pod)
        self.planner.place_pod(pod, None, COSTS)
        seconds = time.perf_counter() - start
        self.cache.forget(pod)
        self.cache.delete_pod(pod)
        return seconds

    def ordinary(self) -> float:
        """Median seconds of an ordinary decision."""
        return statistics.median(self.decide(make_pod(f"ordinary-{number}")) for number in range(200))


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.planning.names", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--labels", type=int, default=5000, help="labels that the waiting pods select (default 5000)")
    parser.add_argument("--resources", type=int, default=1500, help="resources of the running pods (default 1500)")
    parser.add_argument("--pods", type=int, default=20, help="pods of each kind, all with other names (default 20)")
    options = parser.parse_args()
    cluster = Cluster(options.nodes)
    cluster.ordinary()
    give_back_large_blocks()
    freeze_objects()
    before, memory = cluster.ordinary(), resident()
    own = [
        cluster.decide(make_pod(f"labels-{n}", nodeSelector={f"key-{n}-{k}": "x" for k in range(options.labels)}))
        for n in range(options.pods)
    ]
    start = time.perf_counter()
    for n in range(options.pods):
        names = {f"example.com/r{n}-{k}": "1" for k in range(options.resources)}
        cluster.cache.update_pod(make_pod(f"running-{n}", names, nodeName=f"node-{n}"))
    taken = (time.perf_counter() - start) / options.pods
    after, grown = cluster.ordinary(), resident() - memory
    print(f"{options.nodes} nodes, {options.pods} pods of each kind")
    rows = {
        f"a waiting pod that selects {options.labels} labels: median, longest": (
            f"{statistics.median(own) * 1e3:.1f}, {max(own) * 1e3:.1f} ms"
        ),
        f"a running pod with {options.resources} resources is noted in": f"{taken * 1e3:.1f} ms",
        "an ordinary decision, before and after": (
            f"{before * 1e3:.2f}, {after * 1e3:.2f} ms ({after / before:.2f} times)"
        ),
        "memory afterwards": f"{grown:+.1f} MiB",
    }
    for name, figure in rows.items():
        print(f"| {name} | {figure} |")


if __name__ == "__main__":
    main()
