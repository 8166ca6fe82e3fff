"""Pairs of places, and which of them have no cost, without a list of them: those of 5000 zones are 25 million."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Final, TypeGuard

Pair = tuple[str, str]


class PlacePairs(Collection[Pair]):
    """The ordered pairs of different places of one group, but for some."""

    def __init__(self, groups: Sequence[Sequence[str]], left_out: Collection[Pair] = ()) -> None:
        """Count them.

        Args:
            groups: sorted places by region, or by zone; each place is in one of them.
            left_out: pairs that do not count; others than of these places do not matter.
        """
        self._groups = groups
        self._group_of = {place: group for group in groups for place in group}
        self._left_out = frozenset(pair for pair in left_out if self._is_pair(pair))
        self._all = sum(len(group) * (len(group) - 1) for group in groups)
        left_out_of = Counter(origin for origin, _ in self._left_out)
        # Of the others there is nothing to tell, and they are most of them where few pairs are without a cost.
        self._origins = sorted(place for place, group in self._group_of.items() if left_out_of[place] < len(group) - 1)
        self.links = self._all // 2 - sum(a < b and (b, a) in self._left_out for a, b in self._left_out)
        """How many there are, those of both directions as one."""

    def without(self, pairs: Collection[Pair]) -> PlacePairs:
        """Return those that are not among others."""
        return PlacePairs(self._groups, self._left_out.union(pairs))

    def __len__(self) -> int:
        """Return how many there are."""
        return self._all - len(self._left_out)

    def __contains__(self, item: object) -> bool:
        """Return whether a pair is one of them."""
        return self._is_pair(item) and item not in self._left_out

    def __iter__(self) -> Iterator[Pair]:
        """Iterate over them, sorted; who wants the first few has no work with the others."""
        for origin in self._origins:
            for destination in self._group_of[origin]:
                pair = (origin, destination)
                if origin != destination and pair not in self._left_out:
                    yield pair

    def _is_pair(self, item: object) -> TypeGuard[Pair]:
        if not isinstance(item, tuple):
            return False
        one, other = item
        group = self._group_of.get(one)
        return group is not None and one != other and self._group_of.get(other) is group


NO_PAIRS: Final = PlacePairs(())
"""None at all."""
