"""Time of all cheapest paths: between zones that have all been measured, and where there are too many places."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

from controllers.networktopology import dijkstra
from controllers.networktopology.algorithms import cheapest_paths
from controllers.networktopology.graph import CostGraph, Steps, TooManyPlacesError

SAMPLE = 50
"""Origins whose paths are timed where those of all would take too long."""


@dataclass(frozen=True, slots=True)
class PathsResult:
    """One graph; times are of the processor."""

    places: int
    """places of the graph"""
    links: int
    """links of the graph"""
    computed: bool
    """whether its paths are computed, or are too many"""
    spent: float
    """milliseconds until they are known, or are known to be too many"""
    every: float
    """milliseconds that Dijkstra's algorithm takes for all origins, reckoned from :data:`SAMPLE` of them"""


def graph(places: int, links: int, *, seed: int) -> CostGraph:
    """Return a graph with random links of 0.3 to 80 ms."""
    draw = random.Random(seed)
    names = [f"place-{number:05}" for number in range(places)]
    found: dict[tuple[str, str], int] = {}
    while len(found) < links:
        origin, destination = draw.sample(names, 2)
        found[origin, destination] = draw.randint(300, 80_000)
    return CostGraph(found)


def measure(places: int, links: int, *, seed: int) -> PathsResult:
    """Measure one graph."""
    made = graph(places, links, seed=seed)
    begun = time.process_time()
    computed = True
    try:
        for _ in cheapest_paths(made):
            pass
    except TooManyPlacesError:
        computed = False
    spent = time.process_time() - begun
    sample = made.places[:: max(1, places // SAMPLE)]
    begun = time.process_time()
    for origin in sample:
        dijkstra.from_origin(made, origin, Steps())
    every = (time.process_time() - begun) * places / len(sample)
    return PathsResult(places, links, computed, 1000 * spent, 1000 * every)
