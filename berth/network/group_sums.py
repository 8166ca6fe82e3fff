"""Sums over AppGroups that stay exact: each group gives back just what it took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from berth.network.groups import GroupKey

Key = TypeVar("Key")


class SumOverGroups(Generic[Key]):
    """What all AppGroups take by some key; worked out when somebody asks, for few ask and keys are many."""

    def __init__(self, count: Callable[[GroupKey], Counter[Key]]) -> None:
        """Start empty; `count` says what one group takes now."""
        self._count = count
        self._total: Counter[Key] = Counter()
        self._by_group: dict[GroupKey, Counter[Key]] = {}
        self._changed: set[GroupKey] = set()

    def note(self, key: GroupKey, *, calls: bool) -> None:
        """What a group takes has changed."""
        # Groups come and go for ever, and nobody may ever ask: noted are those alone that take something, or did.
        if calls or key in self._by_group:
            self._changed.add(key)
        else:
            self._changed.discard(key)

    def total(self) -> Mapping[Key, int]:
        """What all groups take as of the last `note`."""
        for key in self._changed:
            add(self._total, {one: -amount for one, amount in self._by_group.pop(key, {}).items()})
            amounts = Counter({one: amount for one, amount in self._count(key).items() if amount})
            add(self._total, amounts)
            if amounts:
                self._by_group[key] = amounts
        self._changed.clear()
        return self._total


def add(total: Counter[Key], amounts: Mapping[Key, int]) -> None:
    """Add amounts, which may be below 0, and leave nothing that is 0."""
    for key, amount in amounts.items():
        total[key] += amount
        if not total[key]:
            del total[key]
