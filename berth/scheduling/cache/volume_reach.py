"""Which volumes reach which nodes, and what claims take of them, for many nodes at once.

Where every node has volumes of its own, tables of all volumes by all nodes would hold little else than False: what is
kept are the pairs of which it is true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from berth.scheduling.cache.columns import Mask

Indices = NDArray[np.intp]

MOST_PAIRS = 1_000_000
"""Pairs of a node and a volume that are matched at a time, of one node at least: some 50 MB."""
MOST_STEPS = 100
"""How many volumes it takes at the most to get from one node to another, each shared by two nodes."""


class Reach:
    """Nodes that each of some volumes can be reached from; volumes of one node affinity count as one."""

    def __init__(self, numbers: Indices, slots: Sequence[Indices], size: int) -> None:
        """Sort the pairs.

        Args:
            numbers: int[V], node affinity of each volume.
            slots: nodes that each of the affinities admits.
            size: N, the number of nodes.
        """
        present, self._affinity = np.unique(numbers, return_inverse=True)
        self._size, self._affinities = size, len(present)
        nodes = np.concatenate([np.zeros(0, dtype=np.intp), *(slots[number] for number in present.tolist())])
        affinities = np.repeat(np.arange(len(present)), [len(slots[number]) for number in present.tolist()])
        order = np.argsort(nodes, kind="stable")
        self._nodes, self._affinities_there = nodes[order], affinities[order].astype(np.intp)
        """the pairs of node and affinity, by node"""
        self._first = np.searchsorted(self._nodes, np.arange(size + 1))
        self._volumes = np.argsort(self._affinity, kind="stable")
        """volumes by affinity, in their order"""
        self._first_volume = np.searchsorted(self._affinity[self._volumes], np.arange(self._affinities + 1))

    @property
    def pairs(self) -> int:
        """How many pairs of a node and an affinity there are, which is what it takes of memory."""
        return len(self._nodes)

    def count(self, admitted: Mask, first: int) -> Indices:
        """int[N]: how many of the admitted volumes, from the index `first` on, each node reaches."""
        of_affinity = np.bincount(self._affinity[first:][admitted[first:]], minlength=self._affinities)
        found = np.bincount(self._nodes, weights=of_affinity[self._affinities_there], minlength=self._size)
        return found.astype(np.intp)

    def apart(self, admitted: Mask, first: int) -> Indices | None:
        """int[N]: parts of the cluster that share none of the admitted volumes from the index `first` on.

        Nodes of one part have one number, those that reach none -1. None where it would take long to tell: a volume of
        two nodes, one of the second and a third, and so on a hundred times.
        """
        present = np.zeros(self._affinities, dtype=np.bool_)
        present[self._affinity[first:][admitted[first:]]] = True
        pairs = present[self._affinities_there]
        nodes, affinities = self._nodes[pairs], self._affinities_there[pairs]
        part = np.full(self._size, -1, dtype=np.intp)
        part[nodes] = nodes
        for _ in range(MOST_STEPS):
            lowest = np.full(self._affinities, self._size, dtype=np.intp)
            np.minimum.at(lowest, affinities, part[nodes])
            before = part.copy()
            np.minimum.at(part, nodes, lowest[affinities])
            if np.array_equal(part, before):
                return part
        return None

    def alike(self, slots: Indices) -> Indices:
        """For each of the nodes the index in `slots` of the first that reaches the same volumes."""
        first: dict[bytes, int] = {}
        found = [
            first.setdefault(self._affinities_there[self._first[slot] : self._first[slot + 1]].tobytes(), index)
            for index, slot in enumerate(slots.tolist())
        ]
        return np.array(found, dtype=np.intp)

    def portions(self, slots: Indices) -> Iterator[Indices]:
        """The nodes, as many at a time as reach `MOST_PAIRS` volumes, one at least."""
        portion: list[int] = []
        pairs = 0
        reached = self.count(np.ones(len(self._affinity), dtype=np.bool_), 0)[slots].tolist()
        for slot, here in zip(slots.tolist(), reached, strict=True):
            if portion and pairs + here > MOST_PAIRS:
                yield np.array(portion, dtype=np.intp)
                portion, pairs = [], 0
            portion.append(slot)
            pairs += here
        if portion:
            yield np.array(portion, dtype=np.intp)

    def taking(self, slots: Indices) -> Taking:
        """Claims that take volumes on these nodes."""
        affinities = self._first[slots + 1] - self._first[slots]
        owners = np.repeat(np.arange(len(slots)), affinities)
        there = self._affinities_there[_ranges(self._first[slots], affinities)]
        volumes = self._first_volume[there + 1] - self._first_volume[there]
        owners = np.repeat(owners, volumes)
        reached = self._volumes[_ranges(self._first_volume[there], volumes)]
        order = np.lexsort((reached, owners))
        return Taking(owners[order], reached[order], len(slots))


class Taking:
    """What claims take of the volumes that some nodes reach, one claim after another, on all of the nodes at once."""

    def __init__(self, owners: Indices, volumes: Indices, count: int) -> None:
        """Nothing is taken yet.

        Args:
            owners: int[P], which of the nodes, in order.
            volumes: int[P], a volume that it reaches; those of a node in order.
            count: S, the number of nodes.
        """
        self._owners, self._volumes, self._count = owners, volumes, count

    def take(self, admitted: Mask, first: int) -> Indices:
        """int[S]: first volume that is left of the admitted ones, from the index `first` on; -1 where there is none."""
        found = np.full(self._count, -1, dtype=np.intp)
        fitting = np.flatnonzero((self._volumes >= first) & admitted[self._volumes])
        owners = self._owners[fitting]
        best = fitting[np.flatnonzero(np.diff(owners, prepend=-1))]
        found[self._owners[best]] = self._volumes[best]
        left = np.ones(len(self._owners), dtype=np.bool_)
        left[best] = False
        self._keep(left)
        return found

    def leave(self, nodes: Mask) -> None:
        """Look no further at these of the nodes, bool[S]: they take nothing any more."""
        if nodes.any():
            self._keep(~nodes[self._owners])

    def _keep(self, pairs: Mask) -> None:
        self._owners, self._volumes = self._owners[pairs], self._volumes[pairs]


def _ranges(starts: Indices, lengths: Indices) -> Indices:
    """The numbers from each start on, as many as its length says, one range after the other."""
    offsets = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    found: Indices = offsets + np.arange(len(offsets))
    return found
