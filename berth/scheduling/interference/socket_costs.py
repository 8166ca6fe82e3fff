"""What pods cost together on one socket, and with one more, one less, or one instead of another.

Pods count by their number alone, so that a socket with the same pods as another is not weighed again.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache

from berth.scheduling.interference.slowdown import harms

Floats = npt.NDArray[np.float64]
Numbers = tuple[int, ...]
"""Numbers of the pods on a socket, one a pod, ascending; pods with one number are the same to each other."""
REMEMBERED: Final = 1 << 18
"""Figures that are remembered, about 2 MB; those of one company in any case."""
_BESIDE: Final = 256
"""What a company takes beside its figures, in their unit: of few kinds of pods there are many small ones."""


class Company:
    """Pods on one socket: each kind of them is weighed once, times how many there are."""

    def __init__(self, pods: Numbers, excess: Floats, alone: Floats) -> None:
        """Weigh one more.

        Args:
            pods: who is there, K kinds.
            excess: float64[1 + W, 1 + W], what each pod suffers beside each, 0 from and to the first, who is nobody.
            alone: float64[W], price of each alone on the socket.
        """
        counts = Counter(pods)
        self._pods, self._excess, self._alone = pods, excess, alone
        self._row = {number: row for row, number in enumerate(counts)}
        self._kinds = np.array(list(counts), dtype=np.int64) + 1
        self._count = np.array(list(counts.values()), dtype=np.float64)
        self._beside = excess[self._kinds]
        self._suffered = self._beside[:, self._kinds] @ self._count - self._beside[range(len(counts)), self._kinds]
        self._from_all = excess[:, self._kinds] @ self._count
        one_more: Floats = self._count @ harms(self._suffered[:, None] + self._beside) + harms(self._from_all)
        if not pods:
            one_more[1:] = alone
        elif len(pods) == 1:
            one_more[0] = alone[pods[0]]
        self.one_more = one_more
        """float64[1 + W], what the socket costs with each of the pods beside those that are there; 0 is nobody"""
        self.figures = len(counts) ** 2 * len(excess)
        """what has to be weighed for those who go"""

    def without(self, number: int) -> Floats:
        """float64[1 + W], what the socket costs without a pod that is there, and with each instead of it."""
        row: Floats = self._without[self._row[number]]
        return row

    @cached_property
    def _without(self) -> Floats:
        """float64[K, 1 + W], by kind of the pod that goes."""
        stay, left = (
            self._count[:, None] - np.eye(len(self._kinds)),
            self._suffered[:, None] - self._beside[:, self._kinds],
        )
        costs: Floats = np.einsum("sg,sgn->gn", stay, harms(left[:, :, None] + self._beside[:, None, :]))
        costs += harms(self._from_all[:, None] - self._excess[:, self._kinds]).T
        if len(self._pods) == 1:
            costs[0, 1:] = self._alone
        elif len(self._pods) == 2:
            costs[:, 0] = self._alone[list(self._row)[::-1]]
        return costs


class SocketCosts:
    """Companies of some pods, by number."""

    def __init__(self, excess: Floats, alone: Floats) -> None:
        """Begin without any.

        Args:
            excess: float64[W, W], what the pod of the row suffers beside that of the column, which may be its like.
            alone: float64[W], price of each alone on the socket.
        """
        self._alone = alone
        self._excess = np.zeros((1 + len(alone), 1 + len(alone)))
        self._excess[1:, 1:] = excess
        self._known: LRUCache[Numbers, Company] = LRUCache(max(1, REMEMBERED // (self._excess.size + _BESIDE)))

    def of(self, pods: Numbers) -> Company:
        """Return what some pods cost together."""
        found = self._known.get(pods)
        if found is None:
            found = self._known[pods] = Company(pods, self._excess, self._alone)
        return found
