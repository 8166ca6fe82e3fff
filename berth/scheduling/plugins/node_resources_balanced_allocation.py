"""NodeResourcesBalancedAllocation (score): nodes whose resources the pod brings to like fractions of use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from berth.scheduling.framework.plugin import MAX_SCORE, ScorePlugin, percentages
from berth.scheduling.plugins.node_resources_fit import SCORED_RESOURCES, resource_amounts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from berth.scheduling.framework.cycle_state import CycleState
    from berth.scheduling.framework.plugin import Bools, Floats


class NodeResourcesBalancedAllocation(ScorePlugin):
    """With s(x) = 100 * (1 - standard deviation of the fractions of use x), as in kube-scheduler.

    The score is 50 + (50 + s(with the pod) - s(without it)) / 2, in whole numbers: 75 when nothing changes.
    """

    name = "NodeResourcesBalancedAllocation"

    def __init__(self, *, resources: Iterable[str] = SCORED_RESOURCES) -> None:
        """``resources`` names the resources that count."""
        self.resources = tuple(resources)

    @override
    def score(self, cycle: CycleState, feasible: Bools) -> Floats | None:
        """50 to 100 per node; no opinion on pods that request none of the resources."""
        amounts = [a for name in self.resources if (a := resource_amounts(name, cycle, defaults=False)) is not None]
        if not any(request for _, _, request in amounts):
            return None
        size = cycle.cluster.size
        after = self._balance([(allocatable, used + request) for allocatable, used, request in amounts], size)
        before = self._balance([(allocatable, used) for allocatable, used, _ in amounts], size)
        return MAX_SCORE // 2 + (MAX_SCORE // 2 + after - before) // 2

    def normalize_score(self, raw: Floats, feasible: Bools) -> Floats:
        """Raw values are from 0 to 100 already."""
        return percentages(raw, feasible)

    @staticmethod
    def _balance(pairs: list[tuple[NDArray[np.int64], NDArray[np.int64]]], size: int) -> Floats:
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
        balance: Floats = np.trunc((1.0 - deviation) * MAX_SCORE)
        return balance
