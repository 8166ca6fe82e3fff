"""Real nodes for tests: whether this machine can run them, and what an instance has left on it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hack.harness.node_processes import first_processes
from hack.localcluster import LocalCluster, processes
from hack.localcluster.kubelets import cgroups, delay, packages, remains
from hack.localcluster.kubelets.names import PARTS, Node, bridge, key, nodes
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


def _nodes(cluster: LocalCluster) -> list[Node]:
    return nodes(cluster.layout.home, cluster.options.kubelets)


def real_node(cluster: LocalCluster, name: str) -> Node:
    """The node of that name."""
    return next(node for node in _nodes(cluster) if node.name == name)


def address_of(cluster: LocalCluster, name: str) -> str:
    """Address of the node `name`, by which this machine and all pods reach it."""
    return real_node(cluster, name).address(cluster.options.bind_address)


def processes_on(cluster: LocalCluster, name: str, *arguments: str) -> list[int]:
    """First processes of the node's containers whose command lines have these arguments one after the other."""
    return first_processes(real_node(cluster, name), *arguments)


def take_away(cluster: LocalCluster, name: str) -> None:
    """End everything of the node at once, as if its machine were switched off."""
    node = real_node(cluster, name)
    subprocess.run(["ip", "link", "delete", node.interface], check=True)
    for part in reversed(PARTS):
        cluster.stop_component(f"{part}-{node.number}", grace=0)
    cgroups.delete(node.namespace)


def bring_back(cluster: LocalCluster) -> None:
    """Start what does not run of a cluster, such as a node that was taken away."""
    LocalCluster.start(cluster.name, root=cluster.layout.home.parent)


@contextmanager
def delayed(cluster: LocalCluster, name: str, milliseconds: int) -> Iterator[None]:
    """Inside the block round trips between the node `name` and all others take longer by `milliseconds`."""
    node = real_node(cluster, name)
    others = [address_of(cluster, other.name) for other in _nodes(cluster) if other != node]
    words = [f"{other}={milliseconds}" for other in others]
    command = [*enter(node), sys.executable, "-I", str(delay.__file__), *words]
    # Marked, so that it ends with the cluster whatever becomes of the test.
    environment = {**os.environ, processes.MARK: str(cluster.layout.home)}
    with subprocess.Popen(
        command, env=environment, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    ) as delaying:
        try:
            assert delaying.stdout is not None
            assert delaying.stdout.readline().startswith("delaying")
            yield
        finally:
            delaying.kill()
