"""A good assignment of many pods to sockets: each where it adds least, then moves and exchanges within a bound of work.

What pods on a socket cost is the harm of each by the sum of what it suffers from the others, or the price of one alone.
So an exchange changes a few sums, and those of one pod with all others are weighed at once. A pod may have a home, the
socket that it is on, and a price for being elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from berth.scheduling.interference.assignment import Assignment
from berth.scheduling.interference.slowdown import harms

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
WORK: Final = 1 << 20
"""Figures that may be weighed for one assignment: about 30 ms."""
_TRY: Final = 4096
"""What a look at one pod counts beside the figures of its exchanges."""
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
        added = np.where(self._room >= self._pods.sizes[pod], self._added(pod) + self._elsewhere[pod], np.inf)
        if not np.isfinite(added).any():
            return None
        socket = int(np.flatnonzero(added <= added.min() + _ROUNDING)[0])
        self._move({pod: socket})
        return socket

    def improve(self, sockets: Iterable[int] | None = None) -> None:
        """Move pods, and exchange two, as long as that is better and work is left.

        Args:
            sockets: those to begin with, all follow where anything changes; None: all.
        """
        everywhere = range(len(self._costs))
        waiting = dict.fromkeys(everywhere if sockets is None else sockets)
        while waiting and self.left > 0:
            socket = next(iter(waiting))
            del waiting[socket]
            for pod in self._one_of_each(np.flatnonzero(self._place == socket)).tolist():
                moved = self._best(pod) if self._place[pod] == socket and self.left > 0 else {}
                if moved:
                    self._move(moved)
                    waiting |= dict.fromkeys(everywhere)

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
            self._suffered[members] = self._pods.excess[np.ix_(members, members)].sum(axis=1)
            self._costs[socket] = self._cost(members, self._suffered[members], socket)

    def _cost(self, members: Ints, suffered: Floats, socket: int) -> float:
        if len(members) == 1:
            return float(self._alone(members, np.array([socket]))[0])
        return float(harms(suffered).sum())

    def _alone(self, pods: Ints, sockets: Ints) -> Floats:
        """Price of each pod alone on each socket."""
        return np.where(self._pods.sizes[pods] < self._capacities[sockets], self._pods.alone[pods], 0.0)

    def _added(self, pod: int) -> Floats:
        """float64[S], what a pod adds on each socket; anything on its own."""
        there, count = np.flatnonzero((self._place != _NOWHERE) & (self._place != self._place[pod])), len(self._costs)
        places, excess = self._place[there], self._pods.excess
        after = harms(np.bincount(places, excess[pod, there], count).astype(np.float64))
        after += np.bincount(places, harms(self._suffered[there] + excess[there, pod]), count)
        empty = np.bincount(places, minlength=count) == 0
        return np.where(empty, self._alone(np.array([pod]), np.arange(count)), after - self._costs)

    def _best(self, pod: int) -> dict[int, int]:
        """The best that a pod could do, to move or to change places with another: new sockets by pod; none: to stay."""
        excess, sizes, own = self._pods.excess, self._pods.sizes, int(self._place[pod])
        mates = np.flatnonzero(self._place == own)
        mates = mates[mates != pod]
        left = self._suffered[mates] - excess[mates, pod]
        moved = self._cost(mates, left, own) - self._costs[own] + self._added(pod)
        moved += self._elsewhere[pod] - self._elsewhere[pod, own]
        moved = np.where(self._room >= sizes[pod], moved, np.inf)
        moved[own] = np.inf
        best, found = -_ROUNDING, {}
        if moved.min() < best:
            best, found = float(moved.min()), {pod: int(moved.argmin())}
        others = np.flatnonzero((self._place != own) & (self._place != _NOWHERE))
        change = sizes[others] - sizes[pod]
        fits = (change <= self._room[own]) & (-change <= self._room[self._place[others]])
        partners = self._one_of_each(others[fits])
        self.left -= _TRY + len(others) * len(partners)
        if len(partners):
            exchanged = self._exchanged(pod, mates, left, others, partners)
            if exchanged.min() < best:
                partner = int(partners[exchanged.argmin()])
                found = {pod: int(self._place[partner]), partner: own}
        return found

    def _exchanged(self, pod: int, mates: Ints, left: Floats, others: Ints, partners: Ints) -> Floats:
        """float64[partners], by how much all becomes dearer where a pod changes places with each of them.

        Args:
            pod: the pod.
            mates: the others on its socket.
            left: what each of them suffers without it.
            others: pods on all other sockets.
            partners: those of them that may change places with it.
        """
        excess, own, there = self._pods.excess, int(self._place[pod]), self._place[partners]
        if len(mates):
            here = harms(left[:, None] + excess[np.ix_(mates, partners)]).sum(axis=0)
            here += harms(excess[np.ix_(partners, mates)].sum(axis=1))
        else:
            here = self._alone(partners, np.full(len(partners), own))
        beside = (self._place[others][:, None] == there) & (others[:, None] != partners)
        suffered = (self._suffered[others] + excess[others, pod])[:, None] - excess[np.ix_(others, partners)]
        away = np.where(beside, harms(suffered), 0.0).sum(axis=0)
        away += harms((beside * excess[pod, others][:, None]).sum(axis=0))
        away = np.where(beside.any(axis=0), away, self._alone(np.full(len(partners), pod), there))
        changed: Floats = here + away - self._costs[own] - self._costs[there]
        price = self._elsewhere
        changed += price[pod, there] - price[pod, own] + price[partners, own] - price[partners, there]
        return changed

    def _one_of_each(self, pods: Ints) -> Ints:
        """Of pods that are alike, on one socket, one."""
        kinds = self._pods.alike[pods] * len(self._costs) + self._place[pods]
        return pods[np.unique(kinds, return_index=True)[1]]
