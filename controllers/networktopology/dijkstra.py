"""Dijkstra's algorithm: cheapest paths over links whose costs are not negative.

Source: E. W. Dijkstra, "A note on two problems in connexion with graphs", Numerische Mathematik 1 (1959), with a
binary heap. All pairs take O(V (E + V) log V) for V places and E links.
"""

from __future__ import annotations

from heapq import heappop, heappush

from controllers.networktopology.graph import CostGraph, PathCosts, Steps


def from_origin(graph: CostGraph, origin: str, steps: Steps) -> dict[str, int]:
    """Return the cost of the cheapest path from ``origin`` to every other place that it reaches.

    Raises:
        TooManyPlacesError: ``steps`` has none left.
    """
    final: dict[str, int] = {}
    heap: list[tuple[int, str]] = [(0, origin)]
    best = {origin: 0}
    while heap:
        cost, place = heappop(heap)
        if place in final:
            continue
        final[place] = cost
        links = graph.links_from(place)
        steps.take(1 + len(links))
        for neighbour, step in links.items():
            total = cost + step
            known = best.get(neighbour)
            if known is None or total < known:
                best[neighbour] = total
                heappush(heap, (total, neighbour))
    del final[origin]
    return final


def all_pairs(graph: CostGraph) -> PathCosts:
    """Yield every place with the cheapest paths' costs to those that it reaches.

    Raises:
        TooManyPlacesError: there are more paths than are looked for.
    """
    steps = Steps()
    for origin in graph.places:
        yield origin, from_origin(graph, origin, steps)
