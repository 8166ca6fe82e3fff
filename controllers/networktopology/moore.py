"""Moore's algorithm: cheapest paths by looking again at every place of which a neighbour came nearer.

Source: E. F. Moore, "The shortest path through a maze", Proceedings of an International Symposium on the Theory of
Switching (1959), his algorithm D; known as the Bellman-Ford algorithm with a queue. One origin takes O(V E), more than
Dijkstra's algorithm, but many origins are served at once, each step being a few operations on arrays: where places
have some ten links each, all pairs take a thirtieth of its time. Where places are in long chains, and a path has as
many links as there are places, Dijkstra's takes less: it does the rest once a part of its own time is over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from controllers.networktopology import dijkstra
from controllers.networktopology import graph as graph_limits
from controllers.networktopology.cost_matrix import Costs, filled, no_path, paths
from controllers.networktopology.graph import CostGraph, PathCosts, Steps, TooManyPlacesError

FEWEST_PLACES: Final = 100
"""Below, Dijkstra's algorithm takes no time either."""
CELLS: Final = 5_000_000
"""Figures at once, so that memory grows with the places and not with their square: 20 MiB, 40 if costs are large."""
_STEPS: Final = 8
_FIGURES: Final = 1000
"""A look at one place takes as long as eight steps of :class:`Steps`, and one for every thousand figures."""
_SHARE: Final = 4
"""Dijkstra's algorithm goes on after a quarter of the steps that all pairs would take it."""


def suits(graph: CostGraph) -> bool:
    """Return whether a graph is large enough for :func:`all_pairs` to be faster, and no path of it too long."""
    return len(graph.places) >= FEWEST_PLACES and no_path(graph) is not None


def all_pairs(graph: CostGraph, *, first: int = 0) -> PathCosts:
    """Yield every place with the cheapest paths' costs to those that it reaches.

    Args:
        graph: places and links.
        first: number of the place to begin with.

    Raises:
        TooManyPlacesError: there are more paths than are looked for.
        ValueError: a path may be too long for a figure; :func:`suits` tells.
    """
    places, figure = graph.places, no_path(graph)
    if figure is None:
        raise ValueError("costs are too large to be summed up")
    links = _Links(graph)
    steps = Steps(_steps(graph))
    at_once = max(1, CELLS // max(1, len(places)))
    for begin in range(first, len(places), at_once):
        origins = places[begin : begin + at_once]
        costs = filled(len(places), len(origins), figure)
        own = np.arange(len(origins))
        costs[begin + own, own] = 0
        try:
            _relax(costs, links, steps)
        except TooManyPlacesError:
            yield from _one_by_one(graph, places[begin:])
            return
        yield from paths(origins, places, np.ascontiguousarray(costs.T), figure)


def _steps(graph: CostGraph) -> int | None:
    """Return after how many steps Dijkstra's algorithm goes on; None where it would have to give up."""
    places = len(graph.places)
    needed = places * (places + sum(len(graph.links_from(place)) for place in graph.places))
    return needed // _SHARE if needed <= graph_limits.MAX_STEPS else None


def _one_by_one(graph: CostGraph, origins: Sequence[str]) -> PathCosts:
    steps = Steps()
    for origin in origins:
        yield origin, dijkstra.from_origin(graph, origin, steps)


class _Links:
    """Links by the number of a place in the order of the graph."""

    def __init__(self, graph: CostGraph) -> None:
        number = {place: index for index, place in enumerate(graph.places)}
        self.after = [[number[end] for end in graph.links_from(place)] for place in graph.places]
        """where the links of each place lead"""
        before: list[list[int]] = [[] for _ in number]
        costs: list[list[int]] = [[] for _ in number]
        for origin, destination, cost in graph.links():
            before[number[destination]].append(number[origin])
            costs[number[destination]].append(cost)
        self.before: list[npt.NDArray[np.intp]] = [np.array(row, dtype=np.intp) for row in before]
        """where the links to each place come from"""
        self.costs: list[npt.NDArray[np.int64]] = [np.array(row, dtype=np.int64)[:, None] for row in costs]
        """what they cost, as a column each"""


def _relax(costs: Costs, links: _Links, steps: Steps) -> None:
    """Lower costs of [places, origins] to those of the cheapest paths.

    Raises:
        TooManyPlacesError: ``steps`` has none left.
    """
    origins = costs.shape[1]
    prices: list[Costs] = [column.astype(costs.dtype) for column in links.costs]
    queue = deque(place for place, before in enumerate(links.before) if len(before))
    queued = bytearray(b"\1" * len(links.before))
    while queue:
        place = queue.popleft()
        queued[place] = False
        before = links.before[place]
        steps.take(_STEPS + len(before) * origins // _FIGURES)
        row, found = costs[place], (costs[before] + prices[place]).min(axis=0)
        if (found < row).any():
            np.minimum(row, found, out=row)
            for after in links.after[place]:
                if not queued[after]:
                    queued[after] = True
                    queue.append(after)
