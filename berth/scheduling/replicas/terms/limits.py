"""Limits on the cost of calls while pods that go later are there: a penalty for calls that then reach beyond them.

What all other calls cost has such a penalty in itself. Pods that go later count for nothing else that a call costs.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import replace

import numpy as np

from berth.scheduling.replicas.model import Model, Target
from berth.scheduling.replicas.problem import Bools, Floats
from berth.scheduling.replicas.terms.network import Network


class Limits:
    """Limited calls from or to workloads that have pods which go later, kept up to date with the counts."""

    def __init__(self, model: Model, counts: Floats, total: list[float]) -> None:
        """Share the counts with the books: float64[W, K + L + S] and replicas per workload."""
        self._counts, self._total = counts, total
        self._model = _limited(model)
        self.active = bool(self._model.targets)
        """whether there are any"""
        if not self.active:
            return
        self._leaving: Floats = np.zeros_like(counts)
        x, by_location, by_service = model.split(self._leaving)
        x[:] = model.leaving
        by_location[:] = x @ model.incidence
        by_service[:] = x @ model.service_incidence
        self._going: list[float] = model.leaving.sum(axis=1).tolist()
        self._all = counts + self._leaving
        self._replicas = list(total)
        self._network = Network(self._model, self._all, self._replicas)
        for workload in range(len(total)):
            self.sync(workload)

    def sync(self, workload: int) -> None:
        """Take over a workload's changed counts."""
        if self._concerns(workload):
            self._count(workload)
            self._network.sync(workload)

    def add(self, workload: int) -> Floats | float:
        """float64[K], exact change of the term for one more replica of the workload on each column.

        The workload's own counts may differ from what `sync` last saw, those of others may not.
        """
        if not self._concerns(workload):
            return 0.0
        # A pod that is taken away to be judged comes back without a word: only `sync` is to change what counts.
        counts, replicas = self._all[workload].copy(), self._replicas[workload]
        self._count(workload)
        try:
            return self._network.add(workload)
        finally:
            self._all[workload], self._replicas[workload] = counts, replicas

    def value(self, workloads: Iterable[int]) -> float:
        """The penalties of all calls from and to some workloads."""
        model = self._model
        return self._network.value({target for w in workloads for target in (*model.calls[w], *model.called[w])})

    def _concerns(self, workload: int) -> bool:
        return bool(self._model.calls[workload] or self._model.called[workload])

    def _count(self, workload: int) -> None:
        np.add(self._counts[workload], self._leaving[workload], out=self._all[workload])
        self._replicas[workload] = self._total[workload] + self._going[workload]


def _limited(model: Model) -> Model:
    """The model with those calls alone that pods which go later have part in, at the price of a broken rule."""
    going: Bools = model.leaving.sum(axis=1) > 0
    kept: dict[int, Target] = {}
    for number, target in enumerate(model.targets if model.limited else ()):
        if not going[[target.callee, *model.callers[number]]].any():
            continue
        limit = model.limit(number)
        if limit is not None:
            near = None if limit.near_cost is None else model.penalty * limit.near_cost
            kept[number] = replace(limit, spread_cost=model.penalty * limit.spread_cost, near_cost=near)
    position = {number: at for at, number in enumerate(kept)}
    made = copy(model)
    made.targets = list(kept.values())
    made.calls, made.called = (
        [[position[number] for number in numbers if number in position] for numbers in table]
        for table in (model.calls, model.called)
    )
    return made
