"""What a newcomer costs on each kind of node, and the best pairing of a kind: each is worked out once.

Pairings of many pods take long. Kinds that nobody has looked at are looked at a few for each pod, those with the
fewest pods first; until their turn they count as the dearest of those that are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache

from berth.scheduling.interference.assignment import EXACT_PODS, Assignment
from berth.scheduling.interference.by_class import ByClass
from berth.scheduling.interference.closeness import spans
from berth.scheduling.interference.least_slowdown import LeastSlowdown
from berth.scheduling.interference.residents import Kind, Layout, Resident

Floats = npt.NDArray[np.float64]
PAIRED_PODS: Final = 65_536
"""Pods in the best pairings that are remembered, and one more for each; about 100 bytes each."""
NEWCOMERS: Final = 256
"""Newcomers whose costs by kind are remembered."""
EXACT: Final = EXACT_PODS
"""Pods up to which the pairing is the best; of more, one is made of that with a pod less."""
BY_CLASS: Final = 50.0
"""Work for a pairing of pods that are known by their classes alone, about in microseconds."""
EFFORT: Final = 3000.0
"""Work for one pod, about in microseconds; one kind is looked at in any case."""


def effort(kind: Kind) -> float:
    """Return what the pairing of a kind takes where none with a pod less is known, about in microseconds."""
    pods, sockets = len(kind.residents), max(1, len(kind.layout.capacities))
    return 150.0 + sockets * 3.0**pods / 150 if pods <= EXACT else pods * _of_one(pods)


def effort_of_one_more(kind: Kind) -> float:
    """Return what it takes otherwise."""
    pods, sockets = len(kind.residents), max(1, len(kind.layout.capacities))
    return effort(kind) if pods <= EXACT else 300.0 + (1 + pods / sockets) * _of_one(pods)


def _of_one(pods: int) -> float:
    """What it takes to weigh all exchanges of one pod."""
    return 60.0 + 0.01 * pods**2


def alike(kind: Kind) -> Kind:
    """Return the kind that stands for it: where all pods fit on any socket, it does not matter what they take.

    Nor does it how large sockets are then, or how many there are beside one for each pod; but where sockets have
    several caches it does, unless all have as many and each pod fits into one, and where pods may meet on SMT siblings.
    """
    layout, residents = kind
    if layout.cores:
        layout = layout.for_pods([each.size for each in residents])
        kind = Kind(layout, residents)
    capacities, pinned, caches, cores = layout
    if not capacities or cores or sum(each.size for each in residents) >= min(capacities):
        return kind
    most = max(caches, default=1)
    if caches and (min(caches) < most or any(spans(each.size, min(capacities), most) for each in residents)):
        return kind
    sockets = min(len(capacities), len(residents)) if pinned else len(capacities)
    layout = Layout((1,) * sockets, pinned, (most,) * sockets if caches else ())
    return Kind(layout, tuple(Resident(each.workload, 0) for each in residents))


class _Known(NamedTuple):
    cost: float
    pairing: Assignment | None
    pods: int


class NodeCosts:
    """Costs of one slowdown model, in its harm."""

    def __init__(self, judge: LeastSlowdown) -> None:
        """Begin without any; `judge` knows what pods on a socket cost."""
        self._judge = judge
        self._pairings: LRUCache[Kind, _Known] = LRUCache(PAIRED_PODS, getsizeof=lambda known: 1 + known.pods)
        self._added: LRUCache[Resident, Floats] = LRUCache(NEWCOMERS)
        self._by_class = ByClass(judge)
        self._looked_at = 0
        self.guessed = False
        """Whether some kinds counted as the dearest in the last answer of `added`."""

    @property
    def looked_at(self) -> int:
        """Pairings that were worked out."""
        return self._looked_at + self._by_class.looked_at

    def cost(self, kind: Kind) -> float:
        """Return the expected harm of a kind's pods."""
        return self._known(alike(kind)).cost

    def takes(self, kind: Kind) -> float:
        """Return what `cost` takes, about in microseconds; nothing where it is known."""
        kind = alike(kind)
        return 0.0 if kind in self._pairings else effort(kind)

    def at_most(self, kind: Kind) -> float:
        """Return `cost` where it is known, otherwise that of a pairing that is made quickly: no less, as a rule.

        Of more than `EXACT` pods neither need be the best pairing.
        """
        by_class = self._by_class.cost(kind)
        if by_class is not None:
            return by_class
        kind = alike(kind)
        if kind not in self._pairings and kind.layout.pinned:
            pods, sizes = [each.workload for each in kind.residents], [each.size for each in kind.residents]
            capacities, _, caches, cores = kind.layout
            found = self._judge.pairing_of_many(pods, sizes, capacities, caches=caches, cores=cores, improve=False)
            if found is not None:
                return found.cost
        return self._known(kind).cost

    def added(
        self,
        newcomer: Resident,
        ids: npt.NDArray[np.int32],
        kinds: Sequence[Kind],
        wanted: npt.NDArray[np.bool_],
        used: npt.NDArray[np.bool_],
    ) -> Floats:
        """float64[K], by how much a node of each kind becomes worse with a newcomer.

        Args:
            newcomer: the pod.
            ids: int32[N], number of each node's kind.
            kinds: K kinds by number; numbers hold until `renumbered`.
            wanted: bool[N], nodes that matter; kinds of others alone may have any value.
            used: bool[K], kinds of which there may be a node.
        """
        known = self._known_of(newcomer, len(kinds))
        values, self.guessed = known[: len(kinds)], False
        unknown = np.isnan(values) & used  # of most kinds that nobody has asked about there is no node any more
        if unknown.any():
            missing = set(ids[unknown.take(ids) & wanted].tolist())
            if missing and not self._look_at(newcomer, missing, kinds, known):
                values, self.guessed = np.where(np.isnan(values), np.nanmax(values[ids[wanted]]), values), True
        return values

    def added_to(self, newcomer: Resident, number: int, kinds: Sequence[Kind]) -> Floats:
        """float64[1], the same of one kind alone, which is worked out in any case."""
        known = self._known_of(newcomer, len(kinds))
        if np.isnan(known[number]):
            self._look_at(newcomer, {number}, kinds, known)
        return known[number : number + 1]

    def renumbered(self) -> None:
        """Kinds have other numbers from now on."""
        self._added.clear()

    def _known_of(self, newcomer: Resident, kinds: int) -> Floats:
        """What a newcomer adds to each kind, not a number where nobody knows; room for `kinds` at least."""
        known = self._added.get(newcomer)
        if known is None or len(known) < kinds:
            grown = np.full(max(64, 2 * kinds), np.nan)
            if known is not None:
                grown[: len(known)] = known
            known = self._added[newcomer] = grown
        return known

    def _look_at(self, newcomer: Resident, numbers: set[int], kinds: Sequence[Kind], known: Floats) -> bool:
        """Work out the costs of some kinds, as far as the effort for one pod goes; returns whether it was enough."""
        left = EFFORT
        for number in sorted(numbers, key=lambda number: (len(kinds[number].residents), number)):
            if left < 0:
                return False
            before = kinds[number]
            looked_at, by_class = self.looked_at, self._by_class.added(before, newcomer)
            if by_class is not None:
                known[number] = by_class
                left -= BY_CLASS * (self.looked_at - looked_at)
                continue
            now, then = alike(before), alike(before.with_one_more(newcomer))
            left -= 0.0 if now in self._pairings else effort(now)
            left -= 0.0 if then in self._pairings else effort_of_one_more(then)
            known[number] = max(0.0, self._known(then, before, newcomer).cost - self._known(now).cost)
        return True

    def _known(self, kind: Kind, before: Kind | None = None, newcomer: Resident | None = None) -> _Known:
        """Cost and pairing of a kind; with `before`, that of a pod less, it may be made of that one's."""
        try:
            found = self._pairings[kind]
        except KeyError:
            found = _Known(*self._work_out(kind, before, newcomer), len(kind.residents))
            if found.pods < PAIRED_PODS:
                self._pairings[kind] = found
        return found

    def _work_out(self, kind: Kind, before: Kind | None, newcomer: Resident | None) -> tuple[float, Assignment | None]:
        if not kind.residents:
            return 0.0, None
        by_class = self._by_class.cost(kind)
        if by_class is not None:
            return by_class, None
        self._looked_at += 1
        pods, sizes = [each.workload for each in kind.residents], [each.size for each in kind.residents]
        capacities, _, caches, cores = kind.layout
        if kind.layout.pinned:
            if len(pods) <= EXACT:
                found = self._judge.pairing(pods, sizes, capacities, caches=caches, cores=cores)
            else:
                found = self._grown(kind, before, newcomer) if before is not None and newcomer is not None else None
                found = found or self._judge.pairing_of_many(pods, sizes, capacities, caches=caches, cores=cores)
            if found is not None:
                return found.cost, found
        return self._judge.unpinned(pods, sizes, capacities), None

    def _grown(self, kind: Kind, before: Kind, newcomer: Resident) -> Assignment | None:
        """The pairing of a kind, made of that without a newcomer; pods in the order of the grown kind."""
        own = self._known(alike(before)).pairing
        if own is None:
            return None
        residents = [*before.residents, newcomer]
        order = sorted(range(len(residents)), key=residents.__getitem__)
        place = {number: at for at, number in enumerate(order)}
        pods = [each.workload for each in residents]
        sizes = [kind.residents[place[number]].size for number in range(len(residents))]
        capacities, _, caches, cores = kind.layout
        found = self._judge.pairing_with(own, pods, sizes, capacities, caches=caches, cores=cores)
        if found is None:
            return None
        return Assignment(
            found.cost, tuple(tuple(sorted(place[number] for number in group)) for group in found.sockets)
        )
