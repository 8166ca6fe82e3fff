"""Real nodes for tests: whether this machine can run them, and what an instance has left on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.localcluster import processes
from hack.localcluster.kubelets import cgroups, packages, remains
from hack.localcluster.kubelets.names import bridge, key


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
