"""Sets of few pods as arrays: bit p of a set's number stands for pod p."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from berth.scheduling.interference.assignment import EXACT_PODS
from berth.scheduling.interference.closeness import closeness

Floats = npt.NDArray[np.float64]


@lru_cache(EXACT_PODS + 1)
def sets_of(pods: int) -> Floats:
    """float64[2**P, P], 1 where a set has a pod."""
    return np.array([[number >> pod & 1 for pod in range(pods)] for number in range(1 << pods)], dtype=np.float64)


def sockets_of(capacities: Sequence[int], caches: Sequence[int]) -> list[tuple[int, int]]:
    """Capacity and number of caches of each socket."""
    return list(zip(capacities, caches or (1,) * len(capacities), strict=True))


def weights_of(sets: Floats, spanning: Sequence[bool], caches: int) -> Floats:
    """float64[2**P, 1], what the excess of a pair counts in each set of pods on a socket."""
    by_count = np.array([closeness(caches, count) for count in range(len(spanning) + 1)])
    found: Floats = by_count[sets.sum(axis=1).astype(np.int64)]
    found[sets @ np.array(spanning, dtype=np.float64) > 0] = 1.0
    return found[:, None]
