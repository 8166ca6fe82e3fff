"""Node labels as columns: one small integer per node and label key.

A column turns a question about a label ("zone in {a, b}") into a question about its few distinct
values, answered once each and spread to all nodes by one numpy gather.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Ids = NDArray[np.int32]


_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})")


def parse_int64(text: str) -> int | None:
    """The integer that Go's ParseInt(text, 10, 64) reads, None where it would fail."""
    match = _INTEGER.fullmatch(text)  # of more digits than any has, int() refuses some thousands
    if match is None:
        return None
    number = int(match[1] + match[2])
    return number if -(2**63) <= number < 2**63 else None


class LabelColumn:
    """The values of one label key over all node slots.

    ``ids[i]`` numbers the value on node *i*; -1 where the node lacks the key. Numbers are given in
    order of first sight and hold until ``renumber``; values of nodes long gone keep theirs so long.
    """

    __slots__ = ("_integers", "_numbers", "ids", "values")

    def __init__(self, capacity: int) -> None:
        """``capacity`` is the number of node slots."""
        self.ids: Ids = np.full(capacity, -1, dtype=np.int32)
        self.values: list[str] = []
        self._numbers: dict[str, int] = {}
        self._integers: tuple[NDArray[np.int64], Mask] | None = None

    def set(self, slot: int, value: str | None) -> None:
        """Record the value on a node; None when it lacks the key."""
        if value is None:
            self.ids[slot] = -1
            return
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self.values)
            self.values.append(value)
            self._integers = None
        self.ids[slot] = number

    def grow(self, capacity: int) -> None:
        """Make room for more slots."""
        ids: Ids = np.full(capacity, -1, dtype=np.int32)
        ids[: len(self.ids)] = self.ids
        self.ids = ids

    def renumber(self, count: int) -> None:
        """Forget values that none of the first ``count`` slots has, and number the others anew."""
        kept = [number for number in np.unique(self.ids[:count]).tolist() if number >= 0]
        table: Ids = np.full(len(self.values) + 1, -1, dtype=np.int32)
        table[kept] = np.arange(len(kept))
        self.ids[:count] = table[self.ids[:count]]
        self.values = [self.values[number] for number in kept]
        self._numbers = {value: number for number, value in enumerate(self.values)}
        self._integers = None

    def present(self, count: int) -> Mask:
        """Nodes of the first ``count`` slots that have the key."""
        found: Mask = self.ids[:count] >= 0
        return found

    def among(self, values: Collection[str], count: int) -> Mask:
        """Nodes whose value is one of these."""
        numbers = [number for value in values if (number := self._numbers.get(value)) is not None]
        ids = self.ids[:count]
        if not numbers:
            return np.zeros(count, dtype=np.bool_)
        found: Mask = ids == numbers[0] if len(numbers) == 1 else np.isin(ids, numbers)
        return found

    def integers(self, count: int) -> tuple[NDArray[np.int64], Mask]:
        """int64[count], bool[count]: values of the first ``count`` slots as integers, and which of them are some."""
        if self._integers is None:
            read = [parse_int64(value) for value in self.values]
            # The last entry answers for -1.
            numbers = np.array([0 if number is None else number for number in (*read, None)], dtype=np.int64)
            self._integers = numbers, np.array([number is not None for number in (*read, None)], dtype=np.bool_)
        numbers, known = self._integers
        ids = self.ids[:count]
        return numbers[ids], known[ids]
