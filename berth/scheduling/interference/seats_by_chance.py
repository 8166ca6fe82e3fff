"""What pods cost on a node where nobody pins them: the kernel puts each on any socket.

Each has the same chance, of all ways in which as many are on a socket as it has room for. Who is beside whom is not the
best pairing then, nor is each pair together for a part of the time: it is together or it is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import comb, erfc, sqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from berth.scheduling.interference.slowdown import STEPS

Floats = npt.NDArray[np.float64]
MUCH: Final = 1 << 20
"""Pods that a socket has room for where nobody knows, or they take nothing."""
_ROUNDING: Final = 1e-9
"""Sums differ in their last places by the order of their parts: one that is just at a limit must not be above it."""


def room_for(sizes: Sequence[int], capacities: Sequence[int]) -> int:
    """Return how many pods a socket has room for, by their mean size and its; at least all where they do not fit so.

    Args:
        sizes: what each takes.
        capacities: what each socket has, in the same unit; none: nobody knows.
    """
    pods, taken, sockets = len(sizes), sum(sizes), len(capacities)
    if not sockets or not taken:
        return MUCH
    found = pods * sum(capacities) // (sockets * taken)
    return found if found * sockets >= pods else pods


@lru_cache(1 << 12)
def loads(pods: int, room: int, sockets: int) -> Floats:
    """float64[1 + P], how likely it is that 0, 1 .. P of the pods are on a socket.

    Args:
        pods: pods of the node, P.
        room: pods that a socket has room for; all sockets together have room for all.
        sockets: how many sockets there are.
    """
    counts = np.arange(pods + 1)
    mean = pods / sockets
    # A number by chance for each socket, and of these only what adds up: any mean will do, and this one loses least.
    logs = np.cumsum(np.append(0.0, np.log(mean / counts[1:])))
    one = np.where(counts <= room, np.exp(logs - logs.max()), 0.0)
    one /= one.sum()
    others = (counts == 0).astype(np.float64)
    for _ in range(sockets - 1):
        others = np.convolve(others, one)[: pods + 1]
    ways: Floats = one * others[::-1]
    ways /= ways.sum()
    return ways


def together(pods: int, room: int, sockets: int) -> float:
    """Return how likely it is that two pods are on one socket; arguments as those of `loads`."""
    if pods < 2:
        return 1 / sockets
    counts = np.arange(pods + 1)
    return float(sockets * (loads(pods, room, sockets) @ (counts * (counts - 1))) / (pods * (pods - 1)))


def alone(pods: int, room: int, sockets: int) -> float:
    """Return how likely it is that a pod has a socket to itself; arguments as those of `loads`."""
    return float(sockets * loads(pods, room, sockets)[1] / pods)


def expected_cost(by_set: Floats, pods: int, room: int, sockets: int) -> float:
    """Return what pods cost on all sockets together.

    Args:
        by_set: float64[2**P], what each set of pods costs on a socket; bit p of its number stands for pod p.
        pods: pods of the node, P.
        room: as for `loads`.
        sockets: how many sockets there are.
    """
    return float(sockets * (by_set @ _chances(pods, room, sockets)))


@lru_cache(1 << 8)
def _chances(pods: int, room: int, sockets: int) -> Floats:
    """float64[2**P], how likely it is that just these pods are on a socket."""
    by_count = loads(pods, room, sockets) / [comb(pods, count) for count in range(pods + 1)]
    found: Floats = by_count[[number.bit_count() for number in range(1 << pods)]]
    return found


def expected_harm(excess: Floats, meeting: float) -> float:
    """Return about what many pods suffer from each other: what each suffers is taken as normally distributed.

    Args:
        excess: float64[P, P], what the pod of the row suffers beside that of the column, 0 beside itself.
        meeting: how likely it is that two are on one socket.
    """
    means, variances = meeting * excess.sum(axis=1), meeting * (1 - meeting) * (excess**2).sum(axis=1)
    return float(means.sum()) + sum(
        step * _above(limit - 1, mean, sqrt(variance))
        for mean, variance in zip(means.tolist(), variances.tolist(), strict=True)
        for limit, step in STEPS
    )


def _above(limit: float, mean: float, deviation: float) -> float:
    """How likely a value is that is above a limit."""
    if deviation <= _ROUNDING:
        return float(mean > limit + _ROUNDING)
    return erfc((limit - mean) / (deviation * sqrt(2))) / 2
