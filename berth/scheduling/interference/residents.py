"""Pods on the sockets of a node, as far as they matter to each other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

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
