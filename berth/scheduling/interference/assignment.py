"""The best assignment of pods to sockets: exact for few pods, improved part by part for many.

Nothing costs more than the pods of each socket together: that a pod moves inside its node is free.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import combinations, pairwise
from math import inf
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

EXACT_PODS: Final = 8
"""Pods up to which every assignment is looked at; each one more takes three times as long."""
_PARTS: Final = (2, 3)
"""Sockets whose pods are assigned anew together, in turn, where there are more pods."""

_ROUNDING: Final = 1e-9
"""Sums differ in their last places by the order of their parts."""

_GRAIN: Final = 1e-12
"""Costs that differ by less are the same."""
_DEAR: Final = 1e5
"""Costs above count as this."""
_NEVER: Final = 1 << 60

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


def cheapest(pods: int, costs: Sequence[Floats]) -> Assignment | None:
    """Return the assignment of all pods that costs least; None where there is none.

    Args:
        pods: P, the number of pods.
        costs: for each socket float64[2**P], cost of each set of pods on it, infinite where they do not fit; bit p of a
            set's number stands for pod p.
    """
    sets, left = _sets(pods), (1 << pods) - 1
    # Whole numbers: sums of the same parts in another order are the same, and so is what is chosen of two alike.
    distinct = {id(cost): _in_grains(cost) for cost in costs}
    whole = [distinct[id(cost)] for cost in costs]
    # What each set costs on the sockets before each. Those before the first take nobody, and those before the second
    # are the first; what all together take of other sets than everybody is not asked.
    steps = [np.where(np.arange(1 << pods) == 0, 0, _NEVER), *whole[:1]][: len(whole)]
    for before, cost in pairwise(whole[:-1]):
        if cost is before and (steps[-1] == steps[-2]).all():
            steps.append(steps[-1])  # another socket like the last two is of no use to any set
            continue
        least = np.minimum.reduceat(steps[-1][sets.placed] + cost[sets.added], sets.begins)
        steps.append(np.where(least < _NEVER // 2, least, _NEVER))
    chosen: list[int] = []
    for so_far, cost in zip(reversed(steps), reversed(whole), strict=True):
        begin, end = sets.begins[left], sets.begins[left] + (1 << left.bit_count())
        at = begin + int(np.argmin(so_far[sets.placed[begin:end]] + cost[sets.added[begin:end]]))
        chosen.insert(0, int(sets.added[at]))
        left = int(sets.placed[at])
    total = sum(float(cost[group]) for cost, group in zip(costs, chosen, strict=True))
    if left or total == inf:
        return None
    return Assignment(total, tuple(members(group, pods) for group in chosen))


def _in_grains(cost: Floats) -> Ints:
    found: Ints = np.rint(np.minimum(np.maximum(cost, -_DEAR), _DEAR) / _GRAIN).astype(np.int64)
    found[~np.isfinite(cost)] = _NEVER
    return found


@lru_cache(sum(1 << pods for pods in range(EXACT_PODS + 1)))
def members(number: int, pods: int) -> tuple[int, ...]:
    """Return the pods of a set."""
    return tuple(pod for pod in range(pods) if number >> pod & 1)


class _Sets(NamedTuple):
    """All ways to make each set of pods of two, those of one set after the other."""

    begins: Ints
    """int64[2**P], where those of each set begin"""
    placed: Ints
    """int64[3**P], one part, ascending"""
    added: Ints
    """int64[3**P], the other"""


@lru_cache(EXACT_PODS + 1)
def _sets(pods: int) -> _Sets:
    parts = [[part for part in range(whole + 1) if part & ~whole == 0] for whole in range(1 << pods)]
    begins = np.cumsum([0, *map(len, parts[:-1])])
    placed = np.concatenate([np.array(each, dtype=np.int64) for each in parts])
    return _Sets(begins, placed, np.repeat(np.arange(1 << pods), [len(each) for each in parts]) - placed)


def _exact(
    pods: Sequence[int], sizes: Sequence[int], sockets: Sequence[int], capacities: Sequence[int], cost: SocketCost
) -> Assignment | None:
    groups = [tuple(pods[at] for at in members(number, len(pods))) for number in range(1 << len(pods))]
    taken = [sum(sizes[pod] for pod in group) for group in groups]
    found = cheapest(
        len(pods),
        [
            np.array(
                [
                    cost(group, socket) if size <= capacities[socket] else inf
                    for group, size in zip(groups, taken, strict=True)
                ]
            )
            for socket in sockets
        ],
    )
    if found is None:
        return None
    return Assignment(found.cost, tuple(tuple(pods[at] for at in group) for group in found.sockets))


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
