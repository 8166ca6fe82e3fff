"""Reads and writes the cpuset of one cgroup, and asks the kernel where processes really may run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Final

from agents.node.pinning.hierarchy import Version
from berth.api.cpulist import format_cpulist, parse_cpulist

PROC: Final = Path("/proc")
"""Where processes are; those of other containers are there in the host's PID namespace alone."""
_PART_BYTES: Final = 2**16
_MOST_INSIDE: Final = 1024
"""Cgroups inside a container's that are looked at: who may make them there can make any number."""
_EFFECTIVE: Final = {
    Version.V1: ("cpuset.effective_cpus", "cpuset.effective_mems"),
    Version.V2: ("cpuset.cpus.effective", "cpuset.mems.effective"),
}


class CpusetError(Exception):
    """A cpuset cannot be read or written; the text names the file and says why."""

    def __init__(self, path: Path, error: Exception) -> None:
        """Name the file, and keep whether the cgroup is gone, as that of a container that has ended."""
        self.gone = isinstance(error, OSError) and not path.parent.is_dir()
        """True when there is no such cgroup any more."""
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        above = path.parent.parent / "cgroup.subtree_control"
        if isinstance(error, FileNotFoundError) and not self.gone and above.is_file():
            reason = f"the controller cpuset is not switched on for this cgroup; write +cpuset to {above}"
        super().__init__(f"{path}: {reason}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpuset:
    """What a cgroup's cpuset says and what is true of it."""

    cpus: str
    """list of CPUs as somebody wrote it; empty: those of the cgroup above"""
    mems: str
    """list of NUMA nodes, in the same way"""
    effective_cpus: frozenset[int]
    """CPUs that its processes may use"""
    effective_mems: frozenset[int]
    """NUMA nodes that they may take memory of"""
    allowed_cpus: frozenset[int]
    """CPUs that the cgroup above lets it have"""
    allowed_mems: frozenset[int]
    """NUMA nodes that the cgroup above lets it have"""
    partition: bool = False
    """whether it has its CPUs to itself, as somebody has set it (version 2); the cgroup above has them no more then"""


def read_cpuset(cgroup: Path, version: Version) -> Cpuset:
    """Return the cpuset of a cgroup that is not the top of its hierarchy.

    Raises:
        CpusetError: the cgroup is gone, or the controller is not switched on for it.
    """
    cpus, mems = _EFFECTIVE[version]
    stated, effective = _text(cgroup / "cpuset.cpus"), _numbers(cgroup / cpus)
    partition = version is Version.V2 and _is_partition(cgroup)
    return Cpuset(
        cpus=stated,
        mems=_text(cgroup / "cpuset.mems"),
        effective_cpus=effective,
        effective_mems=_numbers(cgroup / mems),
        allowed_cpus=_numbers(cgroup.parent / cpus) | (effective if partition else frozenset()),
        allowed_mems=_numbers(cgroup.parent / mems),
        partition=partition,
    )


def is_in_effect(cgroup: Path, version: Version, known: Cpuset) -> bool:
    """Return whether a cgroup has the same in effect as when its cpuset was read: a third of the files say so.

    Raises:
        CpusetError: as :func:`read_cpuset`.
    """
    cpus, mems = _EFFECTIVE[version]
    found = _numbers(cgroup / cpus), _numbers(cgroup / mems)
    return found == (known.effective_cpus, known.effective_mems)


def write_cpuset(cgroup: Path, version: Version, cpus: frozenset[int], mems: frozenset[int]) -> None:
    """Give the processes of a cgroup these CPUs and NUMA nodes, both not empty; cgroups inside it follow.

    Memory first: a write of NUMA nodes moves pages, which takes seconds for hundreds of MiB, and is left out where
    nothing changes. Call it in a thread.

    Raises:
        CpusetError: the kernel refuses, as CPUs that the cgroup above does not have; one of two may have changed.
    """
    for name, wanted in (("cpuset.mems", mems), ("cpuset.cpus", cpus)):
        before = _numbers(cgroup / name)
        if before == wanted:
            continue
        # Version 2 needs nothing of the sort: what is inside has in effect what is left to it.
        followers = list(_followers(cgroup, name, before, wanted)) if version is Version.V1 else []
        if followers:
            _write(cgroup / name, before | wanted)
            for path in followers:
                with _may_vanish():
                    _write(path / name, _numbers(path / name) | wanted)
            for path in reversed(followers):
                with _may_vanish():
                    _write(path / name, wanted)
        _write(cgroup / name, wanted)


def _followers(cgroup: Path, name: str, before: frozenset[int], wanted: frozenset[int]) -> Iterator[Path]:
    """Cgroups inside that have what the outer one has, or more than it is to have."""
    for path in _inside(cgroup):
        with _may_vanish():
            found = _numbers(path / name)
            if found == before or not found <= wanted:
                yield path


@contextmanager
def _may_vanish() -> Iterator[None]:
    """Pass over a cgroup inside that is gone: what runs in a container makes and removes them at any time."""
    try:
        yield
    except CpusetError as error:
        if not error.gone:
            raise


def strays(cgroup: Path, cpus: frozenset[int], *, first: int = 0, proc: Path = PROC) -> list[int]:
    """Return processes that may run on other CPUs than these, by what the kernel says of each process.

    Args:
        cgroup: the cgroup; processes of cgroups inside it count.
        cpus: where they may run.
        first: first process of the container, 0 if not known: it may have left the cgroup.
        proc: where processes are.

    Raises:
        CpusetError: the cgroup is gone.
    """
    found = {int(pid) for pid in _text(cgroup / "cgroup.procs").split()}
    for path in _inside(cgroup):
        with _may_vanish():
            # The kernel tells no processes of a cgroup that has some threads of them.
            members = "cgroup.threads" if _is_threaded(path) else "cgroup.procs"
            found |= {int(pid) for pid in _text(path / members).split()}
    # 0 is a process of another PID namespace, which is not to be seen; the first process is another one there.
    chosen = found - {0} if 0 in found else {first, *found} - {0}
    return sorted(pid for pid in chosen if not allowed(pid, proc=proc) <= cpus)


def has_left(cgroup: Path, cpus: frozenset[int], first: int, *, proc: Path = PROC) -> bool:
    """Return whether a container's first process has left its cgroup and may run on other CPUs than these.

    Those that are in the cgroup are kept there by the kernel. Arguments are those of :func:`strays`.

    Raises:
        CpusetError: the cgroup is gone.
    """
    present = _text(cgroup / "cgroup.procs").split()
    return str(first) not in present and "0" not in present and not allowed(first, proc=proc) <= cpus


def allowed(pid: int, *, proc: Path = PROC) -> frozenset[int]:
    """Return the CPUs that the kernel lets a process use; none of one that has ended or cannot be seen."""
    try:
        # Not as text: the first line is the process's name, for which it may choose any bytes.
        lines = (proc / str(pid) / "status").read_bytes().splitlines()
    except OSError:
        return frozenset()
    return next(
        (parse_cpulist(line.split()[1].decode()) for line in lines if line.startswith(b"Cpus_allowed_list:")),
        frozenset(),
    )


def has_inside(cgroup: Path) -> bool:
    """Return whether there are cgroups inside one, such as a container makes that runs containers itself."""
    return next(_inside(cgroup), None) is not None


def is_populated(cgroup: Path) -> bool:
    """Return whether anything runs in a cgroup, or in one inside it."""
    for path in (cgroup, *_inside(cgroup)):
        with suppress(OSError):
            if (path / "cgroup.procs").read_bytes():
                return True
    return False


def _is_partition(cgroup: Path) -> bool:
    file = cgroup / "cpuset.cpus.partition"
    # One whose CPUs are not to be had is told as "root invalid", and has what a member has. Linux before 5.0 has none.
    return file.is_file() and _text(file) in ("root", "isolated")


def _is_threaded(cgroup: Path) -> bool:
    file = cgroup / "cgroup.type"
    return file.is_file() and _text(file) == "threaded"


def _inside(cgroup: Path) -> Iterator[Path]:
    """Cgroups inside, outer ones first, :data:`_MOST_INSIDE` at the most."""
    below = (Path(directory) for directory, _, _ in os.walk(cgroup))
    return islice(below, 1, 1 + _MOST_INSIDE)


def _text(path: Path) -> str:
    # Hundreds of these files are read every few seconds: streams take longer to make than the kernel to answer.
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            parts = []
            while part := os.read(file, _PART_BYTES):
                parts.append(part)
        finally:
            os.close(file)
    except OSError as error:
        raise CpusetError(path, error) from error
    return b"".join(parts).decode().strip()


@lru_cache(maxsize=1024)
def _parsed(text: str) -> frozenset[int]:
    # Containers of a node share a few lists.
    return parse_cpulist(text)


def _numbers(path: Path) -> frozenset[int]:
    try:
        return _parsed(_text(path))
    except ValueError as error:
        raise CpusetError(path, error) from error


def _write(path: Path, numbers: frozenset[int]) -> None:
    try:
        path.write_text(format_cpulist(numbers))
    except OSError as error:
        raise CpusetError(path, error) from error
