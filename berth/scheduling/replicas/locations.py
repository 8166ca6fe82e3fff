"""Which of many locations are looked at first: those next to what is placed, or else those with others nearby."""

from __future__ import annotations

import numpy as np

from berth.scheduling.replicas.problem import Floats, Ints

CELLS = 2_000_000
"""Costs that are looked at, at most, to find groups of close locations."""
SIZES = (2, 4, 6)
"""Locations of a group: an application may need few or many."""


def in_order(cost: Floats, room: Floats, placed: Floats, most: int) -> list[int]:
    """Locations with room, the promising ones first.

    Args:
        cost: float64[L, L], between locations.
        room: float64[L], what each holds, as a share of all pods.
        placed: float64[L], replicas that have a node.
        most: how many are wanted at most.
    """
    places = np.flatnonzero(room)
    if placed.any():
        return _around(cost, places, int(placed.argmax()))[:most]
    if len(places) <= max(most, SIZES[-1]):
        return _around(cost, places, int(room.argmax()))[:most]
    return _of_groups(cost, room, places, most)


def _around(cost: Floats, places: Ints, center: int) -> list[int]:
    """The center and the others by their distance to it."""
    distance = cost[center] + cost[:, center]
    return sorted(places.tolist(), key=lambda place: (place != center, float(distance[place]), place))


def _of_groups(cost: Floats, room: Floats, places: Ints, most: int) -> list[int]:
    """Half of them around the closest group with room for all pods, the rest from the closest groups of each size."""
    members, apart = _groups(cost, places)
    held = np.minimum(np.cumsum(room[members], axis=1), 1.0)
    needed = 1 + int(np.searchsorted(np.cumsum(np.sort(room[places])[::-1]), 1.0))
    last = min(max(needed, SIZES[0]), SIZES[-1]) - 1
    center = int(members[(apart[:, last] / held[:, last]).argmin(), 0])
    chosen = dict.fromkeys(_around(cost, places, center)[: most // 2])
    ranked = [members[np.argsort(apart[:, size - 1], kind="stable"), :size].tolist() for size in SIZES]
    for groups in zip(*ranked, strict=True):
        chosen.update(dict.fromkeys(place for group in groups for place in group))
        if len(chosen) >= most:
            break
    return list(chosen)[:most]


def _groups(cost: Floats, places: Ints) -> tuple[Ints, Floats]:
    """Of as many places as time allows: each with those nearest to it, nearest first, and the distance to all so far.

    Returns:
        int64[groups, largest size] and float64[groups, largest size].
    """
    step = 1 + len(places) ** 2 // CELLS
    centers = places[::step]
    distance = cost[np.ix_(centers, places)] + cost[np.ix_(places, centers)].T
    distance[np.arange(len(centers)), np.arange(0, len(places), step)] = -1.0
    near = np.argpartition(distance, SIZES[-1] - 1, axis=1)[:, : SIZES[-1]]
    near.sort(axis=1)
    apart = np.take_along_axis(distance, near, axis=1)
    order = np.argsort(apart, axis=1, kind="stable")
    apart = np.maximum(np.take_along_axis(apart, order, axis=1), 0.0)
    return places[np.take_along_axis(near, order, axis=1)], np.cumsum(apart, axis=1)
