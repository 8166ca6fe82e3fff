"""Real nodes for tests: whether this machine can run them, and what an instance has left on it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hack.localcluster import LocalCluster, processes
from hack.localcluster.kubelets import cgroups, delay, packages, remains
from hack.localcluster.kubelets.names import bridge, key, nodes
from hack.localcluster.kubelets.network import enter


def require_real_nodes(root: Path) -> None:
    """Skip the test where instances in *root* cannot have real nodes, and say why."""
    problem = packages.problem(root / "instance")
    if problem:
        pytest.skip(problem)


def left_on_the_machine(home: Path) -> list[str]:
    """Processes, links, namespaces, cgroups, mounts and logs of the instance in *home*."""
    mounts = Path("/proc/self/mounts").read_text()
    groups = [path for root in cgroups.hierarchies(mounts) for path in root.glob(f"{bridge(home)}*")]
    links = [path for path in Path("/sys/class/net").iterdir() if key(home) in path.name]
    namespaces = list(Path("/run/netns").glob(f"{bridge(home)}*"))
    logs = [path for path in remains.CONTAINER_LOGS.glob("*.log") if path.readlink().is_relative_to(home)]
    results = list(remains.CNI_RESULTS.glob(f"{bridge(home)}*"))
    running = [f"process {pid}" for pid in processes.marked(str(home))]
    return [*running, *remains.mounts_below(home, mounts), *map(str, [*groups, *links, *namespaces, *logs, *results])]


@contextmanager
def delayed(cluster: LocalCluster, name: str, milliseconds: int) -> Iterator[None]:
    """Inside the block round trips between the node `name` and all others take longer by `milliseconds`."""
    found = {node.name: node for node in nodes(cluster.layout.home, cluster.options.kubelets)}
    others = [node.address(cluster.options.bind_address) for node in found.values() if node.name != name]
    command = [*enter(found[name]), sys.executable, "-I", str(delay.__file__), str(milliseconds), *others]
    # Marked, so that it ends with the cluster whatever becomes of the test.
    environment = {**os.environ, processes.MARK: str(cluster.layout.home)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as delaying:
        try:
            assert delaying.stdout is not None
            assert delaying.stdout.readline().startswith("delaying")
            yield
        finally:
            delaying.kill()
