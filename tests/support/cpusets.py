"""Cgroups of a test's own in the machine's hierarchy, in the kubelet's layout, with real processes in them."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from agents.node.pinning.cgroup_paths import Driver, QosClass, Runtime, container_directory, pod_path
from agents.node.pinning.cpuset import allowed
from agents.node.pinning.hierarchy import Hierarchy, find_hierarchy
from hack.localcluster.kubelets import cgroups

SLEEP: Final = ("sleep", "600")
"""What a container runs."""


PODS = "BERTH_TEST_PODS"
"""Environment variable with the number of the process that tests."""


def pod_uid(number: int) -> str:
    """UID of a pod of tests, as tests beside them have cgroups in the same hierarchy: another in each process.

    Those that a process starts have the same.
    """
    tests = int(os.environ.setdefault(PODS, str(os.getpid())))
    return str(uuid.UUID(int=(tests << 64) + number))


@dataclass
class Machine:
    """A part of the machine's hierarchy, with containers."""

    root: str
    """name of the cgroup that all of them are below"""
    driver: Driver = Driver.CGROUPFS
    hierarchy: Hierarchy = field(default_factory=find_hierarchy)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def container(
        self, number: int, *, runtime: Runtime = Runtime.CONTAINERD, command: tuple[str, ...] = SLEEP
    ) -> tuple[str, Path]:
        """Start a container of pod `number` and return its ID and its cgroup."""
        identity = uuid.uuid4().hex * 2
        pod = pod_path(self.driver, QosClass.BURSTABLE, pod_uid(number)).relative_to("/")
        cgroup = self.hierarchy.root / self.root / pod / container_directory(self.driver, runtime, identity)
        make(cgroup, self.hierarchy.root)
        self.run_in(cgroup, *command)
        return identity, cgroup

    def run_in(self, cgroup: Path, *command: str) -> int:
        """Start a process in a cgroup and return its PID."""
        process = subprocess.Popen(command or SLEEP)
        self.processes.append(process)
        (cgroup / "cgroup.procs").write_text(str(process.pid))
        return process.pid

    def end(self, cgroup: Path) -> None:
        """End what runs in a cgroup, and remove it."""
        for process in self.processes:
            if str(process.pid) in (cgroup / "cgroup.procs").read_text().split():
                process.kill()
                process.wait()
        cgroup.rmdir()


def make(cgroup: Path, root: Path) -> None:
    """Make a cgroup and those above it, each with the CPUs and NUMA nodes of the one above, as runc does.

    Version 2 gives it these by itself; there the controller is switched on from the top, as the kubelet does.
    """
    for path in reversed([cgroup, *cgroup.parents]):
        if not path.is_relative_to(root) or path == root:
            continue
        if (path.parent / "cgroup.subtree_control").exists():
            (path.parent / "cgroup.subtree_control").write_text("+cpuset")
            path.mkdir(exist_ok=True)
        elif not path.is_dir():
            path.mkdir()
            for name in ("cpuset.mems", "cpuset.cpus"):
                if (path / name).exists() and not (path / name).read_text().strip():
                    (path / name).write_text((path.parent / name).read_text())


@contextmanager
def machine(name: str, driver: Driver = Driver.CGROUPFS) -> Iterator[Machine]:
    """Room for containers in the machine's own hierarchy; all of it is gone afterwards."""
    if os.geteuid() != 0:
        pytest.skip("cgroups need root: run it as root")
    found = Machine(f"berth-test-{os.getpid()}-{name}", driver)
    if len(everything()) < 2:
        pytest.skip("one CPU cannot be divided: run it on a machine with two")
    cgroups.create(found.root)
    try:
        yield found
    finally:
        cgroups.delete(found.root)
        for process in found.processes:
            process.kill()
            process.wait()


def everything() -> frozenset[int]:
    """CPUs that this process may use."""
    return allowed(os.getpid())
