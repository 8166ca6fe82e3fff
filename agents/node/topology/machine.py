"""What a machine is made of, as far as pods disturb each other in it.

Sockets, dies, NUMA nodes, caches and cores are each a division of the online CPUs of their own, not levels of a tree:
a NUMA node may hold several sockets, a socket several NUMA nodes, and a cache may span two NUMA nodes of a die.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

UNKNOWN_DIE: Final = 0
"""Number of the one die of a socket whose kernel states none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Socket:
    """A physical package."""

    number: int
    """the kernel's physical_package_id; not always counted from 0"""
    cpus: frozenset[int]
    """online CPUs, never empty"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Die:
    """A die of a socket."""

    socket: int
    """number of its socket"""
    number: int
    """the kernel's die_id, unique within the socket alone"""
    cpus: frozenset[int]
    """online CPUs, never empty"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaNode:
    """A memory node and the CPUs that are nearest to it."""

    number: int
    """number of the node"""
    cpus: frozenset[int]
    """online CPUs; empty for a node of memory alone"""
    memory_bytes: int | None
    """memory of the node; None: not known"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastLevelCache:
    """The outermost cache of some CPUs: an L3 on most machines."""

    level: int
    """3 for an L3; 0: no cache is known, and CPUs of one die are taken to share one"""
    size_bytes: int | None
    """size; None: not known"""
    cpus: frozenset[int]
    """online CPUs that share it, never empty"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreType:
    """A kind of core, on machines that have several."""

    name: str
    """the kernel's name of its performance counters (core, atom, lowpower), or ``capacity 446``"""
    cpus: frozenset[int]
    """online CPUs of cores of this kind, never empty"""


class Assumption(NamedTuple):
    """Something that sysfs did not say, and what was taken for it."""

    file: str
    """file or directory below the sysfs directory; of several alike the first"""
    problem: str
    """what is wrong with it"""
    assumed: str
    """what was taken instead"""
    others: int = 0
    """further files with the same problem"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The CPUs of a machine and what they share; each division is ordered by its least CPU or number."""

    sockets: tuple[Socket, ...]
    """physical packages; one at least"""
    dies: tuple[Die, ...]
    """dies of all sockets"""
    numa_nodes: tuple[NumaNode, ...]
    """memory nodes"""
    last_level_caches: tuple[LastLevelCache, ...]
    """outermost caches; each online CPU is in one"""
    cores: tuple[frozenset[int], ...]
    """SMT siblings of each core; each online CPU is in one"""
    core_types: tuple[CoreType, ...] = ()
    """kinds of cores; empty where all are alike"""
    offline: frozenset[int] = frozenset()
    """CPUs that are present and switched off"""
    isolated: frozenset[int] = frozenset()
    """online CPUs over which the kernel spreads no load, as with ``isolcpus`` on its command line"""
    assumptions: tuple[Assumption, ...] = ()
    """what sysfs did not say"""

    @property
    def online(self) -> frozenset[int]:
        """CPUs that run."""
        return frozenset[int]().union(*(socket.cpus for socket in self.sockets))
