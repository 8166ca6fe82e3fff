"""Costs as figures of arrays: which width no sum of two overflows, and rows of an array as paths' costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from controllers.networktopology.graph import CostGraph

Costs = npt.NDArray[np.signedinteger[Any]]
"""int32 or int64"""
_NO_PATH: Final = 2**61
_NO_SHORT_PATH: Final = 2**30 - 1
"""Where all paths are shorter, no sum of two figures is wider than 32 bits; these take half of the time and memory, and
latencies are no longer."""


def no_path(graph: CostGraph) -> int | None:
    """Return a figure above the cost of every path, twice which a sum can hold; None where there is none."""
    longest = max((cost for _, _, cost in graph.links()), default=0) * len(graph.places)
    return next((limit for limit in (_NO_SHORT_PATH, _NO_PATH) if longest < limit), None)


def filled(rows: int, columns: int, figure: int) -> Costs:
    """Return an array of a figure of :func:`no_path`, as narrow as that allows."""
    return np.full((rows, columns), figure, dtype=np.int32 if figure <= _NO_SHORT_PATH else np.int64)


def paths(
    origins: Sequence[str], places: Sequence[str], costs: Costs, figure: int
) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield every origin with the costs to the places that it reaches.

    Args:
        origins: by row.
        places: by column.
        costs: [origins, places]; that of a place to itself is not looked at.
        figure: what stands where there is no path.
    """
    for index, origin in enumerate(origins):
        row = costs[index]
        ends = np.flatnonzero(row < figure)
        # Of many places, few may be reached; where all are, their names need not be picked.
        names = places if len(ends) == len(places) else [places[end] for end in ends.tolist()]
        reached = dict(zip(names, row[ends].tolist(), strict=True))
        reached.pop(origin, None)
        yield origin, reached
