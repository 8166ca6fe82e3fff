"""Groups of alike pods as arrays: what many selectors are looked up in, one after another.

A pod may state hundreds of rules that each mean nearly all pods of a cluster. Asking every group of pods about each of
them takes seconds; here a selector is a few operations on arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from berth.scheduling.cache.selectors import Selector

if TYPE_CHECKING:
    from berth.scheduling.cache.pods import PodGroup

Bools = NDArray[np.bool_]
Numbers = NDArray[np.intp]


class GroupTable:
    """The groups of G at one moment, with what each has on which node slot."""

    def __init__(self, groups: Mapping[str, Iterable[PodGroup]]) -> None:
        """Take the groups by namespace."""
        namespaces: list[int] = []
        owner: list[int] = []
        slots: list[int] = []
        pods: list[int] = []
        staying: list[int] = []
        self._carriers: dict[str, dict[str, list[int]]] = {}
        self._numbers: dict[tuple[str, str], Numbers] = {}
        self._names = list(groups)
        self._inside: dict[Hashable, Bools] = {}
        number = 0
        for place, found in enumerate(groups.values()):
            for group in found:
                namespaces.append(place)
                for key, value in group.labels.items():
                    self._carriers.setdefault(key, {}).setdefault(value, []).append(number)
                for slot, count in group.pods.items():
                    owner.append(number)
                    slots.append(slot)
                    pods.append(count)
                    staying.append(group.staying.get(slot, 0))
                number += 1
        self._namespace = np.array(namespaces, dtype=np.intp)
        self._owner = np.array(owner, dtype=np.intp)
        self._slots = np.array(slots, dtype=np.intp)
        self._pods, self._staying = np.array(pods, dtype=np.int64), np.array(staying, dtype=np.int64)

    def matching(self, selectors: Sequence[Selector]) -> Bools:
        """bool[G], groups that all selectors select."""
        chosen: Bools = np.ones(len(self._namespace), dtype=np.bool_)
        for selector in selectors:
            if selector.nothing:
                chosen[:] = False
            for key, operator, values in selector.requirements:
                known = self._carriers.get(key, {})
                asked = known.keys() & values if operator in ("In", "NotIn") else known
                carriers = [self._with(key, value) for value in asked]
                if operator in ("NotIn", "DoesNotExist"):
                    for numbers in carriers:
                        chosen[numbers] = False
                    continue
                carry = np.zeros_like(chosen)
                for numbers in carriers:
                    carry[numbers] = True
                chosen &= carry
        return chosen

    def inside(self, scope: Hashable, selects: Callable[[str], bool]) -> Bools:
        """bool[G], groups of the namespaces that are selected; `scope` tells apart who asks."""
        if scope not in self._inside:
            chosen = np.array([selects(name) for name in self._names], dtype=np.bool_)
            self._inside[scope] = chosen[self._namespace]
        return self._inside[scope]

    def count(self, chosen: Bools, size: int, *, staying: bool = False) -> NDArray[np.int64]:
        """int64[size]: pods of some groups, bool[G], per node slot; `staying` leaves out those being deleted."""
        counted = chosen[self._owner]
        total = np.zeros(size, dtype=np.int64)
        np.add.at(total, self._slots[counted], (self._staying if staying else self._pods)[counted])
        return total

    def _with(self, key: str, value: str) -> Numbers:
        """Numbers of the groups with a label that some have."""
        found = self._numbers.get((key, value))
        if found is None:
            found = self._numbers[key, value] = np.array(self._carriers[key][value], dtype=np.intp)
        return found
