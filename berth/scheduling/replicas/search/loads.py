"""What decided workloads take of bandwidth budgets, for exact search: the others may take no more than what is left."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.problem import Bools, Edge, Floats
from berth.scheduling.replicas.search.options import Options


class Loads:
    """Edges with minBandwidth, each counted as soon as both its ends are decided."""

    def __init__(self, books: Books, options: Options) -> None:
        """Take the ways to place each workload; those without pods to place are decided from the start."""
        self._bandwidth, self._placed, self._ways = books.bandwidth, books.model.placed, options.total
        edges = [edge for edge in books.model.problem.edges if edge.bandwidth > 0]
        self._of: dict[int, list[Edge]] = {
            workload: [edge for edge in edges if workload in (edge.caller, edge.callee)]
            for workload in options.workloads
        }
        self.settled: Floats = np.zeros(len(books.bandwidth.allowed))
        """float64[budgets], what edges take whose ends are both decided from the start"""
        for edge in edges:
            if edge.caller not in self._of and edge.callee not in self._of:
                self.settled += books.bandwidth.of(edge, self._placed[edge.caller], self._placed[edge.callee])

    def more(self, workload: int, chosen: Mapping[int, int]) -> Floats:
        """float64[P, budgets], what each way to place a workload adds; `chosen` are the ways of others, by workload."""
        ways = self._ways[workload]
        total: Floats = np.zeros((len(ways), len(self.settled)))
        for edge in self._of[workload]:
            other = edge.callee if edge.caller == workload else edge.caller
            if other in self._of and other not in chosen:
                continue
            there = self._ways[other][chosen[other]] if other in chosen else self._placed[other]
            ends = (ways, there) if edge.caller == workload else (there, ways)
            total += self._bandwidth.of(edge, *ends)
        return total

    def fits(self, taken: Floats) -> Bools:
        """bool[...], whether budgets hold what is taken of them, float64[..., budgets]."""
        return np.asarray((taken <= self._bandwidth.allowed).all(axis=-1))
