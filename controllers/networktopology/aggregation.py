"""From figures between nodes to figures between regions, zones or segments, whatever their unit.

The figure of a pair of places is the median of all samples from a node of the one to a node of the other: half of
the node pairs are at most that far apart, and a single broken link does not move it. For an even number of samples
it is the mean of the two in the middle. It is rounded up, and is at least 1. Directions stay apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from controllers.networktopology.places import Places
from controllers.networktopology.scale import MINIMUM_COST

Pair = tuple[str, str]
"""Origin and destination."""
_Sample = TypeVar("_Sample", bound=tuple[Any, ...])


def aggregate(samples: Iterable[tuple[str, str, int]], place_of: Callable[[str], str]) -> dict[Pair, int]:
    """Return the median of every ordered pair of different places that has a sample, sorted by pair.

    Args:
        samples: origin, destination and figure of each.
        place_of: place of a node, empty when it has none; such samples and those inside one place are left out.
    """
    figures: dict[Pair, list[int]] = {}
    for origin, destination, figure in samples:
        start, end = place_of(origin), place_of(destination)
        if start and end and start != end:
            figures.setdefault((start, end), []).append(figure)
    return {pair: median_cost(values) for pair, values in sorted(figures.items())}


def inside_zones(samples: Iterable[_Sample], places: Places) -> list[_Sample]:
    """Return the samples whose ends are in segments of one zone: what lies between zones is theirs.

    Args:
        samples: each begins with the nodes of its origin and destination.
        places: where nodes are.
    """
    return [item for item in samples if places.share_zone(item[0], item[1])] if places.segments else []


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
