"""Finds the cgroup hierarchy with cpusets, of version 1 or 2, and the cgroups of containers in it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path, PurePosixPath
from typing import Final

from agents.node.pinning.cgroup_paths import container_directories, container_in, is_container, pod_paths

MOUNT: Final = Path("/sys/fs/cgroup")
"""Where hierarchies are mounted."""
_DEEPEST: Final = 8
"""Levels that are searched: kubelets have a container at the fifth, below roots of their own a little deeper."""


class Version(IntEnum):
    """Versions of the interface, which have other files and other rules."""

    V1 = 1
    """a hierarchy for each controller; a cpuset has to be within the one above it"""
    V2 = 2
    """one hierarchy; a cpuset may state anything, and has in effect what the one above has of it"""


class HierarchyError(OSError):
    """No hierarchy has cpusets; the text names the directory and says what to do."""


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A hierarchy of cgroups whose controller cpuset works."""

    root: Path
    """its directory"""
    version: Version
    """its interface"""

    def cgroup(self, path: PurePosixPath) -> Path:
        """Return the directory of the cgroup with a path from the top of the hierarchy."""
        return self.root / path.relative_to("/")

    def stated(self, path: PurePosixPath | str) -> Path | None:
        """Return the cgroup with a path from the top of the hierarchy, as a runtime or the journal states it.

        None if it is not there, and of a path that leads to no container: to the top, or out of the hierarchy.
        """
        parts = [part for part in PurePosixPath(path).parts if part.strip("/")]
        if not parts or ".." in parts:
            return None
        cgroup = self.root.joinpath(*parts)
        # Path.is_dir raises an error where a name is too long for any directory.
        return cgroup if os.path.isdir(cgroup) else None

    def path_of(self, cgroup: Path) -> PurePosixPath:
        """Return the path of a cgroup from the top of the hierarchy: the same wherever the hierarchy is mounted."""
        return PurePosixPath("/") / cgroup.relative_to(self.root)

    def find(self, container_id: str, stated: str) -> Path | None:
        """Return the cgroup of a container: the one with the stated path if it is there, else wherever it is.

        None if there is none: the container has ended.
        """
        return self.stated(stated) or self.search(container_id)

    def search(self, container_id: str) -> Path | None:
        """Return the cgroup of a container wherever it is; None if there is none."""
        return self.search_all([container_id]).get(container_id)

    def search_all(self, container_ids: Iterable[str]) -> dict[str, Path]:
        """Return the cgroups of containers, by ID, of those that have one; looks at every cgroup once at the most."""
        names = {name: container_id for container_id in container_ids for name in container_directories(container_id)}
        missing = set(names.values())
        found: dict[str, Path] = {}
        for path in self._below() if missing else ():
            container_id = names.get(path.name)
            if container_id is not None and found.setdefault(container_id, path) is path:
                missing.discard(container_id)
                if not missing:
                    break
        return found

    def containers_of(self, pod_uids: frozenset[str]) -> Iterator[tuple[str, str, Path]]:
        """UID of the pod, ID and cgroup of every container of these pods, for when the runtime cannot be asked.

        The container that holds a pod's namespaces is among them: cgroups say nothing about what is in them.
        """
        endings = {(path.parent.name, path.name): uid for uid in pod_uids for path in pod_paths(uid)}
        for path in self._below():
            uid = endings.get((path.parent.name, path.name))
            for inner in _directories(path) if uid else ():
                container = container_in(inner.name)
                if uid and container:
                    yield uid, container, inner

    def _below(self) -> Iterator[Path]:
        depth = len(self.root.parts)
        for directory, names, _ in os.walk(self.root):
            path = Path(directory)
            # What containers make inside their own cgroups can be very many, and have the names of another pod.
            is_searched = len(path.parts) - depth < _DEEPEST and not is_container(path)
            # Kubelets and runtimes make no names that are no text, and the journal could not hold such a path.
            names[:] = filter(_is_text, names) if is_searched else ()
            yield path


def _is_text(name: str) -> bool:
    """Whether a name holds no bytes but those of UTF-8; what else there is comes as surrogates."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def _directories(path: Path) -> list[Path]:
    """Directories in one; none in one that is gone, as the cgroup of a pod that ends meanwhile."""
    try:
        return [inner for inner in path.iterdir() if inner.is_dir()]
    except OSError:
        return []


def find_hierarchy(mount: Path = MOUNT) -> Hierarchy:
    """Return the hierarchy with cpusets.

    Args:
        mount: where hierarchies are mounted; or the mounted hierarchy itself.

    Raises:
        HierarchyError: there is none.
    """
    candidates = (mount, mount / "cpuset", *sorted(mount.glob("*,cpuset")), *sorted(mount.glob("cpuset,*")))
    for root in candidates:
        if (root / "cpuset.cpus").is_file() and not (root / "cgroup.controllers").is_file():
            return Hierarchy(root, Version.V1)
    for root in (mount, mount / "unified"):
        try:
            controllers = (root / "cgroup.controllers").read_text().split()
        except OSError:
            continue
        if "cpuset" in controllers:
            return Hierarchy(root, Version.V2)
    raise HierarchyError(
        f"{mount}: no hierarchy with the controller cpuset; mount the host's /sys/fs/cgroup there, or name where it is"
    )
