"""How close pods on one socket are: two beside one cache disturb each other more than two beside several.

What a pair of workloads does to each other is known of two on one socket that share its last-level cache. Where a
socket has several such caches and its node's agent keeps pods apart in them, two in different caches still share the
way to the memory: what they do to each other counts by half then. Where pods need more cores than the socket has, some
meet on the SMT siblings of a core, and that counts twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

ACROSS_CACHES: Final = 0.5
"""What the excess of a pair counts that shares the socket and no cache, of 1 that it counts in one cache.

An assumption, not measured here. Zhuravlev, Blagodurov and Fedorova (ASPLOS 2010) find that contention for memory
controller, bus and prefetcher makes pods at least as slow as that for the cache: no less than half is left.
"""


ON_ONE_CORE: Final = 2.0
"""What the excess of a pair counts that shares a core, of 1 that it counts in one cache.

An assumption, not measured here, and little to claim: two programs on the siblings of one core do about 1.2 times the
work of one (Tuck and Tullsen, PACT 2003, SPEC CPU2000), so that each takes some 1.7 times as long as alone.
"""
MILLI: Final = 1000
"""Thousandths of a CPU in one."""


class Need(NamedTuple):
    """What a pod takes on a socket, as far as it matters to who meets whom."""

    spanning: bool = False
    """whether it is too large for a cache"""
    cpus: int = 1
    """CPUs that it keeps busy"""
    cores: int = 1
    """cores that it has to itself where it shares none"""


@lru_cache(1 << 12)
def need_of(size: int, capacity: int, caches: int, cores: int) -> Need:
    """Return what a pod takes on a socket.

    Args:
        size: thousandths of a CPU that it requests.
        capacity: thousandths of a CPU of the socket.
        caches: last-level caches of the socket that pods are kept apart in.
        cores: its cores, where some have SMT siblings; 0: none has, or nobody knows.
    """
    wide = spans(size, capacity, caches)
    if not cores:
        return Need(wide)
    siblings = max(1, capacity // (MILLI * cores))
    return Need(wide, max(1, -(-size // MILLI)), max(1, -(-size // (MILLI * siblings))))


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
    return ACROSS_CACHES + (1 - ACROSS_CACHES) * _meeting(caches, pods) / (pods * (pods - 1))


@lru_cache(1 << 14)
def on_siblings(cores: int, pods: int, needed: int, busy: int) -> float:
    """Return what the excess of a pair counts more, on average, because pods meet on siblings of one core.

    Nothing while each can have cores of its own: the agent gives them to those that disturb each other. Otherwise all
    share them, and what they keep busy is on the cores as if it were dealt evenly.

    Args:
        cores: cores of the socket, where some have SMT siblings; 0: none has, or nobody knows.
        pods: pods on the socket.
        needed: cores that they have to themselves together where they share none.
        busy: CPUs that they keep busy together.
    """
    if not cores or needed <= cores or pods <= 1:
        return 0.0
    return (ON_ONE_CORE - 1) * min(1.0, _meeting(cores, busy) / (pods * (busy - 1)))


def _meeting(places: int, each: int) -> int:
    """How often one of some that are dealt evenly to places is with another."""
    least, more = divmod(each, places)
    return places * least * (least - 1) + 2 * more * least


def spans(size: int, capacity: int, caches: int) -> bool:
    """Return whether a pod is too large for a cache, so that it has all of the socket and shares each with others.

    Args:
        size: thousandths of a CPU that it requests.
        capacity: thousandths of a CPU of the socket, of which each cache has the same.
        caches: last-level caches of the socket that pods are kept apart in.
    """
    return caches > 1 and size * caches > capacity


def closeness_of(sizes: Sequence[int], capacity: int, caches: int, cores: int = 0) -> float:
    """Return what the excess of a pair counts on average, of pods on one socket; in one cache beside one that spans."""
    if caches <= 1 and not cores:
        return 1.0
    needs = [need_of(size, capacity, caches, cores) for size in sizes]
    found = 1.0 if any(need.spanning for need in needs) else closeness(caches, len(needs))
    return found + on_siblings(cores, len(needs), sum(need.cores for need in needs), sum(need.cpus for need in needs))


class Caches:
    """The caches and cores of a socket: what pairs of pods on it count, the fewer the pods the less."""

    def __init__(self, count: int, needs: Sequence[Need], cores: int = 0) -> None:
        """Know the socket.

        Args:
            count: last-level caches that pods are kept apart in.
            needs: what each of W pods takes there.
            cores: cores of the socket, where some have SMT siblings; 0: none has, or nobody knows.
        """
        self._count, self._cores = count, cores
        self._spanning = np.array([need.spanning for need in needs], dtype=np.bool_)
        self._needs = needs

    def weights(self, pods: Sequence[int]) -> Floats:
        """float64[1 + W], what the excess of a pair counts with each pod beside some others, by number; 0 is nobody."""
        found = np.ones(1 + len(self._spanning))
        if self._count > 1 and not self._spanning[list(pods)].any():
            found[0] = closeness(self._count, len(pods))
            found[1:][~self._spanning] = closeness(self._count, len(pods) + 1)
        if self._cores:
            needed, busy = (sum(self._needs[pod][field] for pod in pods) for field in (2, 1))
            found[0] += on_siblings(self._cores, len(pods), needed, busy)
            found[1:] += [
                on_siblings(self._cores, len(pods) + 1, needed + each.cores, busy + each.cpus) for each in self._needs
            ]
        return found
