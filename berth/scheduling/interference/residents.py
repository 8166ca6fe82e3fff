"""Pods on the sockets of a node, as far as they matter to each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from berth.scheduling.interference.closeness import need_of
from berth.scheduling.interference.slowdown import Workload


class Resident(NamedTuple):
    """A pod on a node, or one that looks for a node."""

    workload: Workload
    """what the slowdown model knows it by"""
    size: int
    """thousandths of a CPU that it requests"""


class Layout(NamedTuple):
    """What decides which pods of a node can be kept apart."""

    capacities: tuple[int, ...]
    """thousandths of a CPU of each socket, by place; empty: nobody knows the sockets"""
    pinned: bool
    """whether pods get the CPUs of a socket; otherwise the kernel puts them anywhere"""
    caches: tuple[int, ...] = ()
    """last-level caches of each socket, by place, that pods on it are kept apart in; empty: one each"""
    cores: tuple[int, ...] = ()
    """cores of each socket, by place, where some have SMT siblings, otherwise 0; empty: 0 each"""

    def for_pods(self, sizes: Sequence[int]) -> Layout:
        """Return the layout as it matters to pods: without cores where all can have their own on any socket.

        Args:
            sizes: thousandths of a CPU that each requests.
        """
        if not self.cores:
            return self
        for capacity, cores in set(zip(self.capacities, self.cores, strict=True)):
            if cores and sum(need_of(size, capacity, 1, cores).cores for size in sizes) > cores:
                return self
        return self._replace(cores=())


def cores_of(counts: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """Return the cores of a layout, none where no socket has SMT siblings.

    Args:
        counts: CPUs and cores of each socket by place; as many cores, more or less than one are none with siblings.
    """
    found = tuple(cores if 0 < cores < cpus else 0 for cpus, cores in counts)
    return found if any(found) else ()


def caches_of(counts: Iterable[int]) -> tuple[int, ...]:
    """Return the caches of a layout: as many as are stated of each socket by place, none where all have one."""
    found = tuple(max(1, each) for each in counts)
    return found if max(found, default=1) > 1 else ()


UNKNOWN_LAYOUT: Final = Layout((), False)
"""A node without SocketStatus, or one that states no sockets yet."""


class Kind(NamedTuple):
    """Nodes that are alike for every newcomer."""

    layout: Layout
    """their sockets"""
    residents: tuple[Resident, ...]
    """their pods with a class, sorted"""

    def with_one_more(self, newcomer: Resident) -> Kind:
        """Return the kind that a node of this one becomes with a newcomer."""
        return Kind(self.layout, tuple(sorted((*self.residents, newcomer))))


EMPTY_KIND: Final = Kind(UNKNOWN_LAYOUT, ())
"""Nodes of which nothing is known, with no pod that has a class."""
