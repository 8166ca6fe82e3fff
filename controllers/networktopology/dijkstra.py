"""Dijkstra's algorithm: cheapest paths over links whose costs are not negative.

Source: E. W. Dijkstra, "A note on two problems in connexion with graphs", Numerische Mathematik 1 (1959), with a
binary heap. All pairs take O(V (E + V) log V) for V places and E links.
"""

from __future__ import annotations

from heapq import heappop, heappush

from controllers.networktopology.graph import CostGraph, PathCosts


def from_origin(graph: CostGraph, origin: str) -> dict[str, int]:
    """Return the cost of the cheapest path from ``origin`` to every other place that it reaches."""
    final: dict[str, int] = {}
    heap: list[tuple[int, str]] = [(0, origin)]
    best = {origin: 0}
    while heap:
        cost, place = heappop(heap)
        if place in final:
            continue
        final[place] = cost
        for neighbour, step in graph.links_from(place).items():
            total = cost + step
            known = best.get(neighbour)
            if known is None or total < known:
                best[neighbour] = total
                heappush(heap, (total, neighbour))
    del final[origin]
    return final


def all_pairs(graph: CostGraph) -> PathCosts:
    """Return the cheapest path's cost for every ordered pair of places that a path connects."""
    return {origin: from_origin(graph, origin) for origin in graph.places}
