"""Nodes by what they have in common: one small integer a node, renewed for nodes that changed alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from berth.scheduling.cache.columns import Ids

K = TypeVar("K", bound=Hashable)
MOST_TOUCHED: Final = 16_384
"""Names of touched nodes that are kept while nobody asks; of more, all nodes are looked at anew. Nodes may be gone."""
SPARE = 64
"""Kinds that may be kept beyond twice the number of nodes before those without nodes are forgotten."""


class KindColumn(Generic[K]):
    """The kind of the node in every slot."""

    def __init__(self, kind_of: Callable[[str], K], rest: K) -> None:
        """Begin without nodes.

        Args:
            kind_of: kind of a node by its name.
            rest: kind of nodes that were never touched; it has the number 0.
        """
        self._kind_of = kind_of
        self._rest = rest
        self._numbers: dict[K, int] = {rest: 0}
        self._ids: Ids = np.zeros(0, dtype=np.int32)
        self._touched: set[str] = set()
        self._all = False
        self.kinds: list[K] = [rest]
        """Kinds by number."""
        self.numbering = 0
        """Grows when the numbers are given anew."""
        self._slots: npt.NDArray[np.int64] = np.zeros(SPARE, dtype=np.int64)

    def touch(self, node: str) -> None:
        """A node came, went, or may be of another kind."""
        if len(self._touched) < MOST_TOUCHED:
            self._touched.add(node)
        else:
            self._all = True

    def ids(self, index: Mapping[str, int], size: int) -> Ids:
        """int32[size]: number of each node's kind; slots without a node have any number.

        Args:
            index: slot of every live node by name.
            size: number of slots.
        """
        if len(self._ids) < size:
            grown = np.zeros(max(size, 2 * len(self._ids)), dtype=np.int32)
            grown[: len(self._ids)] = self._ids
            self._slots[0] += len(grown) - len(self._ids)
            self._ids = grown
        # A slot may have gone from one touched node to another: those that are there decide.
        for node in index if self._all else self._touched:
            slot = index.get(node)
            if slot is not None:
                number = self._number(self._kind_of(node))
                self._slots[self._ids[slot]] -= 1
                self._slots[number] += 1
                self._ids[slot] = number
        self._touched.clear()
        self._all = False
        if len(self.kinds) > 2 * len(index) + SPARE:
            self._renumber(size)
        return self._ids[:size]

    @property
    def used(self) -> npt.NDArray[np.bool_]:
        """bool[kinds], kinds that some slot has, with a node or not; of others there is no node."""
        found: npt.NDArray[np.bool_] = self._slots[: len(self.kinds)] > 0
        return found

    def _number(self, kind: K) -> int:
        number = self._numbers.get(kind)
        if number is None:
            number = self._numbers[kind] = len(self.kinds)
            self.kinds.append(kind)
            if number == len(self._slots):
                self._slots = np.append(self._slots, np.zeros_like(self._slots))
        return number

    def _renumber(self, size: int) -> None:
        used = sorted({0, *np.unique(self._ids[:size]).tolist()})
        table = np.zeros(len(self.kinds), dtype=np.int32)
        table[used] = np.arange(len(used))
        self._ids = table[self._ids]
        self.kinds = [self.kinds[number] for number in used]
        self._numbers = {kind: number for number, kind in enumerate(self.kinds)}
        self._slots = np.bincount(self._ids, minlength=len(self._slots))
        self.numbering += 1
