"""A good assignment of many pods to sockets: each where it adds least, then moves and exchanges within a bound of work.

What a socket costs after any change of a pod is known by who is on it, so that all moves and exchanges are weighed at
once by looking them up. A pod may have a home, the socket that it is on, and a price for being elsewhere.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from berth.scheduling.interference.assignment import Assignment
from berth.scheduling.interference.packing import pack
from berth.scheduling.interference.socket_costs import ROUNDING, SocketCosts

Floats = npt.NDArray[np.float64]
WORK: Final = 3 << 19
"""Figures that may be weighed for one assignment: about 50 ms."""
_TRY: Final = 1 << 12
"""What a look counts beside the figures that are weighed."""


class Neighbours(NamedTuple):
    """Pods of a node, P, and what they do to each other."""

    costs: Sequence[SocketCosts]
    """what pods cost on each socket, the same object for sockets on which they cost the same"""
    number: Sequence[int]
    """number that these know each pod by"""
    sizes: Sequence[int]
    """thousandths of a CPU that each requests"""
    alike: Sequence[Hashable]
    """the same for pods that are the same to all others, and have the same size and home"""
    elsewhere: Floats | None = None
    """float64[P, S], price of each pod on each socket, whoever is there; None: none has any"""


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
        self._pods, self._capacities, self._costs = pods, capacities, pods.costs
        self.left = work
        """figures that may still be weighed"""
        self._begin(groups)

    def _begin(self, groups: Sequence[Sequence[int]]) -> None:
        """Have pods where they are in groups by socket, and all others nowhere."""
        self._room = list(self._capacities)
        self._place = {pod: socket for socket, group in enumerate(groups) for pod in group}
        self._there: list[list[int]] = [[] for _ in self._room]
        for pod, socket in self._place.items():
            self._room[socket] -= self._pods.sizes[pod]
            self._there[socket].append(self._pods.number[pod])
        for there in self._there:
            there.sort()
        self._companies = [costs.of(tuple(there)) for costs, there in zip(self._costs, self._there, strict=True)]
        self._unseen = set(self._place.values())
        """sockets that changed since the last look"""

    def add(self, pod: int) -> int | None:
        """Have a pod on the socket with room where it adds least; returns it, None where no socket has room."""
        number, size, price = self._pods.number[pod], self._pods.sizes[pod], self._pods.elsewhere
        added = {
            socket: there.one_more[1 + number] - there.one_more[0] + (0.0 if price is None else price[pod, socket])
            for socket, there in enumerate(self._companies)
            if size <= self._room[socket]
        }
        if not added:
            return None
        least = min(added.values())
        socket = next(socket for socket, each in added.items() if each <= least + ROUNDING)
        self._move({pod: socket})
        return socket

    def add_all(self) -> bool:
        """Have all that are nowhere yet on sockets, the largest first; whether there is room, as far as is known.

        Where one has none so, everybody goes anew where it adds least, and if that does not do, where they fit.
        """
        largest_first = sorted(range(len(self._pods.sizes)), key=lambda pod: -self._pods.sizes[pod])
        for _ in range(2 if self._place else 1):
            if all(pod in self._place or self.add(pod) is not None for pod in largest_first):
                return True
            self._begin(())
        groups = pack(self._pods.sizes, self._capacities)
        if groups is None:
            return False
        self._begin(groups)
        return True

    def improve(self) -> None:
        """Move pods, and exchange two, as long as that is better and work is left."""
        if self._pods.elsewhere is None and len(set(self._costs)) == 1 and self._costs[0].settled(self._companies):
            return
        while True:
            pods = self._one_of_each()
            work = _TRY + len(pods) ** 2 + sum(self._companies[socket].figures for socket in self._unseen)
            if work > self.left:
                return
            self.left -= work
            self._unseen.clear()
            moved = self._best(pods)
            if not moved:
                return
            self._move(moved)

    def found(self) -> Assignment:
        """Return where they are, and what they cost there without what it costs to be elsewhere."""
        groups: list[list[int]] = [[] for _ in self._room]
        for pod in sorted(self._place):
            groups[self._place[pod]].append(pod)
        return Assignment(sum(float(there.one_more[0]) for there in self._companies), tuple(map(tuple, groups)))

    def _move(self, places: Mapping[int, int]) -> None:
        """Have pods on other sockets."""
        changed = set(places.values())
        for pod, socket in places.items():
            number, size, before = self._pods.number[pod], self._pods.sizes[pod], self._place.get(pod)
            if before is not None:
                self._room[before] += size
                self._there[before].remove(number)
                changed.add(before)
            self._room[socket] -= size
            self._there[socket].append(number)
            self._place[pod] = socket
        for socket in changed:
            self._there[socket].sort()
            self._companies[socket] = self._costs[socket].of(tuple(self._there[socket]))
        self._unseen |= changed

    def _best(self, pods: Sequence[int]) -> dict[int, int]:
        """The best that one of some pods could do, to move or to change places with another of them.

        Returns new sockets by pod, none where all stay.
        """
        places, known = [self._place[pod] for pod in pods], [self._pods.number[pod] for pod in pods]
        own, numbers, at = np.array(places), np.array(known) + 1, np.arange(len(pods))
        one_more = np.array([there.one_more for there in self._companies])
        either = np.array([self._companies[place].without(number) for place, number in zip(places, known, strict=True)])
        costs = one_more[:, 0]
        now = costs[own]
        moved = one_more[:, numbers].T - costs + (either[:, 0] - now)[:, None]
        # What one of two does where the other is: exchanged they do both.
        either = either[:, numbers] - now[:, None]
        if self._pods.elsewhere is not None:
            price = self._pods.elsewhere[pods]
            price -= price[at, own][:, None]
            moved += price
            either += price[:, own]
        exchanged = either + either.T
        apart = own[:, None] != own
        sizes = [self._pods.sizes[pod] for pod in pods]
        if max(sizes) > min(self._room):
            taken, room = np.array(sizes), np.array(self._room)
            fits = taken - taken[:, None] <= room[own][:, None]
            apart &= fits & fits.T
            moved[taken[:, None] > room] = np.inf
        moved[at, own] = np.inf
        exchanged[~apart] = np.inf
        pod, socket = divmod(int(moved.argmin()), len(costs))
        one, other = divmod(int(exchanged.argmin()), len(pods))
        if min(moved[pod, socket], exchanged[one, other]) >= -ROUNDING:
            return {}
        if moved[pod, socket] <= exchanged[one, other]:
            return {pods[pod]: socket}
        return {pods[one]: places[other], pods[other]: places[one]}

    def _one_of_each(self) -> list[int]:
        """Of pods that are alike, on one socket, one."""
        alike, place = self._pods.alike, self._place
        return sorted({(alike[pod], place[pod]): pod for pod in sorted(place, reverse=True)}.values())
