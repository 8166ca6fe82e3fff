"""Pod sets by the labels of their templates: thousands of rules are each compared with the few that they may select."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from berth.scheduling.cache.selectors import Selector


class LabelIndex:
    """Which of some sets of labels a selector may select."""

    def __init__(self, labels: Sequence[Mapping[str, str]]) -> None:
        """Take sets of labels; keys are looked at as selectors ask for them."""
        self._labels = labels
        self._by_key: dict[str, dict[str, list[int]]] = {}

    def carriers(self, selector: Selector) -> Sequence[int]:
        """Numbers, in their order, of all that the selector selects, and of few others where it asks for values."""
        if selector.nothing:
            return ()
        asked = [
            [found for value in values if (found := self._with(key).get(value))]
            for key, operator, values in selector.requirements
            if operator == "In"
        ]
        if not asked:
            return range(len(self._labels))
        fewest = min(asked, key=lambda found: sum(map(len, found)))
        return sorted(number for numbers in fewest for number in numbers)

    def _with(self, key: str) -> Mapping[str, Sequence[int]]:
        """Numbers of those with a key, by its value."""
        if key not in self._by_key:
            found = self._by_key[key] = {}
            for number, labels in enumerate(self._labels):
                if (value := labels.get(key)) is not None:
                    found.setdefault(value, []).append(number)
        return self._by_key[key]
