"""The best assignment of pods to sockets: exact for few pods, improved part by part for many.

Nothing costs more than the pods of each socket together: that a pod moves inside its node is free.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from math import inf
from typing import Final, NamedTuple

EXACT_PODS: Final = 8
"""Pods up to which every assignment is looked at; each one more takes three times as long."""
_PARTS: Final = (2, 3)
"""Sockets whose pods are assigned anew together, in turn, where there are more pods."""

_ROUNDING: Final = 1e-9
"""Sums differ in their last places by the order of their parts."""

SocketCost = Callable[[tuple[int, ...], int], float]
"""Cost of pods, by number, ascending, on a socket; 0 of none."""


class Assignment(NamedTuple):
    """Where all pods go."""

    cost: float
    """sum over sockets"""
    sockets: tuple[tuple[int, ...], ...]
    """numbers of the pods on each socket"""


def best_assignment(sizes: Sequence[int], capacities: Sequence[int], cost: SocketCost) -> Assignment | None:
    """Return the assignment of all pods that costs least; None where they do not fit, or seem not to.

    Up to `EXACT_PODS` pods it is the best. Of more, no two or three sockets with at most so many pods can do better
    among themselves.

    Args:
        sizes: what each pod takes, such as thousandths of a CPU.
        capacities: what each socket has, in the same unit.
        cost: cost of the pods on one socket.
    """
    if len(sizes) <= EXACT_PODS:
        return _exact(range(len(sizes)), sizes, range(len(capacities)), capacities, cost)
    found = _first(sizes, capacities, cost)
    return None if found is None else _improved(found, sizes, capacities, cost)


def _exact(
    pods: Sequence[int], sizes: Sequence[int], sockets: Sequence[int], capacities: Sequence[int], cost: SocketCost
) -> Assignment | None:
    everybody = (1 << len(pods)) - 1
    members = [tuple(pod for at, pod in enumerate(pods) if mask >> at & 1) for mask in range(everybody + 1)]
    taken = [sum(sizes[pod] for pod in group) for group in members]
    best: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
    for socket in sockets:
        fits = [(mask, cost(group, socket)) for mask, group in enumerate(members) if taken[mask] <= capacities[socket]]
        extended: dict[int, tuple[float, tuple[int, ...]]] = {}
        for placed, (before, masks) in best.items():
            for mask, added in fits:
                if mask & placed == 0 and before + added < extended.get(mask | placed, (inf,))[0]:
                    extended[mask | placed] = (before + added, (*masks, mask))
        best = extended
    if everybody not in best:
        return None
    total, chosen = best[everybody]
    return Assignment(total, tuple(members[mask] for mask in chosen))


def _first(sizes: Sequence[int], capacities: Sequence[int], cost: SocketCost) -> list[tuple[int, ...]] | None:
    groups: list[tuple[int, ...]] = [()] * len(capacities)
    room = list(capacities)
    for pod in sorted(range(len(sizes)), key=lambda pod: -sizes[pod]):
        added = {
            socket: cost(tuple(sorted((*groups[socket], pod))), socket) - cost(groups[socket], socket)
            for socket in range(len(capacities))
            if sizes[pod] <= room[socket]
        }
        if not added:
            return None
        socket = min(added, key=lambda socket: (added[socket], -room[socket], socket))
        groups[socket] = tuple(sorted((*groups[socket], pod)))
        room[socket] -= sizes[pod]
    return groups


def _improved(
    groups: list[tuple[int, ...]], sizes: Sequence[int], capacities: Sequence[int], cost: SocketCost
) -> Assignment:
    parts = [part for count in _PARTS for part in combinations(range(len(groups)), count)]
    settled = 0
    while settled < len(parts):
        for part in parts:
            pods = [pod for socket in part for pod in groups[socket]]
            better = _exact(pods, sizes, part, capacities, cost) if len(pods) <= EXACT_PODS else None
            before = sum(cost(groups[socket], socket) for socket in part)
            if better is None or better.cost > before - _ROUNDING:
                settled += 1
            else:
                settled = 0
                for socket, members in zip(part, better.sockets, strict=True):
                    groups[socket] = tuple(sorted(members))
            if settled == len(parts):
                break
    return Assignment(sum(cost(group, socket) for socket, group in enumerate(groups)), tuple(groups))
