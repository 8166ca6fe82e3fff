"""Survival: a price for every workload of two or more replicas that are all on one node, or all in one zone."""

from __future__ import annotations

import numpy as np

from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.problem import Bools, Floats


class Survival:
    """Workloads that die with one node or one zone."""

    def __init__(self, model: Model, x: Floats, by_zone: Floats, total: list[float]) -> None:
        """Share the counts with the books: float64[W, K], float64[W, Z] and replicas per workload."""
        prices = model.problem.prices
        self._node, self._zone, self._zone_of = prices.survive_node, prices.survive_zone, model.zone
        self._x, self._by_zone, self._total = x, by_zone, total

    def add(self, workload: int) -> Floats | float:
        """float64[K], exact change for one more replica of the workload on each column."""
        total = self._total[workload]
        if not total:
            return 0.0
        change: Floats | float = 0.0
        before = total >= 2
        counts = self._by_zone[workload]
        if self._zone and np.count_nonzero(counts) == 1:
            change = self._zone * ((counts > 0).take(self._zone_of) - float(before))
        counts = self._x[workload]
        if self._node and np.count_nonzero(counts) == 1:
            change = change + self._node * ((counts > 0) - float(before))
        return change

    def value(self, workload: int) -> float:
        """What the workload costs now."""
        total = self._total[workload]
        if total < 2 or not (self._node or self._zone):
            return 0.0
        on_node = bool(np.count_nonzero(self._x[workload]) == 1)
        in_zone = bool(np.count_nonzero(self._by_zone[workload]) == 1)
        return self._node * on_node + self._zone * in_zone


def survives(counts: Floats) -> Bools:
    """bool[W]: whether replicas by place, float64[W, places], are in more than one place, or fewer than two."""
    alive: Bools = (counts.sum(axis=1) < 2) | (np.count_nonzero(counts, axis=1) > 1)
    return alive
