"""The Bellman-Ford algorithm: cheapest paths by relaxing every link until nothing changes.

Source: R. Bellman, "On a routing problem", Quarterly of Applied Mathematics 16 (1958). Costs here are never
negative, so the rounds end after at most V - 1 of them; one place takes O(V E).
"""

from __future__ import annotations

from controllers.networktopology.graph import CostGraph, PathCosts, Steps


def all_pairs(graph: CostGraph) -> PathCosts:
    """Yield every place with the cheapest paths' costs to those that it reaches.

    Raises:
        TooManyPlacesError: there are more paths than are looked for.
    """
    links, steps = list(graph.links()), Steps()
    for origin in graph.places:
        yield origin, _relax(origin, links, steps)


def _relax(origin: str, links: list[tuple[str, str, int]], steps: Steps) -> dict[str, int]:
    best = {origin: 0}
    changed = True
    while changed:
        changed = False
        steps.take(1 + len(links))
        for start, end, step in links:
            so_far = best.get(start)
            if so_far is None:
                continue
            known = best.get(end)
            if known is None or so_far + step < known:
                best[end] = so_far + step
                changed = True
    del best[origin]
    return best
