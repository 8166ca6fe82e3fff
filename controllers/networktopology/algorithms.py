"""The path algorithms that can be chosen, by the name of the weight set that they write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from berth.api.labels import WEIGHTS_DIJKSTRA
from controllers.networktopology import bellman_ford, dijkstra
from controllers.networktopology.graph import CostGraph, PathCosts

PathAlgorithm = Callable[[CostGraph], PathCosts]
"""Computes the cheapest path's cost for every ordered pair of places; raises TooManyPlacesError."""

WEIGHTS_BELLMAN_FORD: Final = "BellmanFord"
"""Weight set of shortest-path costs by Bellman-Ford; the same costs as Dijkstra's, computed independently."""

ALGORITHMS: Final[dict[str, PathAlgorithm]] = {
    WEIGHTS_DIJKSTRA: dijkstra.all_pairs,
    WEIGHTS_BELLMAN_FORD: bellman_ford.all_pairs,
}
"""Algorithm by name; the first is the default."""
