"""NodeResourcesFit and NodeResourcesBalancedAllocation: how full, and how evenly full, a node gets.

Formulas are those of kube-scheduler, in whole numbers where it uses them. Resources other than cpu
and memory take part only for pods that request them, and only where the node has them.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.plugins.scores.base import MAX_SCORE, Score, Values, kept

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from berth.scheduling.cache.columns import Mask
    from berth.scheduling.cache.pod_templates import PodInfo
    from berth.scheduling.cache.state import ClusterState

DEFAULT_RESOURCES: Mapping[str, int] = {"cpu": 1, "memory": 1}
_SCORING = {"cpu": 0, "memory": 1}


def _amounts(
    name: str, info: PodInfo, state: ClusterState, *, defaults: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], int] | None:
    """(allocatable, used, the pod's request) of a resource; None when it takes no part.

    ``defaults`` counts containers without requests as kube-scheduler's non-zero defaults.
    """
    column = state.resources.get(name)
    if column is None:
        return None
    request = dict(info.template.requests).get(name, 0)
    used = state.used[:, column]
    if defaults and name in _SCORING:
        request = info.template.scoring_requests[_SCORING[name]]
        used = state.nodes.scoring_used[:, _SCORING[name]]
    if not request and name not in ("cpu", "memory", "ephemeral-storage"):
        return None
    return state.allocatable[:, column], used, request


class AllocationScore(Score):
    """Mean over the resources, by weight, of a percentage of the node's allocatable."""

    name = "NodeResourcesFit"

    def __init__(self, *, weight: float = 1.0, resources: Mapping[str, int] = DEFAULT_RESOURCES) -> None:
        """``weight`` in the sum; ``resources`` gives each resource's own weight."""
        self.weight = weight
        self.resources = dict(resources)

    def raw(self, info: PodInfo, state: ClusterState, feasible: Mask) -> Values:  # noqa: ARG002
        """0 to 100 per node."""
        total = np.zeros(state.size, dtype=np.int64)
        weights = np.zeros(state.size, dtype=np.int64)
        for name, weight in self.resources.items():
            amounts = _amounts(name, info, state, defaults=True)
            if amounts is None:
                continue
            allocatable, used, request = amounts
            has = allocatable > 0
            share = self.share(used + request, np.maximum(allocatable, 1))
            total += np.where(has, share * weight, 0)
            weights += np.where(has, weight, 0)
        return (total // np.maximum(weights, 1)).astype(np.float64)

    def normalise(self, raw: Values, feasible: Mask) -> Values:
        """Raw values are percentages already."""
        return kept(raw, feasible)

    @abstractmethod
    def share(self, requested: NDArray[np.int64], allocatable: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64[N] from 0 to 100 for one resource, the pod included in ``requested``."""


class LeastAllocatedScore(AllocationScore):
    """Prefers empty nodes; kube-scheduler's default strategy."""

    def share(self, requested: NDArray[np.int64], allocatable: NDArray[np.int64]) -> NDArray[np.int64]:
        """(allocatable - requested) * 100 / allocatable, 0 when over-full."""
        share: NDArray[np.int64] = np.maximum(allocatable - requested, 0) * 100 // allocatable
        return share


class MostAllocatedScore(AllocationScore):
    """Prefers full nodes, for packing."""

    def share(self, requested: NDArray[np.int64], allocatable: NDArray[np.int64]) -> NDArray[np.int64]:
        """requested * 100 / allocatable, at most 100."""
        share: NDArray[np.int64] = np.minimum(requested, allocatable) * 100 // allocatable
        return share


class BalancedAllocationScore(Score):
    """Prefers nodes whose resources the pod brings to like fractions of use.

    With s(x) = 100 * (1 - standard deviation of the fractions of use x), the score is
    50 + (50 + s(with the pod) - s(without it)) / 2, in whole numbers: 75 when nothing changes.
    """

    name = "NodeResourcesBalancedAllocation"

    def __init__(self, *, weight: float = 1.0, resources: Mapping[str, int] = DEFAULT_RESOURCES) -> None:
        """``weight`` in the sum; ``resources`` names the resources, their weights play no part."""
        self.weight = weight
        self.resources = dict(resources)

    def raw(self, info: PodInfo, state: ClusterState, feasible: Mask) -> Values | None:  # noqa: ARG002
        """50 to 100 per node; no opinion on pods that request none of the resources."""
        amounts = [a for name in self.resources if (a := _amounts(name, info, state, defaults=False)) is not None]
        if not any(request for _, _, request in amounts):
            return None
        after = self._balance([(allocatable, used + request) for allocatable, used, request in amounts], state.size)
        before = self._balance([(allocatable, used) for allocatable, used, _ in amounts], state.size)
        return MAX_SCORE // 2 + (MAX_SCORE // 2 + after - before) // 2

    def normalise(self, raw: Values, feasible: Mask) -> Values:
        """Raw values are from 0 to 100 already."""
        return kept(raw, feasible)

    @staticmethod
    def _balance(pairs: list[tuple[NDArray[np.int64], NDArray[np.int64]]], size: int) -> Values:
        """Whole numbers from 50 to 100: 100 for equal fractions; resources a node lacks take no part."""
        fractions = [np.minimum(used / np.maximum(capacity, 1), 1.0) for capacity, used in pairs]
        has = [capacity > 0 for capacity, _ in pairs]
        if len(pairs) == 2:
            # Half the distance is the deviation of two values, free of the rounding of mean and root.
            deviation = np.where(has[0] & has[1], np.abs((fractions[0] - fractions[1]) / 2), 0.0)
        else:
            count = np.maximum(sum((h.astype(np.int64) for h in has), np.zeros(size, dtype=np.int64)), 1)
            mean = sum((np.where(h, f, 0.0) for h, f in zip(has, fractions, strict=True)), np.zeros(size)) / count
            squares = (np.where(h, (f - mean) ** 2, 0.0) for h, f in zip(has, fractions, strict=True))
            deviation = np.sqrt(sum(squares, np.zeros(size)) / count)
        balance: Values = np.trunc((1.0 - deviation) * MAX_SCORE)
        return balance
