"""Pods and sockets as costs know them, and sets of few pods as arrays: bit p of a set's number stands for pod p."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from berth.scheduling.interference.assignment import EXACT_PODS
from berth.scheduling.interference.closeness import Need, closeness, need_of, on_siblings
from berth.scheduling.interference.slowdown import Workload

Floats = npt.NDArray[np.float64]


@lru_cache(EXACT_PODS + 1)
def sets_of(pods: int) -> Floats:
    """float64[2**P, P], 1 where a set has a pod."""
    return np.array([[number >> pod & 1 for pod in range(pods)] for number in range(1 << pods)], dtype=np.float64)


class Party(NamedTuple):
    """A pod on a socket, as far as it matters to what pods cost there."""

    pod: Workload
    """what the model knows it by"""
    priced: bool = False
    """whether it has a price there alone"""
    need: Need = Need()
    """what it takes there"""


class Socket(NamedTuple):
    """A socket, as far as it matters to what pods cost there."""

    capacity: int
    """what it has, in the unit of the pods' sizes"""
    caches: int
    """last-level caches that pods are kept apart in"""
    cores: int
    """its cores, where some have SMT siblings; otherwise 0"""

    def need_of(self, size: int) -> Need:
        """Return what a pod takes there."""
        return need_of(size, *self)


def sockets_of(capacities: Sequence[int], caches: Sequence[int], cores: Sequence[int]) -> list[Socket]:
    """Return the sockets; no caches are one each, no cores are none with siblings."""
    count = len(capacities)
    return list(map(Socket, capacities, caches or (1,) * count, cores or (0,) * count))


def weights_of(sets: Floats, needs: Sequence[Need], socket: Socket) -> Floats:
    """float64[2**P, 1], what the excess of a pair counts in each set of pods on a socket."""
    counts = sets.sum(axis=1).astype(np.int64)
    found: Floats = np.array([closeness(socket.caches, count) for count in range(len(needs) + 1)])[counts]
    found[sets @ np.array([need.spanning for need in needs], dtype=np.float64) > 0] = 1.0
    if socket.cores:
        needed, busy = (sets @ np.array([need[field] for need in needs], dtype=np.float64) for field in (2, 1))
        for number in np.flatnonzero(needed > socket.cores).tolist():
            found[number] += on_siblings(socket.cores, int(counts[number]), int(needed[number]), int(busy[number]))
    return found[:, None]
