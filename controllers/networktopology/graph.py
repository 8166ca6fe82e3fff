"""A sparse directed graph of costs between places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

PathCosts = Iterator[tuple[str, dict[str, int]]]
"""Costs of the cheapest paths: every origin with destination to cost. Without a path there is no entry; nor has a place
an entry for itself. One origin after another, as all of them together may take more memory than there is."""
MAX_STEPS: Final = 10_000_000
"""Most steps from place to place until all paths of a graph are known, which takes some seconds."""


class TooManyPlacesError(Exception):
    """A graph has more paths than are looked for."""


class Steps:
    """Counts the steps of an algorithm, so that no graph, and anybody may state one, takes it hours."""

    def __init__(self, most: int | None = None) -> None:
        """Start with none; `most` if these are fewer than :data:`MAX_STEPS`."""
        self._left = MAX_STEPS if most is None else min(most, MAX_STEPS)

    def take(self, count: int) -> None:
        """Count some more.

        Raises:
            TooManyPlacesError: these are more than allowed in all.
        """
        self._left -= count
        if self._left < 0:
            raise TooManyPlacesError


class CostGraph:
    """Links with a cost each. Both directions of a pair are links of their own, so asymmetry is kept."""

    def __init__(self, links: Mapping[tuple[str, str], int]) -> None:
        """Start from costs by (origin, destination); a link from a place to itself is left out.

        Raises:
            ValueError: a cost is negative.
        """
        rows: dict[str, dict[str, int]] = {}
        for (origin, destination), cost in links.items():
            if cost < 0:
                raise ValueError(f"cost of {origin} to {destination} is {cost}; costs are 0 or more")
            row = rows.setdefault(origin, {})
            if origin != destination:
                row[destination] = cost
        places = sorted(set(rows).union(*rows.values()))
        self._links: dict[str, dict[str, int]] = {place: dict(sorted(rows.get(place, {}).items())) for place in places}

    @property
    def places(self) -> tuple[str, ...]:
        """All places, sorted."""
        return tuple(self._links)

    def links_from(self, origin: str) -> Mapping[str, int]:
        """Return destination to cost of the links that leave ``origin``, sorted."""
        return self._links[origin]

    def links(self) -> Iterator[tuple[str, str, int]]:
        """Iterate over all links as (origin, destination, cost), sorted."""
        for origin, row in self._links.items():
            for destination, cost in row.items():
                yield origin, destination, cost
