"""A good assignment of many pods to sockets: each where it adds least, then moves and exchanges within a bound of work.

What pods on a socket cost is the harm of each by the sum of what it suffers from the others, or the price of one alone.
So an exchange changes a few sums, and those of many pods with all others are weighed at once. A pod may have a home,
the socket that it is on, and a price for being elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from berth.scheduling.interference.assignment import Assignment
from berth.scheduling.interference.slowdown import harms

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
WORK: Final = 1 << 21
"""Figures that may be weighed for one assignment: about 30 ms."""
_TRY: Final = 1 << 14
"""What a look counts beside the figures that are weighed."""
_AT_ONCE: Final = 1 << 15
"""Figures that are weighed at once."""
_ROUNDING: Final = 1e-9
"""Sums differ in their last places by the order of their parts."""
_NOWHERE: Final = -1


class Neighbours(NamedTuple):
    """Pods of a node, P, and what they do to each other."""

    excess: Floats
    """float64[P, P], what the pod of the row suffers beside that of the column; 0 beside itself"""
    alone: Floats
    """float64[P], price of each alone on a socket that has room for others"""
    sizes: Ints
    """int64[P], thousandths of a CPU that each requests"""
    alike: Ints
    """int64[P], the same number for pods that are the same to all others, and have the same home"""
    elsewhere: Floats | float = 0.0
    """float64[P, S], price of each pod on each socket, whoever is there; 0: none has any"""


class LocalSearch:
    """Pods on sockets, moved as long as that is better."""

    def __init__(
        self,
        pods: Neighbours,
        capacities: Sequence[int],
        groups: Sequence[Sequence[int]] = (),
        *,
        work: int = WORK,
    ) -> None:
        """Begin with pods that are on sockets; those that are in none of `groups` are added later.

        Args:
            pods: the pods.
            capacities: what each socket has, in the unit of the pods' sizes.
            groups: numbers of the pods on each socket.
            work: figures that may be weighed in `improve`.
        """
        self._pods = pods
        self._capacities = np.array(capacities, dtype=np.int64)
        self._room = self._capacities.copy()
        self._place = np.full(len(pods.sizes), _NOWHERE, dtype=np.int64)
        self._suffered = np.zeros(len(pods.sizes))
        self._costs = np.zeros(len(capacities))
        self._elsewhere = np.broadcast_to(pods.elsewhere, (len(pods.sizes), len(capacities)))
        self.left = work
        """figures that may still be weighed"""
        self._move({pod: socket for socket, group in enumerate(groups) for pod in group})

    def add(self, pod: int) -> int | None:
        """Have a pod on the socket with room where it adds least; returns it, None where no socket has room."""
        added = self._added(np.array([pod]))[0] + self._elsewhere[pod]
        added[self._room < self._pods.sizes[pod]] = np.inf
        if not np.isfinite(added).any():
            return None
        socket = int(np.flatnonzero(added <= added.min() + _ROUNDING)[0])
        self._move({pod: socket})
        return socket

    def improve(self) -> None:
        """Move pods, and exchange two, as long as that is better and work is left."""
        at, settled = 0, 0
        while self.left > 0:
            pods = self._one_of_each()
            if settled >= len(pods):
                return
            at %= len(pods)
            some = pods[at : at + max(1, _AT_ONCE // (len(self._place) * len(pods)))]
            moved = self._best(some, pods)
            self.left -= _TRY + len(self._place) * len(some) * len(pods)
            if moved:
                self._move(moved)
                settled = 0
            else:
                at += len(some)
                settled += len(some)

    def found(self) -> Assignment:
        """Return where they are, and what they cost there without what it costs to be elsewhere."""
        groups = [tuple(np.flatnonzero(self._place == socket).tolist()) for socket in range(len(self._costs))]
        return Assignment(float(self._costs.sum()), tuple(groups))

    def _move(self, places: Mapping[int, int]) -> None:
        """Have pods on other sockets."""
        changed = set(places.values())
        for pod, socket in places.items():
            before = int(self._place[pod])
            if before != _NOWHERE:
                self._room[before] += self._pods.sizes[pod]
                changed.add(before)
            self._room[socket] -= self._pods.sizes[pod]
            self._place[pod] = socket
        for socket in changed:
            members = np.flatnonzero(self._place == socket)
            self._suffered[members] = self._pods.excess[members[:, None], members].sum(axis=1)
            if len(members) == 1:
                self._costs[socket] = self._alone(members, socket)[0]
            else:
                self._costs[socket] = harms(self._suffered[members]).sum()

    def _alone(self, pods: Ints, sockets: Ints | int) -> Floats:
        """Price of each pod alone on each socket."""
        return np.where(self._pods.sizes[pods] < self._capacities[sockets], self._pods.alone[pods], 0.0)

    def _there(self) -> Floats:
        """float64[P, S], 1 where a pod is on a socket."""
        found: Floats = (self._place[:, None] == np.arange(len(self._costs))).astype(np.float64)
        return found

    def _added(self, pods: Ints) -> Floats:
        """float64[pods, S], what each adds on each socket; anything on its own."""
        there, excess = self._there(), self._pods.excess
        after = harms(self._suffered[:, None] + excess[:, pods]).T @ there + harms(excess[pods] @ there)
        alone = self._alone(pods[:, None], np.arange(len(self._costs)))
        found: Floats = np.where(there.any(axis=0), after - self._costs, alone)
        return found

    def _best(self, some: Ints, pods: Ints) -> dict[int, int]:
        """The best that one of some pods could do, to move or to change places with another of `pods`.

        Returns new sockets by pod, none where all stay.
        """
        own, price = self._place[some], self._elsewhere
        room, sizes = self._room[self._place[pods]], self._pods.sizes
        moved = self._added(some) + price[some] + (self._left(some) - self._costs[own] - price[some, own])[:, None]
        moved[(self._room < sizes[some][:, None]) | (own[:, None] == np.arange(len(self._costs)))] = np.inf
        there, change = self._place[pods], sizes[pods] - sizes[some][:, None]
        exchanged = self._instead(some, pods) + self._instead(pods, some).T
        exchanged -= self._costs[own][:, None] + self._costs[there]
        exchanged += (
            price[some[:, None], there] - price[some, own][:, None] + price[pods, own[:, None]] - price[pods, there]
        )
        exchanged[(own[:, None] == there) | (change > self._room[own][:, None]) | (-change > room)] = np.inf
        pod, socket = divmod(int(moved.argmin()), len(self._costs))
        mine, other = divmod(int(exchanged.argmin()), len(pods))
        if min(moved[pod, socket], exchanged[mine, other]) >= -_ROUNDING:
            return {}
        if moved[pod, socket] <= exchanged[mine, other]:
            return {int(some[pod]): socket}
        return {int(some[mine]): int(there[other]), int(pods[other]): int(own[mine])}

    def _mates(self, pods: Ints) -> Bools:
        """bool[P, pods], who is on the socket of each beside it."""
        found: Bools = self._place[:, None] == self._place[pods]
        found[pods, np.arange(len(pods))] = False
        return found

    def _left(self, pods: Ints) -> Floats:
        """float64[pods], what the socket of each costs without it."""
        mates = self._mates(pods)
        found: Floats = (mates * harms(self._suffered[:, None] - self._pods.excess[:, pods])).sum(axis=0)
        single = mates.sum(axis=0) == 1
        found[single] = self._alone(mates.argmax(axis=0)[single], self._place[pods[single]])
        return found

    def _instead(self, pods: Ints, others: Ints) -> Floats:
        """float64[pods, others], what the socket of each pod costs with one of the others instead of it."""
        mates, excess = self._mates(pods), self._pods.excess
        suffered = (self._suffered[:, None] - excess[:, pods])[:, :, None] + excess[:, None, others]
        found: Floats = np.einsum("kp,kpo->po", mates, harms(suffered))
        found += harms(mates.T @ excess[others].T)
        single = ~mates.any(axis=0)
        found[single] = self._alone(others, self._place[pods[single]][:, None])
        return found

    def _one_of_each(self) -> Ints:
        """Of pods that are alike, on one socket, one."""
        placed = np.flatnonzero(self._place != _NOWHERE)
        kinds = self._pods.alike[placed] * len(self._costs) + self._place[placed]
        found: Ints = placed[np.sort(np.unique(kinds, return_index=True)[1])]
        return found
