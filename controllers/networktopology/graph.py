"""A sparse directed graph of costs between places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

PathCosts = dict[str, dict[str, int]]
"""Cost of the cheapest path: origin to destination to cost. Without a path there is no entry; nor has a place an
entry for itself."""


class Graph:
    """Links with a cost each. Both directions of a pair are links of their own, so asymmetry is kept."""

    def __init__(self, links: Iterable[tuple[str, str, int]] = ()) -> None:
        """Start from (origin, destination, cost) triples."""
        self._links: dict[str, dict[str, int]] = {}
        for origin, destination, cost in links:
            self.add(origin, destination, cost)

    def add(self, origin: str, destination: str, cost: int) -> None:
        """Add a link. Of parallel links the cheapest counts; a link from a place to itself is left out.

        Raises:
            ValueError: the cost is negative.
        """
        if cost < 0:
            raise ValueError(f"cost of {origin} to {destination} is {cost}; costs are 0 or more")
        row = self._links.setdefault(origin, {})
        self._links.setdefault(destination, {})
        if origin == destination:
            return
        known = row.get(destination)
        if known is None or cost < known:
            row[destination] = cost

    @property
    def places(self) -> tuple[str, ...]:
        """All places, sorted."""
        return tuple(sorted(self._links))

    def links_from(self, origin: str) -> Mapping[str, int]:
        """Return destination to cost of the links that leave ``origin``; empty for an unknown place."""
        return self._links.get(origin, {})

    def links(self) -> Iterator[tuple[str, str, int]]:
        """Iterate over all links as (origin, destination, cost), sorted."""
        for origin in sorted(self._links):
            for destination, cost in sorted(self._links[origin].items()):
                yield origin, destination, cost

    def __len__(self) -> int:
        """Return the number of places."""
        return len(self._links)
