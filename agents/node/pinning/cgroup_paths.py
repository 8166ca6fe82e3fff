"""Where the cgroup of a container is below a hierarchy, for both cgroup drivers, containerd and CRI-O. No I/O.

The forms are those of the kubelet (``pkg/kubelet/cm``), of runc's systemd driver and of the two runtimes.
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import PurePath, PurePosixPath
from typing import Final

ROOT: Final = PurePosixPath("/")
"""The top of a hierarchy."""
_SYSTEMD: Final = re.compile("([^:/]*):([^:/]*):([^:/]+)")
_POD: Final = re.compile("pod[^/]+|kubepods-(?:[a-z]+-)?pod[^/]+[.]slice")


class Driver(StrEnum):
    """Who makes cgroups: the kubelet's and the runtime's ``cgroupDriver``."""

    SYSTEMD = "systemd"
    """slices and scopes"""
    CGROUPFS = "cgroupfs"
    """plain directories"""


class Runtime(StrEnum):
    """Container runtimes, by what they write before a container's ID."""

    CONTAINERD = "containerd"
    """containerd"""
    CRIO = "crio"
    """CRI-O"""


class QosClass(StrEnum):
    """Quality-of-service class of a pod, by the kubelet's name of its cgroup."""

    GUARANTEED = ""
    """no level of its own"""
    BURSTABLE = "burstable"
    """requests, and limits above them or none"""
    BEST_EFFORT = "besteffort"
    """neither"""


class CgroupPathError(ValueError):
    """A runtime's ``cgroupsPath`` has no form that is known; the text shows it."""


def container_path(cgroups_path: str) -> PurePosixPath:
    """Return the path that a runtime's ``linux.cgroupsPath`` stands for, from the top of a hierarchy.

    Args:
        cgroups_path: ``/kubepods/podUID/ID`` of the driver cgroupfs, ``SLICE:PREFIX:ID`` of systemd.

    Raises:
        CgroupPathError: it is neither, or leads upwards.
    """
    if cgroups_path.startswith("/") and ".." not in PurePosixPath(cgroups_path).parts:
        return PurePosixPath(cgroups_path)
    match = _SYSTEMD.fullmatch(cgroups_path)
    if match is None:
        raise CgroupPathError(f"{cgroups_path[:200]!r} is no path such as /kubepods/podUID/ID and no SLICE:PREFIX:ID")
    slice_name, prefix, name = match.groups()
    unit = name if name.endswith(".slice") else f"{prefix}-{name}.scope"
    return slice_path(slice_name or "system.slice") / unit


def slice_path(name: str) -> PurePosixPath:
    """Return where a slice is: ``a-b.slice`` is in ``a.slice``, as systemd.slice(5) says.

    >>> str(slice_path("kubepods-burstable.slice"))
    '/kubepods.slice/kubepods-burstable.slice'

    Raises:
        CgroupPathError: it is no name of a slice.
    """
    stem = name.removesuffix(".slice")
    if stem == "-":
        return ROOT
    words = stem.split("-")
    if stem == name or not all(words):
        raise CgroupPathError(f"{name[:200]!r} is no slice such as kubepods-burstable.slice")
    return ROOT.joinpath(*(f"{'-'.join(words[:count])}.slice" for count in range(1, len(words) + 1)))


def pod_path(driver: Driver, qos: QosClass, uid: str, *, root: PurePosixPath = ROOT) -> PurePosixPath:
    """Return the cgroup of a pod as the kubelet makes it.

    Args:
        driver: the kubelet's.
        qos: class of the pod.
        uid: UID of the pod; of a static pod the hash of its configuration.
        root: the kubelet's ``cgroupRoot``; with systemd slices below ``/`` alone.
    """
    if driver is Driver.SYSTEMD:
        level = f"-{qos}" if qos else ""
        return root / slice_path(f"kubepods{level}-pod{uid.replace('-', '_')}.slice").relative_to(ROOT)
    return root.joinpath("kubepods", *([str(qos)] if qos else []), f"pod{uid}")


def container_directory(driver: Driver, runtime: Runtime, container_id: str) -> str:
    """Return the name of a container's cgroup inside its pod's."""
    if driver is Driver.SYSTEMD:
        prefix = "cri-containerd" if runtime is Runtime.CONTAINERD else "crio"
        return f"{prefix}-{container_id}.scope"
    return container_id if runtime is Runtime.CONTAINERD else f"crio-{container_id}"


def container_directories(container_id: str) -> frozenset[str]:
    """Return every name that a container's cgroup may have, whoever made it; CRI-O's monitor of it has another."""
    return frozenset(container_directory(driver, runtime, container_id) for driver in Driver for runtime in Runtime)


def container_in(directory: str) -> str | None:
    """Return the ID of the container that a cgroup inside a pod's is of; None if it is of none."""
    match = re.fullmatch("(?:cri-containerd-|crio-)?([0-9a-f]{64})(?:[.]scope)?", directory)
    return match[1] if match and directory in container_directories(match[1]) else None


def may_be(path: PurePath, container_id: str) -> bool:
    """Return whether a cgroup may be a container's: its name has the ID in it, as with all runtimes, and no other one.

    That of a pod, or of all pods of a class, would have everybody in it written.
    """
    return bool(container_id) and container_id in path.name and container_in(path.name) in (None, container_id)


def is_container(path: PurePath) -> bool:
    """Return whether a cgroup is that of a pod's container: what is inside such a one its processes may have made."""
    return container_in(path.name) is not None and _POD.fullmatch(path.parent.name) is not None


def pod_paths(uid: str, *, root: PurePosixPath = ROOT) -> tuple[PurePosixPath, ...]:
    """Return every cgroup that a pod of that UID may have, whatever its class and the driver."""
    return tuple(pod_path(driver, qos, uid, root=root) for driver in Driver for qos in QosClass)
