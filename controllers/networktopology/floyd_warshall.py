"""The algorithm of Floyd and Warshall: cheapest paths by allowing one place after another on the way.

Source: R. W. Floyd, "Algorithm 97: Shortest path", Communications of the ACM 5 (1962). V**3 steps whatever the number
of links, but a whole matrix at a time: where most places are linked it takes a small part of Dijkstra's time.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from controllers.networktopology.graph import CostGraph, PathCosts

FEWEST_PLACES: Final = 16
"""Below, Dijkstra's algorithm takes no time either."""
MOST_PLACES: Final = 500
"""Above, a matrix takes longer than anybody wants to wait."""
LEAST_SHARE: Final = 0.1
"""Share of the pairs that have a link, below which Dijkstra's algorithm is as fast."""
_NO_PATH: Final = 2**61


def suits(graph: CostGraph) -> bool:
    """Return whether a graph is small and dense enough for :func:`all_pairs`, and no path of it too long."""
    places = len(graph.places)
    if not FEWEST_PLACES <= places <= MOST_PLACES:
        return False
    costs = [cost for _, _, cost in graph.links()]
    return len(costs) >= LEAST_SHARE * places * places and max(costs) * places < _NO_PATH


def all_pairs(graph: CostGraph) -> PathCosts:
    """Yield every place with the cheapest paths' costs to those that it reaches; for a graph that :func:`suits`."""
    places = graph.places
    number = {place: index for index, place in enumerate(places)}
    costs = np.full((len(places), len(places)), _NO_PATH, dtype=np.int64)
    for index, origin in enumerate(places):
        links = graph.links_from(origin)
        costs[index, [number[end] for end in links]] = list(links.values())
    for middle in range(len(places)):
        np.minimum(costs, costs[:, middle, None] + costs[None, middle, :], out=costs)
    np.fill_diagonal(costs, _NO_PATH)
    for origin, row in zip(places, costs.tolist(), strict=True):
        yield origin, {end: cost for end, cost in zip(places, row, strict=True) if cost < _NO_PATH}
