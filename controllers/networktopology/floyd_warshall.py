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
_NO_SHORT_PATH: Final = 2**30 - 1
"""Where all paths are shorter, no sum of two figures is wider than 32 bits."""


def suits(graph: CostGraph) -> bool:
    """Return whether a graph is small and dense enough for :func:`all_pairs`, and no path of it too long."""
    places = len(graph.places)
    if not FEWEST_PLACES <= places <= MOST_PLACES:
        return False
    rows = [graph.links_from(place) for place in graph.places]
    if sum(map(len, rows)) < LEAST_SHARE * places * places:
        return False
    return _longest(graph) < _NO_PATH


def all_pairs(graph: CostGraph) -> PathCosts:
    """Yield every place with the cheapest paths' costs to those that it reaches; for a graph that :func:`suits`."""
    places = graph.places
    number = {place: index for index, place in enumerate(places)}
    # Narrow figures take half of the time, and latencies are no wider.
    short = _longest(graph) < _NO_SHORT_PATH
    no_path = _NO_SHORT_PATH if short else _NO_PATH
    costs = np.full((len(places), len(places)), no_path, dtype=np.int32 if short else np.int64)
    for index, origin in enumerate(places):
        links = graph.links_from(origin)
        costs[index, list(map(number.__getitem__, links))] = list(links.values())
    sums = np.empty_like(costs)
    for middle in range(len(places)):
        np.add(costs[:, middle, None], costs[None, middle, :], out=sums)
        np.minimum(costs, sums, out=costs)
    np.fill_diagonal(costs, no_path)
    unreached = np.count_nonzero(costs >= no_path, axis=1).tolist()
    for origin, row, missing in zip(places, costs.tolist(), unreached, strict=True):
        reached = dict(zip(places, row, strict=True))
        del reached[origin]
        yield origin, reached if missing == 1 else {end: cost for end, cost in reached.items() if cost < no_path}


def _longest(graph: CostGraph) -> int:
    """Return what no path is longer than."""
    return max(max(graph.links_from(place).values(), default=0) for place in graph.places) * len(graph.places)
