"""The cgroups of nodes: made before a kubelet starts, and the way to every process in a node's containers."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from hack.localcluster.errors import ClusterError

ROOT = Path("/sys/fs/cgroup")
_MOUNTS = Path("/proc/self/mounts")


def hierarchies(mounts: str) -> list[Path]:
    """Where cgroup hierarchies are mounted, of those in *mounts*, the text of ``/proc/self/mounts``."""
    fields = [line.split() for line in mounts.splitlines()]
    return [Path(item[1]) for item in fields if item[2] in ("cgroup", "cgroup2")]


def create(name: str) -> None:
    """Make the cgroup *name* in every hierarchy."""
    for hierarchy in hierarchies(_MOUNTS.read_text()):
        directory = hierarchy / name
        directory.mkdir(exist_ok=True)
        # A cpuset of version 1 takes no process until it is told its processors and memory.
        for setting in ("cpuset.cpus", "cpuset.mems"):
            if (hierarchy / setting).exists() and not (directory / setting).read_text().strip():
                (directory / setting).write_text((hierarchy / setting).read_text())


def delete(prefix: str, *, timeout: float = 60.0) -> None:
    """Kill every process in cgroups whose name begins with *prefix*, and remove them.

    Raises:
        ClusterError: a cgroup is still in use after *timeout* seconds.
    """
    deadline = time.monotonic() + timeout
    while directories := [
        path for root in hierarchies(_MOUNTS.read_text()) for path in root.glob(f"{prefix}*") if path.is_dir()
    ]:
        for directory in directories:
            for inner in _innermost_first(directory):
                _empty(inner)
        if time.monotonic() > deadline:
            raise ClusterError(f"cgroup {directories[0]} is still in use: look at the processes in its cgroup.procs")
        time.sleep(0.02)


def _innermost_first(directory: Path) -> Iterator[Path]:
    for path, _, _ in os.walk(directory, topdown=False):
        yield Path(path)


def _empty(directory: Path) -> None:
    """Kill what is in one cgroup and remove it if nothing is."""
    with contextlib.suppress(OSError):
        for pid in (directory / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
    with contextlib.suppress(OSError):
        directory.rmdir()
