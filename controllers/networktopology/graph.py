"""A sparse directed graph of costs between places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

PathCosts = dict[str, dict[str, int]]
"""Cost of the cheapest path: origin to destination to cost. Without a path there is no entry; nor has a place an
entry for itself."""


class CostGraph:
    """Links with a cost each. Both directions of a pair are links of their own, so asymmetry is kept."""

    def __init__(self, links: Mapping[tuple[str, str], int]) -> None:
        """Start from costs by (origin, destination); a link from a place to itself is left out.

        Raises:
            ValueError: a cost is negative.
        """
        self._links: dict[str, dict[str, int]] = {
            place: {} for place in sorted({end for pair in links for end in pair})
        }
        for (origin, destination), cost in sorted(links.items()):
            if cost < 0:
                raise ValueError(f"cost of {origin} to {destination} is {cost}; costs are 0 or more")
            if origin != destination:
                self._links[origin][destination] = cost

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
