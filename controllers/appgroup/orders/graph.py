"""The dependency graph that the orders work on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class DependencyGraph:
    """A directed graph of nodes 0..n-1; an edge leads from a workload to one that it depends on."""

    successors: tuple[tuple[int, ...], ...]
    """For every node the nodes it depends on: in declared order, each once."""

    @classmethod
    def of(cls, successors: Iterable[Iterable[int]]) -> Self:
        """Return the graph with the given successor lists; repeated edges count once.

        Raises:
            ValueError: an edge leads to a number that is no node.
        """
        lists = tuple(tuple(dict.fromkeys(targets)) for targets in successors)
        for node, targets in enumerate(lists):
            for target in targets:
                if not 0 <= target < len(lists):
                    raise ValueError(f"edge {node} -> {target} leads out of the graph of {len(lists)} nodes")
        return cls(lists)

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.successors)

    def in_degrees(self) -> list[int]:
        """Return for every node the number of edges that lead to it."""
        degrees = [0] * len(self.successors)
        for targets in self.successors:
            for target in targets:
                degrees[target] += 1
        return degrees
