"""The optimum: of all ways to make pairs of the pods, the one with the least of something."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from berth.scheduling.interference.slowdown import Workload

PairCost = Callable[[Workload, Workload], float]
"""Cost of two pods on one socket, whichever is named first."""


def least_of_pairs(pods: Sequence[Workload], cost: PairCost) -> float:
    """Return the least sum of costs when all pods are on sockets in pairs, exactly.

    Which of several equal pods has which partner makes no difference, so that 16 pods of ten kinds are done quickly.

    Args:
        pods: pods, an even number of them, on half as many sockets.
        cost: cost of a pair.
    """

    @cache
    def rest_of(left: tuple[Workload, ...]) -> float:
        if not left:
            return 0.0
        first, others = left[0], left[1:]
        return min(
            cost(first, other) + rest_of(others[:at] + others[at + 1 :])
            for at, other in enumerate(others)
            if other not in others[:at]
        )

    return rest_of(tuple(sorted(pods)))
