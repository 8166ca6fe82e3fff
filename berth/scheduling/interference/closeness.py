"""How close pods on one socket are: two beside one cache disturb each other more than two beside several.

What a pair of workloads does to each other is known of two on one socket that share its last-level cache. Where a
socket has several such caches and its node's agent keeps pods apart in them, two in different caches still share the
way to the memory: what they do to each other counts by half then.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

ACROSS_CACHES: Final = 0.5
"""What the excess of a pair counts that shares the socket and no cache, of 1 that it counts in one cache.

An assumption, not measured here. Zhuravlev, Blagodurov and Fedorova (ASPLOS 2010) find that contention for memory
controller, bus and prefetcher makes pods at least as slow as that for the cache: no less than half is left.
"""


@lru_cache(1 << 14)
def closeness(caches: int, pods: int) -> float:
    """Return what the excess of a pair counts on average, of pods that are dealt evenly to the caches of a socket.

    The agent deals them by who disturbs whom, so that it is rather less.

    Args:
        caches: last-level caches of the socket that pods are kept apart in.
        pods: pods on the socket.
    """
    if caches <= 1 or pods <= 1:
        return 1.0
    each, more = divmod(pods, caches)
    meeting = caches * each * (each - 1) + 2 * more * each
    return ACROSS_CACHES + (1 - ACROSS_CACHES) * meeting / (pods * (pods - 1))


def spans(size: int, capacity: int, caches: int) -> bool:
    """Return whether a pod is too large for a cache, so that it has all of the socket and shares each with others.

    Args:
        size: thousandths of a CPU that it requests.
        capacity: thousandths of a CPU of the socket, of which each cache has the same.
        caches: last-level caches of the socket that pods are kept apart in.
    """
    return caches > 1 and size * caches > capacity


def closeness_of(sizes: Sequence[int], capacity: int, caches: int) -> float:
    """Return what the excess of a pair counts on average, of pods on one socket; 1 beside one that spans its caches."""
    if caches <= 1 or any(spans(size, capacity, caches) for size in sizes):
        return 1.0
    return closeness(caches, len(sizes))


class Caches:
    """The caches of a socket: what pairs of pods on it count, the fewer the pods the less."""

    def __init__(self, count: int, spanning: Sequence[bool]) -> None:
        """Know the socket.

        Args:
            count: last-level caches that pods are kept apart in.
            spanning: for each of W pods, whether it is too large for one.
        """
        self._count, self._spanning = count, np.array(spanning, dtype=np.bool_)

    def weights(self, pods: Sequence[int]) -> Floats:
        """float64[1 + W], what the excess of a pair counts with each pod beside some others, by number; 0 is nobody."""
        found = np.ones(1 + len(self._spanning))
        if self._count > 1 and not self._spanning[list(pods)].any():
            found[0] = closeness(self._count, len(pods))
            found[1:][~self._spanning] = closeness(self._count, len(pods) + 1)
        return found
