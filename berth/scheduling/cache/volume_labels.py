"""Label selectors over many volumes at once: a hundred claims may have as many, each with as many expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.cache.columns import LabelColumn

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from berth.scheduling.cache.columns import Mask
    from berth.scheduling.cache.selectors import Selector


class VolumeLabels:
    """Labels of volumes as columns, of those keys alone that some selector names."""

    def __init__(self, labels: Sequence[Mapping[str, str]], keys: Collection[str]) -> None:
        """Read the labels of each volume once; `keys` are those of all selectors to come."""
        self._count = len(labels)
        self._columns: dict[str, LabelColumn] = {}
        asked = frozenset(keys)
        for index, theirs in enumerate(labels if asked else ()):
            for key in asked & theirs.keys():
                if key not in self._columns:
                    self._columns[key] = LabelColumn(self._count)
                self._columns[key].set(index, theirs[key])

    def matching(self, selector: Selector) -> Mask:
        """bool[V]: volumes that a selector matches, as `Selector.matches` has it for each."""
        found: Mask = np.full(self._count, not selector.nothing, dtype=np.bool_)
        for key, operator, values in selector.requirements:
            column = self._columns.get(key)
            if column is None:  # no volume has it
                if operator in ("In", "Exists"):
                    found[:] = False
            elif operator == "In":
                found &= column.among(values, self._count)
            elif operator == "NotIn":
                found &= ~column.among(values, self._count)
            elif operator == "Exists":
                found &= column.present(self._count)
            else:
                found &= ~column.present(self._count)
        return found
