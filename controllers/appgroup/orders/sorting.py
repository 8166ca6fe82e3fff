"""The table of algorithms, and the one function that orders a graph with any of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from berth.api.appgroup import SortingAlgorithm
from controllers.appgroup.orders.condensation import condense
from controllers.appgroup.orders.graph import DependencyGraph
from controllers.appgroup.orders.kahn import kahn_order
from controllers.appgroup.orders.tarjan import tarjan_order
from controllers.appgroup.orders.transforms import alternate, reverse

Base = Callable[[DependencyGraph], list[int]]
Transform = Callable[[Sequence[int]], list[int]]

_ALGORITHMS: Final[dict[SortingAlgorithm, tuple[Base, Transform]]] = {
    SortingAlgorithm.KAHN_SORT: (kahn_order, list),
    SortingAlgorithm.ALTERNATE_KAHN: (kahn_order, alternate),
    SortingAlgorithm.REVERSE_KAHN: (kahn_order, reverse),
    SortingAlgorithm.TARJAN_SORT: (tarjan_order, list),
    SortingAlgorithm.ALTERNATE_TARJAN: (tarjan_order, alternate),
    SortingAlgorithm.REVERSE_TARJAN: (tarjan_order, reverse),
}


@dataclass(frozen=True, slots=True)
class Ordering:
    """The outcome of ordering a graph."""

    order: tuple[int, ...]
    """All nodes, first to schedule first."""
    cycles: tuple[tuple[int, ...], ...]
    """One closed path per strongly connected component with a cycle, such as ``(1, 4, 1)``; empty without cycles."""


def sort_workloads(graph: DependencyGraph, algorithm: SortingAlgorithm) -> Ordering:
    """Order ``graph`` with ``algorithm``, any cycles condensed; time is linear in nodes and edges."""
    base, transform = _ALGORITHMS[algorithm]
    condensation = condense(graph)
    components = transform(base(condensation.graph))
    order = tuple(node for component in components for node in condensation.members[component])
    return Ordering(order=order, cycles=condensation.cycles)
