"""What pods of a few workloads cost together on a socket, by how many there are of each, and what two sockets can win.

A group is one whole number: the count of the first workload, that of the second times `STRIDE`, and so on. One pod more
is a sum then, and what was worked out is found by a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from berth.scheduling.interference.assignment import EXACT_PODS
from berth.scheduling.interference.closeness import closeness, on_siblings
from berth.scheduling.interference.slowdown import harms

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

STRIDE: Final = 1 << 10
MOST: Final = STRIDE - 1
"""Pods of one workload in a group at most."""
REMEMBERED: Final = 1 << 15
"""Groups, and pairs of groups, that are remembered, about 3 and 7 MB; of more it begins anew."""
ROUNDING: Final = 1e-9
"""Sums differ in their last places by the order of their parts."""


class SmallGroups(NamedTuple):
    """Groups of few pods, R, and who is in them."""

    groups: list[int]
    """R, ascending; nobody is the first"""
    counts: Ints
    """int64[R, W], pods of each workload"""


@lru_cache
def small_groups(workloads: int, most: int) -> SmallGroups:
    """Return all groups of so many workloads and at most so many pods."""
    every = np.indices((most + 1,) * workloads).reshape(workloads, -1)[::-1].T  # the first changes fastest: ascending
    counts = every[every.sum(axis=1) <= most]
    return SmallGroups((counts @ STRIDE ** np.arange(workloads)).tolist(), counts)


class Change(NamedTuple):
    """What one pod that moves, or two that change places, make of two sockets."""

    cost: float
    """what both cost more then, less than 0 where it is better"""
    before: tuple[int, int]
    """the group on each now"""
    after: tuple[int, int]
    """the group on each then"""


class GroupCosts:
    """Groups of W workloads on sockets that are alike."""

    def __init__(
        self, excess: Sequence[Sequence[float]], alone: Sequence[float], caches: int = 1, cores: int = 0
    ) -> None:
        """Begin without any.

        Args:
            excess: W rows of W, what a pod of the row's workload suffers beside one of the column's.
            alone: W, price of a pod of each alone on a socket.
            caches: last-level caches of a socket that its pods are kept apart in.
            cores: its cores, where some have SMT siblings and each pod keeps one CPU busy; 0: nobody meets on these.
        """
        self._excess, self._alone, self._socket = np.array(excess), np.array(alone), (caches, cores)
        self.strides = tuple(STRIDE**number for number in range(len(alone)))
        """one pod of each workload"""
        self._small = small_groups(len(alone), EXACT_PODS)
        self._costs = self._of_small()
        self._changes: dict[tuple[int, int], Change] = {}

    def counts(self, group: int) -> list[int]:
        """Return how many pods of each workload a group has."""
        return [group // stride % STRIDE for stride in self.strides]

    def cost(self, group: int) -> float:
        """Return what the pods of a group cost together; 0 of nobody."""
        found = self._costs.get(group)
        return self.costs([group])[0] if found is None else found

    def costs(self, groups: Sequence[int]) -> list[float]:
        """Return what the pods of each group cost together: those that nobody has asked for are worked out at once."""
        new = [group for group in groups if group not in self._costs]
        if new:
            if len(self._costs) + len(new) > REMEMBERED:
                self._costs, new = self._of_small(), list(groups)
            counts = np.array(new)[:, None] // np.array(self.strides) % STRIDE
            self._costs.update(zip(new, self._of_each(counts).tolist(), strict=True))
        return [self._costs[group] for group in groups]

    def best_change(self, one: int, other: int) -> Change:
        """Return the best that one pod of two sockets can do, or two; of sockets without pods, nothing."""
        found = self._changes.get((one, other))
        if found is None:
            if len(self._changes) >= REMEMBERED:
                self._changes.clear()
            found = self._changes[one, other] = self._best_change(one, other)
        return found

    def _of_small(self) -> dict[int, float]:
        groups, counts = self._small
        return dict(zip(groups, self._of_each(counts).tolist(), strict=True))

    def _of_each(self, counts: Ints) -> Floats:
        """float64[R], what groups cost, of int64[R, W] pods of each workload."""
        pods = counts.sum(axis=1)
        caches, cores = self._socket
        together = np.array([closeness(caches, each) + on_siblings(cores, each, each, each) for each in pods.tolist()])
        suffered = (counts @ self._excess.T - self._excess.diagonal()) * together[:, None]
        found: Floats = np.where(pods == 1, counts @ self._alone, (counts * harms(suffered)).sum(axis=1))
        return found

    def _best_change(self, one: int, other: int) -> Change:
        here, there = ([stride for stride in self.strides if group // stride % STRIDE] for group in (one, other))
        changed = [(one - goes, other + goes) for goes in here]
        changed += [(one + comes, other - comes) for comes in there]
        changed += [(one - goes + comes, other - comes + goes) for goes in here for comes in there if goes != comes]
        costs, now = self.costs([group for after in changed for group in after]), self.cost(one) + self.cost(other)
        best = Change(0.0, (one, other), (one, other))
        for after, first, second in zip(changed, costs[::2], costs[1::2], strict=True):
            if first + second - now < best.cost - ROUNDING:
                best = Change(first + second - now, (one, other), after)
        return best
