"""Berth's own choice of node and sockets: the least slowdown that all may expect, the newcomer and those beside it.

A node is judged by the best pairing that its pods would then have, for they may be pinned anew. A pod alone on a
socket is charged half of what it and a likely partner would cost, as one will come: it may come to another node.

On the node, sockets go by who is there. Whoever comes, the pods that are there can still change places then, so no
socket is kept empty for him; but each that moves has its price.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Final

import numpy as np
from cachetools import LRUCache

from berth.scheduling.interference.assignment import (
    EXACT_PODS,
    Assignment,
    Floats,
    SocketCost,
    best_assignment,
    cheapest,
)
from berth.scheduling.interference.closeness import Caches, Need, closeness, closeness_of
from berth.scheduling.interference.excess_table import ExcessTable
from berth.scheduling.interference.group_costs import GroupCosts
from berth.scheduling.interference.local_search import LocalSearch, Neighbours
from berth.scheduling.interference.pod_sets import Party, Socket, sets_of, sockets_of, weights_of
from berth.scheduling.interference.seats_by_chance import alone, expected_cost, expected_harm, room_for, together
from berth.scheduling.interference.slowdown import PRICE, SlowdownModel, Workload, harms
from berth.scheduling.interference.socket_costs import SocketCosts

REMEMBERED: Final = 16_384
"""Groups of pods, and workloads, whose harm is remembered; of more it begins anew: others come and go without end."""
COMPANIES: Final = 32
"""Workloads that are on one node together, of which what they cost on sockets is remembered, about 2 MB each."""
MANY: Final = 8
"""Pods from which on their harm is summed up as an array."""
_RATHER_ALONE: Final = 1 - 1e-7
"""Factor of the price of a pod alone: where that is as much as two cost together, they are kept apart."""


@dataclass(frozen=True)
class LeastSlowdown:
    """Judges nodes for one more pod, and assigns pods to sockets."""

    model: SlowdownModel
    """expected slowdowns"""
    likely: Sequence[Workload] = ()
    """workloads that may come next, as often as they do; without any a pod alone costs nothing"""
    _harm: dict[tuple[tuple[Workload, ...], float], float] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _alone: dict[tuple[Workload, float], float] = field(default_factory=dict, init=False, repr=False, compare=False)
    _companies: LRUCache[tuple[tuple[Party, ...], int, int], SocketCosts] = field(
        default_factory=lambda: LRUCache(COMPANIES), init=False, repr=False, compare=False
    )

    @cached_property
    def _likely(self) -> Counter[Workload]:
        return Counter(self.likely)

    @cached_property
    def _table(self) -> ExcessTable:
        return ExcessTable(self.model)

    def pairing(
        self,
        pods: Sequence[Workload],
        sizes: Sequence[int],
        capacities: Sequence[int],
        *,
        caches: Sequence[int] = (),
        cores: Sequence[int] = (),
        more: bool = True,
    ) -> Assignment | None:
        """Return the pairing with the least expected harm; None where the pods do not fit.

        Args:
            pods: pods of the node, or of several nodes that are planned together.
            sizes: what each takes.
            capacities: what each socket has, in the same unit.
            caches: last-level caches of each that its pods are kept apart in; none: one each.
            cores: cores of each, where some have SMT siblings, otherwise 0; none: 0 each.
            more: whether others will come; if not, a pod alone costs nothing.
        """
        if len(pods) > EXACT_PODS:
            return best_assignment(sizes, capacities, self._cost(pods, sizes, capacities, caches, cores, more=more))
        return cheapest(len(pods), self._costs_of_sets(pods, sizes, capacities, caches, cores, more=more))

    def seats(
        self,
        pods: Sequence[Workload],
        sizes: Sequence[int],
        capacities: Sequence[int],
        now: Sequence[int | None],
        *,
        caches: Sequence[int] = (),
        cores: Sequence[int] = (),
        price: float = PRICE,
    ) -> list[int] | None:
        """Return the place of each pod's socket where those that are there suffer least; None where they do not fit.

        Of more than `EXACT_PODS` it is a good one, within a bound of work, that no move and no exchange of two makes
        better.

        Args:
            pods: pods of the node.
            sizes: what each takes.
            capacities: what each socket has, in the same unit.
            now: place of the socket that each is on; None for one that has none yet, which goes anywhere for nothing.
            caches: last-level caches of each socket that its pods are kept apart in; none: one each.
            cores: cores of each, where some have SMT siblings, otherwise 0; none: 0 each.
            price: harm that has to go for each pod that moves.
        """
        here = np.array([-1 if at is None else at for at in now], dtype=np.int64)[:, None]
        elsewhere = price * ((here >= 0) & (here != np.arange(len(capacities))))
        if len(pods) <= EXACT_PODS:
            by_socket, sets = (
                self._costs_of_sets(pods, sizes, capacities, caches, cores, more=False),
                sets_of(len(pods)),
            )
            found = cheapest(len(pods), [cost + sets @ elsewhere[:, place] for place, cost in enumerate(by_socket)])
        else:
            found = self._seats_of_many(pods, sizes, capacities, caches, cores, now, elsewhere)
        if found is None:
            return None
        places = {pod: place for place, group in enumerate(found.sockets) for pod in group}
        return [places[pod] for pod in range(len(pods))]

    def settled(
        self, groups: Sequence[Sequence[Workload]], *, caches: Sequence[int] = (), price: float = PRICE
    ) -> bool:
        """Return whether `seats` is known to leave pods where they are, the last to come where it adds least.

        That is so where no pod that moves, and no two that change places, make it better by the price. Of few pods
        `seats` looks at every assignment; nothing is known of it then, nor where sockets have several caches.
        """
        if caches or sum(map(len, groups)) <= EXACT_PODS:
            return False
        met = {pod: number for number, pod in enumerate(sorted({pod for group in groups for pod in group}))}
        costs = self._socket_costs(tuple(Party(pod) for pod in met))
        return costs.settled([costs.of(tuple(sorted(met[pod] for pod in group))) for group in groups], price=price)

    def pairing_with(
        self,
        before: Assignment,
        pods: Sequence[Workload],
        sizes: Sequence[int],
        capacities: Sequence[int],
        *,
        caches: Sequence[int] = (),
        cores: Sequence[int] = (),
    ) -> Assignment | None:
        """Return a good pairing with one more pod, the last of `pods`, made of one of the others; quicker."""
        search = LocalSearch(self._neighbours(pods, sizes, capacities, caches, cores), capacities, before.sockets)
        if search.add(len(pods) - 1) is None:
            return None
        search.improve()
        return search.found()

    def pairing_of_many(
        self,
        pods: Sequence[Workload],
        sizes: Sequence[int],
        capacities: Sequence[int],
        *,
        caches: Sequence[int] = (),
        cores: Sequence[int] = (),
        improve: bool = True,
    ) -> Assignment | None:
        """Return a good pairing within a bound of work; None where the pods do not fit, or seem not to.

        Without `improve` each pod is where it added least when its turn came, the largest first, and nobody moves then.
        """
        search = LocalSearch(self._neighbours(pods, sizes, capacities, caches, cores), capacities)
        if not search.add_all():
            return None
        if improve:
            search.improve()
        return search.found()

    def group_costs(
        self, workloads: Sequence[Workload], caches: int, cores: int = 0, *, more: bool = True
    ) -> GroupCosts:
        """Return what pods of some workloads cost: none spans the caches, nor, with cores, requests more than a CPU."""
        unpriced = np.zeros(len(workloads))
        alone = self._prices_alone(workloads, [Need()] * len(workloads), caches) if more else unpriced
        return GroupCosts(self._table.between(workloads).tolist(), alone.tolist(), caches, cores)

    def added_harm(
        self, pod: Workload, size: int, residents: Sequence[Workload], sizes: Sequence[int], capacities: Sequence[int]
    ) -> float | None:
        """Return by how much a node's best pairing becomes worse with one more pod; None where it does not fit."""
        after = self.pairing([*residents, pod], [*sizes, size], capacities)
        if after is None:
            return None
        before = self.pairing(residents, sizes, capacities)
        return after.cost - (before.cost if before else 0.0)

    def on_socket(self, pods: Sequence[Workload], *, room: bool, together: float = 1.0) -> float:
        """Return what pods on one socket cost.

        Args:
            pods: the pods.
            room: whether another may come, which one alone is charged for.
            together: what the excess of a pair counts there (`closeness_of`), of one alone and a likely partner too.
        """
        if len(pods) == 1 and room:
            return self._price_alone(pods[0], together)
        return self._harm_of(tuple(sorted(pods)), together)

    def unpinned(self, pods: Sequence[Workload], sizes: Sequence[int], capacities: Sequence[int]) -> float:
        """Return the expected cost where the kernel puts each pod on any socket that has room.

        Args:
            pods: pods of the node.
            sizes: what each takes.
            capacities: what each socket has, in the same unit; none: nobody knows, and there is one.
        """
        seats = len(pods), min(room_for(sizes, capacities), len(pods)), max(1, len(capacities))
        if len(pods) <= EXACT_PODS:
            (by_set,) = self._costs_of_sets(pods, [0] * len(pods), [1], (), (), more=False)
            found = expected_cost(by_set, *seats)
        else:
            found = expected_harm(self._table.among(pods), together(*seats))
        lone = [pod for pod, size in zip(pods, sizes, strict=True) if size < max(capacities, default=inf)]
        if lone:
            found += alone(*seats) * float(self._prices_alone(lone, [Need()] * len(lone), 1).sum())
        return found

    def _costs_of_sets(
        self,
        pods: Sequence[Workload],
        sizes: Sequence[int],
        capacities: Sequence[int],
        caches: Sequence[int],
        cores: Sequence[int],
        *,
        more: bool,
    ) -> list[Floats]:
        """float64[2**P] for each socket, cost of each set of pods on it, infinite where they do not fit.

        Args:
            pods: the pods, P.
            sizes: what each takes.
            capacities: what each socket has.
            caches: last-level caches of each; none: one each.
            cores: cores of each, where some have SMT siblings, otherwise 0; none: 0 each.
            more: whether others will come, which each alone on a socket with room is charged for.
        """
        sets, excess = sets_of(len(pods)), self._table.among(pods)
        suffered = sets @ excess.T
        in_one_cache = (sets * harms(suffered)).sum(axis=1)
        taken, single = sets @ np.array(sizes, dtype=np.float64), 1 << np.arange(len(pods))
        found: dict[Socket, Floats] = {}
        sockets = sockets_of(capacities, caches, cores)
        for socket in set(sockets):
            costs, needs = in_one_cache, [socket.need_of(size) for size in sizes]
            if socket.caches > 1 or socket.cores:
                costs = (sets * harms(suffered * weights_of(sets, needs, socket))).sum(axis=1)
            found[socket] = np.where(taken <= socket.capacity, costs, np.inf)
            if more:
                has_room = np.array(sizes) < socket.capacity
                found[socket][single[has_room]] = self._prices_alone(pods, needs, socket.caches)[has_room]
        return [found[socket] for socket in sockets]

    def _seats_of_many(
        self,
        pods: Sequence[Workload],
        sizes: Sequence[int],
        capacities: Sequence[int],
        caches: Sequence[int],
        cores: Sequence[int],
        now: Sequence[int | None],
        elsewhere: Floats,
    ) -> Assignment | None:
        """Those that have no socket are added; where one has no room so, all go anew."""
        neighbours = self._neighbours(pods, sizes, capacities, caches, cores, more=False)
        neighbours = neighbours._replace(alike=list(zip(neighbours.alike, now, strict=True)), elsewhere=elsewhere)
        groups = [[pod for pod, at in enumerate(now) if at == place] for place in range(len(capacities))]
        search = LocalSearch(neighbours, capacities, groups)
        if not search.add_all():
            return None
        search.improve()
        return search.found()

    def _cost(
        self,
        pods: Sequence[Workload],
        sizes: Sequence[int],
        capacities: Sequence[int],
        caches: Sequence[int],
        cores: Sequence[int],
        *,
        more: bool,
    ) -> SocketCost:
        sockets = sockets_of(capacities, caches, cores)

        def cost(numbers: tuple[int, ...], socket: int) -> float:
            room = more and len(numbers) == 1 and sizes[numbers[0]] < capacities[socket]
            partner = [0] if room else []
            at = sockets[socket]._replace(cores=0) if room else sockets[socket]
            together = closeness_of([*(sizes[number] for number in numbers), *partner], *at)
            return self.on_socket([pods[number] for number in numbers], room=room, together=together)

        return cost

    def _neighbours(
        self,
        pods: Sequence[Workload],
        sizes: Sequence[int],
        capacities: Sequence[int],
        caches: Sequence[int],
        cores: Sequence[int],
        *,
        more: bool = True,
    ) -> Neighbours:
        """Pods as the search knows them; `more` is whether others will come, so that one alone has a price."""
        # One that fills a socket expects nobody there, and one too large for a cache shares all: neither is the same
        # as its like that is smaller.
        sockets, full = sockets_of(capacities, caches, cores), set(capacities)
        several = [socket for socket in set(sockets) if socket.caches > 1 or socket.cores]
        told = {
            size: (more and size in full) or any(socket.need_of(size) != Need() for socket in several)
            for size in set(sizes)
        }
        kinds = [(pod, size if told[size] else 0) for pod, size in zip(pods, sizes, strict=True)]
        met = {kind: number for number, kind in enumerate(sorted(set(kinds)))}
        costs = {
            each: self._socket_costs(
                tuple(Party(pod, more and size != each.capacity, each.need_of(size)) for pod, size in met), *each[1:]
            )
            for each in set(sockets)
        }
        return Neighbours(
            [costs[socket] for socket in sockets],
            [met[kind] for kind in kinds],
            sizes,
            [(met[kind], size) for kind, size in zip(kinds, sizes, strict=True)],
        )

    def _socket_costs(self, parties: tuple[Party, ...], caches: int = 1, cores: int = 0) -> SocketCosts:
        """What these cost on a socket with some last-level caches, and cores where some have SMT siblings."""
        found = self._companies.get((parties, caches, cores))
        if found is None:
            pods, needs = [each.pod for each in parties], [each.need for each in parties]
            priced = np.array([each.priced for each in parties])
            alone = np.where(priced, self._prices_alone(pods, needs, caches) if priced.any() else 0.0, 0.0)
            several = Caches(caches, needs, cores) if caches > 1 or cores else None
            found = SocketCosts(self._table.between(pods), alone, several)
            self._companies[parties, caches, cores] = found
        return found

    def _harm_by_table(self, pods: Sequence[Workload], together: float) -> float:
        """As of the model; quicker of many pods, and it takes no memory for each group of them."""
        return float(harms(self._table.among(pods).sum(axis=1) * together).sum())

    def _harm_of(self, residents: tuple[Workload, ...], together: float) -> float:
        if len(residents) > MANY:
            return self._harm_by_table(residents, together)
        found = self._harm.get((residents, together))
        if found is None:
            if len(self._harm) >= REMEMBERED:
                self._harm.clear()
            found = self._harm[residents, together] = self.model.harm(residents, together=together)
        return found

    def _prices_alone(self, pods: Sequence[Workload], needs: Sequence[Need], caches: int) -> Floats:
        """Price of each pod alone on a socket with some last-level caches: a likely partner gets one of its own."""
        apart = closeness(caches, 2)
        return np.array(
            [self._price_alone(pod, 1.0 if need.spanning else apart) for pod, need in zip(pods, needs, strict=True)]
        )

    def _price_alone(self, pod: Workload, together: float = 1.0) -> float:
        found = self._alone.get((pod, together))
        if found is None:
            others, counts = list(self._likely), np.array(list(self._likely.values()))
            excess = self.model.excess
            pairs = harms(together * np.array([excess(pod, other) for other in others], dtype=np.float64))
            pairs += harms(together * np.array([excess(other, pod) for other in others], dtype=np.float64))
            found = _RATHER_ALONE * float(np.average(pairs, weights=counts)) / 2 if others else 0.0
            if len(self._alone) >= REMEMBERED:
                self._alone.clear()
            self._alone[pod, together] = found
        return found
