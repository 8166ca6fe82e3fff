"""``python -m bench.pinning.effect``: a sensitive workload beside a memory-bound one, not pinned and pinned; as root.

Both are pods on a real node. The first reads a table that a core's own cache holds, in random order, and says how long
that takes; the second copies more than all caches hold, in two processes. On a machine with one socket its CPUs are
divided: then they are separated by core, and share the outermost cache and the memory all the same.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from berth.api.labels import LABEL_INTERFERENCE_CLASS
from hack.harness import pinned_node
from hack.harness.assigned_pods import assign
from hack.harness.cluster import eventually
from hack.localcluster import LocalCluster, Options

SENSITIVE = """
import time
import numpy as np
table = np.arange(2**16)
order = np.random.default_rng(1).permutation(table)
while True:
    begun, used = time.monotonic(), time.thread_time()
    for _ in range(200):
        table[order].sum()
    print(begun, time.monotonic(), time.thread_time() - used, flush=True)
"""
MEMORY_BOUND = """
import os
import numpy as np
os.fork()
one = np.ones(2**23)
other = one.copy()
while True:
    other[:] = one
    one[:] = other
"""
PROGRAMS = {"sensitive": (SENSITIVE, "B", 0), "memory-bound": (MEMORY_BOUND, "C", 1)}
"""Pods: program, class, and socket when they are pinned."""


def pod(name: str) -> dict[str, Any]:
    """A pod of a class."""
    program, letter, _ = PROGRAMS[name]
    container: dict[str, Any] = {"name": "main", "image": "berth:0.1.0", "imagePullPolicy": "Never"}
    container |= {"command": ["/opt/berth/bin/python", "-c", program]}
    container |= {"env": [{"name": "OPENBLAS_NUM_THREADS", "value": "1"}]}
    metadata = {"name": name, "labels": {LABEL_INTERFERENCE_CLASS: letter}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


class Stage:
    """The node, and what is measured on it."""

    def __init__(self, cluster: LocalCluster, directory: Path) -> None:
        """Install pinning, and start the sensitive workload."""
        self._cluster = cluster
        self._sockets, sysfs = pinned_node.sockets_for(directory)
        pinned_node.prepare(cluster, directory)
        pinned_node.apply(cluster, [pinned_node.daemon_set(cluster, directory, sysfs)])
        pinned_node.rolled_out(cluster, "daemonset/berth-pinning")
        self.start("sensitive")

    def start(self, name: str) -> None:
        """Start a pod, and wait until it runs."""
        pinned_node.apply(self._cluster, [pod(name)])
        self._cluster.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=120s", timeout=150)

    def end(self, name: str) -> None:
        """End a pod."""
        self._cluster.kubectl("delete", "pod", name, "--force", "--grace-period=0")

    def pin(self, pinned: bool) -> None:
        """Give each pod its socket, or all of them back what they had."""
        uids = {item["metadata"]["name"]: item["metadata"]["uid"] for item in self._pods()}
        items = [
            {"uid": uid, "namespace": "default", "name": name, "socket": PROGRAMS[name][2]}
            for name, uid in uids.items()
        ]
        assign(self._cluster, items if pinned else [])
        whole = frozenset[int]().union(*self._sockets)
        wanted = {uid: self._sockets[PROGRAMS[name][2]] if pinned else whole for name, uid in uids.items()}
        eventually(
            lambda: pinned_node.pods_on_cpus(self._cluster, frozenset(wanted)),
            accept=lambda found: found == wanted,
            what="CPUs",
            timeout=60.0,
        )

    def times(self, seconds: float) -> list[tuple[float, float]]:
        """Wall and processor seconds of each piece of the sensitive work, of so many seconds from now on."""
        begun = time.monotonic()
        time.sleep(seconds)
        end = time.monotonic()
        lines = self._cluster.kubectl("logs", "sensitive", f"--since={seconds + 5:.0f}s").stdout.splitlines()
        pieces = [tuple(map(float, line.split())) for line in lines]
        return [(last - first, used) for first, last, used in pieces if begun <= first and last <= end]

    def _pods(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self._cluster.kubectl("get", "pods", "-ojson").stdout)["items"]
        return found


def cases(stage: Stage) -> dict[str, tuple[Callable[[], None], Callable[[], None]]]:
    """What is measured: how it begins and ends."""

    def beside(pinned: bool) -> Callable[[], None]:
        def begin() -> None:
            stage.start("memory-bound")
            stage.pin(pinned)

        return begin

    def apart() -> None:
        stage.end("memory-bound")
        stage.pin(False)

    def nothing() -> None: ...

    return {
        "alone": (nothing, nothing),
        "beside the other, not pinned": (beside(False), apart),
        "beside the other, pinned": (beside(True), apart),
    }


def main() -> None:
    """Measure in turns, print Markdown."""
    parser = argparse.ArgumentParser(prog="python -m bench.pinning.effect", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="times that each case is measured (default: 5)")
    parser.add_argument("--seconds", type=float, default=8.0, help="seconds of each (default: 8)")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        LocalCluster.start(f"bench-effect-{os.getpid()}", options=Options(kubelets=1)) as cluster,
    ):
        stage = Stage(cluster, Path(directory))
        found: dict[str, list[tuple[float, float]]] = {}
        for _ in range(options.rounds):
            for name, (begin, end) in cases(stage).items():
                begin()
                found.setdefault(name, []).extend(stage.times(options.seconds))
                end()
        print(f"{platform.machine()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}\n")
        print("| sensitive workload | pieces | time, median | p99 | processor time, median |")
        print("|---|---|---|---|---|")
        wall, used = (statistics.median(column) for column in zip(*found["alone"], strict=True))
        for name, pieces in found.items():
            taken, spent = ([piece[index] for piece in pieces] for index in range(2))
            last = statistics.quantiles(taken, n=100)[98]
            figures = (
                f"{statistics.median(taken) / wall:.2f} | {last / wall:.2f} | {statistics.median(spent) / used:.2f}"
            )
            print(f"| {name} | {len(pieces)} | {figures} |")
        print(f"\n1.00 is the median alone: {1000 * wall:.1f} ms, {1000 * used:.1f} ms of a processor")


if __name__ == "__main__":
    main()
