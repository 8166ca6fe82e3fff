"""Values of nodes by slot, made of those of their kinds and kept: renewed for nodes that changed alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from berth.scheduling.cache.columns import Ids
from berth.scheduling.cache.kind_column import KindColumn

K = TypeVar("K", bound=Hashable)
Floats = npt.NDArray[np.float64]
KEPT: Final = 1 << 20
"""Values that are kept, 8 MiB."""


class _Kept:
    __slots__ = ("by_kind", "by_slot", "changes", "gaps", "shown")

    def __init__(self, by_kind: Floats, by_slot: Floats, changes: int) -> None:
        self.by_kind = by_kind
        self.by_slot = by_slot
        self.shown = by_slot.view()
        """the same for others, who cannot write to it"""
        self.shown.flags.writeable = False
        self.changes = changes
        self.gaps = bool(np.isnan(by_slot).any())
        """whether the value of any node may be missing"""

    def learn(self, kind: int, value: float, slots: Sequence[int]) -> None:
        """Keep the value of one more kind, which these slots have."""
        if kind >= len(self.by_kind):
            grown = np.full(2 * kind, np.nan)
            grown[: len(self.by_kind)] = self.by_kind
            self.by_kind = grown
        self.by_kind[kind] = value
        self.by_slot[slots] = value


class SlotValues(Generic[K]):
    """Values for several who ask, each by a key of his own; those that nobody knows are not numbers."""

    def __init__(self, column: KindColumn[K]) -> None:
        """Begin without any; `column` has the kinds."""
        self._column = column
        self._kept: dict[Hashable, _Kept] = {}

    def get(
        self, key: Hashable, ids: Ids, wanted: npt.NDArray[np.bool_], find: Callable[[int], float]
    ) -> Floats | None:
        """Return float64[N] as of now; None where it is to be worked out and `put`.

        Args:
            key: who asks.
            ids: int32[N], kinds as the column has just said.
            wanted: bool[N], nodes whose values have to be known.
            find: makes the value of a kind; asked where just one is missing.
        """
        kept = self._kept.get(key)
        if kept is None or len(kept.by_slot) != len(ids):
            return None
        changed = self._column.changed(kept.changes)
        if changed is None:
            return None
        by_kind, by_slot = kept.by_kind, kept.by_slot
        missing: dict[int, list[int]] = {}
        for slot in changed:
            kind = ids.item(slot)
            value = by_slot[slot] = by_kind.item(kind) if kind < len(by_kind) else np.nan
            if value != value:
                if wanted[slot]:
                    missing.setdefault(kind, []).append(slot)
                else:
                    kept.gaps = True
        if len(missing) > 1:
            return None
        for kind, slots in missing.items():
            kept.learn(kind, find(kind), slots)
        kept.changes = self._column.changes
        return None if kept.gaps and np.isnan(by_slot[wanted]).any() else kept.shown

    def put(self, key: Hashable, by_kind: Floats, ids: Ids) -> Floats:
        """Keep values by kind; returns float64[N], which nobody but `get` changes."""
        self._kept.pop(key, None)
        if (len(self._kept) + 1) * len(ids) > KEPT:
            self._kept.clear()
        kept = self._kept[key] = _Kept(by_kind, by_kind.take(ids), self._column.changes)
        return kept.shown

    def clear(self) -> None:
        """Forget all: kinds have other values."""
        self._kept.clear()
