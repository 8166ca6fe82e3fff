"""What pods cost together on one socket, and with one more, one less, or one instead of another.

Pods count by their number alone, so that a socket with the same pods as another is not weighed again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from berth.scheduling.interference.closeness import Caches
from berth.scheduling.interference.slowdown import harms

Floats = npt.NDArray[np.float64]
Numbers = tuple[int, ...]
"""Numbers of the pods on a socket, one a pod, ascending; pods with one number are the same to each other."""
REMEMBERED: Final = 1 << 18
"""Figures that are remembered, about 2 MB; those of one company in any case."""
CHANGES: Final = 1 << 12
"""Pairs of sockets of which it is remembered what they can change, about 1 MB."""
NEW_CHANGES: Final = 6
"""Of these, how many are found out at a time."""
LARGE: Final = 1 << 13
"""Figures of a company from which on it is not: who looks at all has a bound of work."""
ROUNDING: Final = 1e-9
"""Sums differ in their last places by the order of their parts."""
_BESIDE: Final = 256
"""What a company takes beside its figures, in their unit: of few kinds of pods there are many small ones."""


class Company:
    """Pods on one socket: each kind of them is weighed once, times how many there are."""

    def __init__(self, pods: Numbers, excess: Floats, alone: Floats, caches: Caches | None = None) -> None:
        """Weigh one more.

        Args:
            pods: who is there, K kinds.
            excess: float64[1 + W, 1 + W], what each pod suffers beside each, 0 from and to the first, who is nobody.
            alone: float64[W], price of each alone on the socket.
            caches: what pairs count on the socket; None: all of theirs.
        """
        counts = Counter(pods)
        self.pods = pods
        """who is there"""
        self._excess, self._alone, self._caches = excess, alone, caches
        self._row = {number: row for row, number in enumerate(counts)}
        self._kinds = np.array(list(counts), dtype=np.int64) + 1
        self._count = np.array(list(counts.values()), dtype=np.float64)
        self._beside = excess[self._kinds]
        self._suffered = self._beside[:, self._kinds] @ self._count - self._beside[range(len(counts)), self._kinds]
        self._from_all = excess[:, self._kinds] @ self._count
        suffered, own = self._suffered[:, None] + self._beside, self._from_all
        if caches is not None:
            weights = caches.weights(pods)
            suffered, own = suffered * weights, own * weights
        one_more: Floats = self._count @ harms(suffered) + harms(own)
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

    def least_change(self, other: Company) -> float:
        """Return what both sockets cost more, or less, after the best that one pod or two can do, whatever their sizes.

        One moves to the other socket, or two change places. That of nobody is infinite.
        """
        here, there = self._without - self.one_more[0], other._without - other.one_more[0]
        exchanged = here[:, other._kinds] + there[:, self._kinds].T
        moved = here[:, 0] + (other.one_more[self._kinds] - other.one_more[0])
        come = there[:, 0] + (self.one_more[other._kinds] - self.one_more[0])
        return float(min(each.min(initial=np.inf) for each in (exchanged, moved, come)))

    @cached_property
    def _without(self) -> Floats:
        """float64[K, 1 + W], by kind of the pod that goes."""
        stay, left = (
            self._count[:, None] - np.eye(len(self._kinds)),
            self._suffered[:, None] - self._beside[:, self._kinds],
        )
        suffered, own = (
            left[:, :, None] + self._beside[:, None, :],
            (self._from_all[:, None] - self._excess[:, self._kinds]).T,
        )
        if self._caches is not None:
            weights = np.empty((len(self._row), len(self._excess)))
            for row, gone in enumerate(self._row):
                staying = list(self.pods)
                staying.remove(gone)
                weights[row] = self._caches.weights(staying)
            suffered, own = suffered * weights, own * weights
        costs: Floats = np.einsum("sg,sgn->gn", stay, harms(suffered))
        costs += harms(own)
        if len(self.pods) == 1:
            costs[0, 1:] = self._alone
        elif len(self.pods) == 2:
            costs[:, 0] = self._alone[list(self._row)[::-1]]
        return costs


class SocketCosts:
    """Companies of some pods, by number."""

    def __init__(self, excess: Floats, alone: Floats, caches: Caches | None = None) -> None:
        """Begin without any.

        Args:
            excess: float64[W, W], what the pod of the row suffers beside that of the column, which may be its like.
            alone: float64[W], price of each alone on the socket.
            caches: what pairs count on the socket; None: all of theirs.
        """
        self._caches = caches
        self._alone = alone
        self._excess = np.zeros((1 + len(alone), 1 + len(alone)))
        self._excess[1:, 1:] = excess
        self._changes: dict[tuple[Numbers, Numbers], float] = {}
        self._known: dict[Numbers, Company] = {}
        """those that were asked for last, the last one at the end"""
        self._most = max(1, REMEMBERED // (self._excess.size + _BESIDE))

    def of(self, pods: Numbers) -> Company:
        """Return what some pods cost together."""
        found = self._known.pop(pods, None) or Company(pods, self._excess, self._alone, self._caches)
        self._known[pods] = found
        if len(self._known) > self._most:
            del self._known[next(iter(self._known))]
        return found

    def settled(self, sockets: Sequence[Company], *, price: float = 0.0) -> bool:
        """Return whether no pod on any of the sockets can make it better by more than the price of one that moves.

        What two sockets can do is remembered. Where much of that is new, it is rather found out for all at once: then
        some is, for the next time, and the answer is no.

        Args:
            sockets: who is on each.
            price: what it costs that one pod moves; that two change places costs no less.
        """
        if max(each.figures for each in sockets) > LARGE:
            return False
        counts, new = Counter(each.pods for each in sockets), 0
        distinct = sorted(counts)
        for at, one in enumerate(distinct):
            for other in distinct[at + (counts[one] == 1) :]:
                change = self._changes.get((one, other))
                if change is None:
                    new += 1
                    if new > NEW_CHANGES:
                        return False
                    if len(self._changes) >= CHANGES:
                        self._changes.clear()
                    change = self._changes[one, other] = self.of(one).least_change(self.of(other))
                if change + price < -ROUNDING:
                    return False
        return True
