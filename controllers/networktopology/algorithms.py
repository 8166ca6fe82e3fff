"""The path algorithms that can be chosen, by the name of the weight set that they write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from berth.api.labels import WEIGHTS_DIJKSTRA
from controllers.networktopology import bellman_ford, dijkstra, floyd_warshall, moore
from controllers.networktopology.graph import CostGraph, PathCosts, Steps, TooManyPlacesError

PathAlgorithm = Callable[[CostGraph], PathCosts]
"""Computes the cheapest path's cost for every ordered pair of places; raises TooManyPlacesError."""

WEIGHTS_BELLMAN_FORD: Final = "BellmanFord"
"""Weight set of shortest-path costs by Bellman-Ford; the same costs as Dijkstra's, computed independently."""
FEW_STEPS: Final = 500_000
"""Steps that Dijkstra's algorithm takes in a tenth of a second."""


def cheapest_paths(graph: CostGraph) -> PathCosts:
    """Return the costs of the cheapest paths, by Dijkstra's algorithm or a faster one that gives the same.

    Raises:
        TooManyPlacesError: there are more paths than are looked for.
    """
    if floyd_warshall.suits(graph):
        return floyd_warshall.all_pairs(graph)
    return _few_or_many(graph) if moore.suits(graph) else dijkstra.all_pairs(graph)


def _few_or_many(graph: CostGraph) -> PathCosts:
    """Begin where there are links alone, with a row for every place only if there are many paths.

    Many places may be in pairs that meet nobody else, and nearly all figures of such rows say that there is no path.
    """
    steps = Steps(FEW_STEPS)
    for number, origin in enumerate(graph.places):
        try:
            row = dijkstra.from_origin(graph, origin, steps)
        except TooManyPlacesError:
            yield from moore.all_pairs(graph, first=number)
            return
        yield origin, row


ALGORITHMS: Final[dict[str, PathAlgorithm]] = {
    WEIGHTS_DIJKSTRA: cheapest_paths,
    WEIGHTS_BELLMAN_FORD: bellman_ford.all_pairs,
}
"""Algorithm by name; the first is the default."""
