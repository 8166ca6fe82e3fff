"""Nodes by what they have in common: one small integer a node, renewed for nodes that changed alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from berth.scheduling.cache.columns import Ids

K = TypeVar("K", bound=Hashable)
MOST_TOUCHED: Final = 16_384
"""Names of touched nodes that are kept while nobody asks; of more, all nodes are looked at anew. Nodes may be gone."""
MOST_CHANGED: Final = 256
"""Slots that got another kind, as many as are told at least; whoever asks later looks at all."""
STEPS: Final = 16_384
"""Kinds that became another by what came, as many as are remembered."""
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
        self._touched: dict[str, Hashable | None] = {}
        self._steps: dict[tuple[int, Hashable], int] = {}
        self._all = False
        self.kinds: list[K] = [rest]
        """Kinds by number."""
        self.numbering = 0
        """Grows when the numbers are given anew."""
        self.changes = 0
        """How often a slot got another kind, or all of them did."""
        self._changed: list[int] = []
        self._slots = [0]
        self._used = np.zeros(SPARE, dtype=np.bool_)

    def touch(self, node: str, came: Hashable | None = None) -> None:
        """A node came, went, or may be of another kind.

        Args:
            node: name of the node.
            came: what came to it and nothing else, where a kind becomes the same kind by it on whatever node.
        """
        if node in self._touched:
            self._touched[node] = None
        elif len(self._touched) < MOST_TOUCHED:
            self._touched[node] = came
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
            self._change(0, len(grown) - len(self._ids))
            self._ids = grown
            self._all_changed()
        # A slot may have gone from one touched node to another: those that are there decide.
        for node, came in dict.fromkeys(index).items() if self._all else self._touched.items():
            slot = index.get(node)
            if slot is not None:
                before = self._ids.item(slot)
                number = self._after(node, before, came)
                if number != before:
                    self._change(before, -1)
                    self._change(number, 1)
                    self._ids[slot] = number
                    self._changed.append(slot)
                    self.changes += 1
        self._touched.clear()
        self._all = False
        if len(self._changed) > 2 * MOST_CHANGED:
            del self._changed[:-MOST_CHANGED]
        if len(self.kinds) > 2 * len(index) + SPARE:
            self._renumber(size)
        return self._ids[:size]

    def changed(self, since: int) -> Sequence[int] | None:
        """Return the slots that got another kind since `changes` was that; None where too many did."""
        count = self.changes - since
        return self._changed[-count or len(self._changed) :] if count <= len(self._changed) else None

    @property
    def used(self) -> npt.NDArray[np.bool_]:
        """bool[kinds], kinds that some slot has, with a node or not; of others there is no node."""
        return self._used[: len(self.kinds)]

    def _change(self, number: int, slots: int) -> None:
        """More slots have a kind, or fewer."""
        before = self._slots[number]
        now = self._slots[number] = before + slots
        if not before or not now:
            self._used[number] = now > 0

    def _after(self, node: str, before: int, came: Hashable | None) -> int:
        """Number of a node's kind."""
        if came is None:
            return self._number(self._kind_of(node))
        number = self._steps.get((before, came))
        if number is None:
            if len(self._steps) >= STEPS:
                self._steps.clear()
            number = self._steps[before, came] = self._number(self._kind_of(node))
        return number

    def _number(self, kind: K) -> int:
        number = self._numbers.get(kind)
        if number is None:
            number = self._numbers[kind] = len(self.kinds)
            self.kinds.append(kind)
            self._slots.append(0)
            if number == len(self._used):
                self._used = np.append(self._used, np.zeros_like(self._used))
        return number

    def _renumber(self, size: int) -> None:
        used = sorted({0, *np.unique(self._ids[:size]).tolist()})
        table = np.zeros(len(self.kinds), dtype=np.int32)
        table[used] = np.arange(len(used))
        self._ids = table[self._ids]
        self.kinds = [self.kinds[number] for number in used]
        self._numbers = {kind: number for number, kind in enumerate(self.kinds)}
        counted = np.bincount(self._ids, minlength=len(self._used))
        self._slots, self._used = counted[: len(self.kinds)].tolist(), counted > 0
        self.numbering += 1
        self._all_changed()

    def _all_changed(self) -> None:
        self.changes += 1
        self._changed.clear()
        self._steps.clear()
