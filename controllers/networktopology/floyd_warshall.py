"""The algorithm of Floyd and Warshall: cheapest paths by allowing one place after another on the way.

Source: R. W. Floyd, "Algorithm 97: Shortest path", Communications of the ACM 5 (1962). V**3 steps whatever the number
of links, but a whole matrix at a time: up to some hundred places it takes a tenth of Dijkstra's time.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from controllers.networktopology.cost_matrix import filled, no_path, paths
from controllers.networktopology.graph import CostGraph, PathCosts

FEWEST_PLACES: Final = 16
"""Below, Dijkstra's algorithm takes no time either."""
MOST_PLACES: Final = 500
"""Above, :mod:`~controllers.networktopology.moore` is faster, unless most places are linked."""


def suits(graph: CostGraph) -> bool:
    """Return whether a graph has neither too few nor too many places for :func:`all_pairs`, and no path too long."""
    return FEWEST_PLACES <= len(graph.places) <= MOST_PLACES and no_path(graph) is not None


def all_pairs(graph: CostGraph) -> PathCosts:
    """Yield every place with the cheapest paths' costs to those that it reaches.

    Raises:
        ValueError: a path may be too long for a figure; :func:`suits` tells.
    """
    places, figure = graph.places, no_path(graph)
    if figure is None:
        raise ValueError("costs are too large to be summed up")
    number = {place: index for index, place in enumerate(places)}
    costs = filled(len(places), len(places), figure)
    for index, origin in enumerate(places):
        links = graph.links_from(origin)
        costs[index, list(map(number.__getitem__, links))] = list(links.values())
    sums = np.empty_like(costs)
    for middle in range(len(places)):
        np.add(costs[:, middle, None], costs[None, middle, :], out=sums)
        np.minimum(costs, sums, out=costs)
    yield from paths(places, places, costs, figure)
