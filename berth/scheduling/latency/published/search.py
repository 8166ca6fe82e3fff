"""What the published rounds know, and where a pod goes that was dropped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from berth.scheduling.latency.classification import Limits


class Visited(NamedTuple):
    """A node, as the published rounds know it."""

    node: str
    """its name"""
    microseconds: float | None = None
    """round trip that was measured last; None: not yet"""
    pods: int = 0
    """pods of the workload on it"""
    visits: int = 0
    """how many pods went there since the search began"""
    dropped: bool = False
    """whether it was left for its latency"""

    def reached(self) -> Visited:
        """Return the node with one more pod that went there."""
        return self._replace(pods=self.pods + 1, visits=self.visits + 1)


Rule = Callable[[Sequence[Visited], Limits], tuple[str, ...]]
"""Returns the nodes that a round leaves: all pods of the workload there are deleted. Worst first."""


def measured(nodes: Sequence[Visited]) -> list[tuple[float, Visited]]:
    """Return nodes that have pods and were measured, worst first; equal ones in the given order."""
    found = [(node.microseconds, node) for node in nodes if node.pods and node.microseconds is not None]
    return sorted(found, key=lambda each: -each[0])


def destination(nodes: Sequence[Visited]) -> str:
    """Return where a pod goes: the node visited least, of these the one with fewest pods, of these the first.

    Raises:
        ValueError: there is no node.
    """
    return min(nodes, key=lambda node: (node.visits, node.pods)).node
