"""Processes that run in the containers of a real node."""

from __future__ import annotations

from pathlib import Path

from hack.localcluster.kubelets import cgroups
from hack.localcluster.kubelets.names import Node


def first_processes(node: Node, *arguments: str) -> list[int]:
    """First processes of the node's containers whose command lines have these arguments one after the other."""
    wanted = b"\0".join([b"", *(argument.encode() for argument in arguments), b""])
    hierarchy = cgroups.hierarchies(Path("/proc/self/mounts").read_text())[0] / node.namespace
    listed = {int(pid) for path in hierarchy.rglob("cgroup.procs") for pid in path.read_text().split()}
    found = [pid for pid in listed if wanted in _command_line(pid)]
    return [pid for pid in found if _parent(pid) not in found]


def _command_line(pid: int) -> bytes:
    """Command line of a process; nothing of one that has ended meanwhile."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
