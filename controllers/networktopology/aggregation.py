"""From samples between nodes to costs between zones or regions.

The cost of a pair of places is the median of all samples from a node of the one to a node of the other: half of
the node pairs are at most that far apart, and a single broken link does not move it. For an even number of samples
it is the mean of the two in the middle. It is rounded up to whole milliseconds and is at least 1, because 1 is what
it costs to stay inside a zone (NetworkOverhead's rule) and leaving it is never cheaper. Directions stay apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from controllers.networktopology.sources.base import Measurement

MINIMUM_COST: Final = 1
"""Least cost between two different places."""

Pair = tuple[str, str]
"""Origin and destination."""


def aggregate(measurements: Iterable[Measurement], place_of: Callable[[str], str]) -> dict[Pair, int]:
    """Return the cost of every ordered pair of different places that has a sample, sorted by pair.

    Args:
        measurements: samples between nodes.
        place_of: place of a node, empty when it has none; such samples and those inside one place are left out.
    """
    samples: dict[Pair, list[int]] = {}
    for origin, destination, milliseconds in measurements:
        start, end = place_of(origin), place_of(destination)
        if start and end and start != end:
            samples.setdefault((start, end), []).append(milliseconds)
    return {pair: median_cost(values) for pair, values in sorted(samples.items())}


def median_cost(samples: list[int]) -> int:
    """Return the median of ``samples``, rounded up to a whole number and to at least 1.

    Raises:
        ValueError: there are no samples.
    """
    if not samples:
        raise ValueError("no samples: the median of nothing is unknown, not 0")
    ordered = sorted(samples)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return max(MINIMUM_COST, -((low + high) // -2))
