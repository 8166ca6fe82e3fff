"""How large a case is run: the workload nearest to the wanted nodes, made smaller where it is too large."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bench.schedperf.source import Workload

MEASURED = "measurePods"
FEWEST_MEASURED = 0.8
"""Measured pods per node at the least: with a hundred pods a run is over before its rate can be told."""


def choose(workloads: Sequence[Workload], *, nodes: int, pods: int) -> Workload:
    """The workload to run.

    Args:
        workloads: the sizes of a case.
        nodes: wanted nodes. The workload nearest by ratio is taken, the one with most pods among equals; one with more
            nodes shrinks as a whole.
        pods: the most that one operation may create.
    """
    nearest = min(workloads, key=lambda w: (_distance(w, nodes), -_total(w, "pods")))
    total = _total(nearest, "nodes")
    factor = min(1.0, nodes / total) if total else 1.0
    params = {name: _sized(name, value, factor, pods) for name, value in nearest.params.items()}
    if total and MEASURED in params:
        params[MEASURED] = max(params[MEASURED], min(pods, math.floor(FEWEST_MEASURED * _sum(params, "nodes"))))
    return Workload(nearest.name, params)


def _sized(name: str, value: int, factor: float, pods: int) -> int:
    if not isinstance(value, int) or not (_counts(name, "nodes") or _counts(name, "pods")):
        return value
    shrunk = max(1, round(value * factor)) if value else 0
    return min(shrunk, pods) if _counts(name, "pods") else shrunk


def _counts(name: str, what: str) -> bool:
    return what in name.lower()


def _sum(params: dict[str, int], what: str) -> int:
    return sum(value for name, value in params.items() if _counts(name, what))


def _total(workload: Workload, what: str) -> int:
    return _sum(dict(workload.params), what)


def _distance(workload: Workload, nodes: int) -> float:
    total = _total(workload, "nodes")
    return abs(math.log(total / nodes)) if total else 0.0
