"""Zone patterns: in which locations the slices of an application go, the r-th slice into ``pattern[r % len(pattern)]``.

For every location its nearest 1, 2, ... locations, and as many as have room for all slices where few have not; ranked
by an estimate of the objective of complete slices.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence

import numpy as np

from berth.network.routing import Routing
from berth.scheduling.gang.budget import Budget
from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.columns import every_node_its_own
from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.problem import Floats, Ints
from berth.scheduling.replicas.room import room_of
from berth.scheduling.replicas.rule import Affinity, Spread

WIDEST = 6
"""Locations of a pattern at most, where so many have room for an application."""
PIECES = (1, 2, 4, 8, 16)
"""Into how many pieces of one node each a slice may be cut, to tell locations with large nodes from those with small
ones."""
CELLS = 2_000_000
"""Costs between the locations of all patterns of one width at most: 16 MB."""

Pattern = tuple[int, ...]


def patterns(
    books: Books, budget: Budget, rows: Sequence[int], limit: int
) -> Generator[None, None, list[tuple[float, Pattern]]]:
    """The most promising patterns for pod sets that belong together, at most `limit`, and the objective they promise.

    The best one of every width is among them if the limit allows.

    Of patterns that promise the same to the last digit only one: they are the same but for names and for what is free
    in their locations. It is one whose nodes take slices in the fewest pieces, as calls between pieces cost: the room
    of a location may be in many small remainders. Of these it is the one whose fullest location is the emptiest: the
    application will grow there, and others grow where they are.
    """
    model = books.model
    slices = max(model.replicas[row] for row in rows)
    places, base = yield from _by_location(books, budget, rows)
    edges, room = _edges(books, rows), _slices_per_location(books, rows)
    held = _held(books, rows)
    left = _by_place(model, held)
    together = _replicas_on_a_node(books, rows)

    def pieces_of(width: int) -> Ints:
        each = -(-slices // width)
        # In one location alone no workload is to die with a node.
        return _pieces(model, slices * held, each, min(together, -(-each // 2) if width == 1 else each))

    # Of locations that are as far, those come first that are better by themselves.
    places = places[np.lexsort((-left[places], pieces_of(2)[places]))]
    near = _nearest(model.cost, places, min(slices, max(WIDEST, _most(len(places)))))
    found: dict[tuple[int, float], tuple[int, float, Pattern]] = {}
    for width in _widths(near, room, slices):
        members = near[:, :width]
        value = _estimate(books, len(rows), members, slices, edges, base[members], room[members])
        pieces = pieces_of(width)
        ranked: dict[tuple[int, ...], tuple[float, Pattern]] = {}
        for pattern, promise in zip(map(tuple, members.tolist()), value.tolist(), strict=True):
            ranked.setdefault(tuple(sorted(pattern)), (promise, pattern))
        for promise, pattern in ranked.values():
            key = width, round(promise, 6)
            where = list(pattern)
            ranking = int(pieces[where].max()), -float(left[where].min()), pattern
            found[key] = min(ranking, found.get(key, ranking))
        yield from budget.pause()
    in_order = sorted(found, key=lambda key: (key[1], found[key]))
    first: dict[int, tuple[int, float]] = {}
    for key in in_order:
        first.setdefault(key[0], key)
    chosen = list(dict.fromkeys([*first.values(), *in_order]))[:limit]
    return [(key[1], found[key][-1]) for key in chosen]


def _held(books: Books, rows: Sequence[int]) -> Floats:
    """float64[N], how many times each node, column or not, holds the pods."""
    model = books.model
    free = model.problem.nodes.free.copy()
    free[model.columns] = books.free[:, : free.shape[1]]
    return room_of(free, [model.problem.pod_sets[row] for row in rows])


def _by_place(model: Model, amounts: Floats) -> Floats:
    """float64[L], sums over all nodes of each location."""
    nodes = model.problem.nodes
    sums = np.bincount(nodes.location, weights=amounts, minlength=len(nodes.location_cost))[model.places]
    return sums.astype(np.float64, copy=False)


def _replicas_on_a_node(books: Books, rows: Sequence[int]) -> int:
    """How many replicas of a set may share a node before some rule forbids it, or charges for it."""
    model, most, own = books.model, max(books.model.replicas[row] for row in rows), set(rows)
    for rule in model.problem.rules:
        most_here = rule.max_skew if isinstance(rule, Spread) else 1
        if isinstance(rule, Affinity) or most_here >= most:
            continue
        if not own.isdisjoint(set(rule.subjects).intersection(rule.selects)) and every_node_its_own(rule.domain):
            most = most_here
    return most


def _pieces(model: Model, slices: Floats, wanted: int, together: int) -> Ints:
    """int64[L], into how many pieces slices are cut where so many of them go to each location, roughly.

    Args:
        model: the locations.
        slices: float64[N], how many each node holds.
        wanted: how many are to be held.
        together: replicas of a set that one node is to have at most.
    """
    pieces = np.full(model.locations, 2 * PIECES[-1])
    for count in PIECES:
        held = np.minimum(np.floor(count * slices + 1e-9), count * together)
        fits = _by_place(model, held) >= count * wanted
        pieces[fits] = np.minimum(pieces[fits], count)
        if fits.all():
            break  # as in most clusters, at once
    return pieces


def _by_location(books: Books, budget: Budget, rows: Sequence[int]) -> Generator[None, None, tuple[Ints, Floats]]:
    """Locations that take a pod of some set, int64[P], and what the pods cost there at least, float64[L]."""
    model = books.model
    order = np.argsort(model.location, kind="stable")
    here = model.location[order]
    start = np.flatnonzero(np.append(True, here[1:] != here[:-1])) if len(here) else order
    inside: Floats = np.zeros(len(start))
    open_to = np.zeros(len(start), dtype=np.bool_)
    for row in rows:
        if len(start):
            least = np.minimum.reduceat(books.add(row)[order], start)
            able = np.isfinite(least)
            open_to |= able
            inside += model.replicas[row] * np.where(able, least, model.penalty)
        yield from budget.pause()
    total: Floats = np.full(model.locations, model.penalty * sum(model.replicas[row] for row in rows))
    total[here[start]] = inside
    return here[start][open_to], total


def _nearest(cost: Floats, places: Ints, width: int) -> Ints:
    """int64[P, width]: each place and those nearest to it, nearest first, and of those as near in the given order."""
    distance = (cost[np.ix_(places, places)] + cost[np.ix_(places, places)].T) / 2
    np.fill_diagonal(distance, -1.0)
    nearest: Ints = places[np.argsort(distance, axis=1, kind="stable")[:, :width]]
    return nearest


def _most(places: int) -> int:
    """Locations of a pattern at most, where each of so many is the first of one."""
    return math.isqrt(CELLS // max(1, places))


def _widths(near: Ints, room: Floats, slices: int) -> list[int]:
    """How many locations patterns have: few, and where none of these has room for all slices, as many as it takes."""
    few = list(range(1, min(near.shape[1], WIDEST) + 1))
    if not near.size:
        return few
    # Slices are spread evenly, so that the one with the least room says how many.
    fits = np.minimum.accumulate(room[near], axis=1) * np.arange(1, near.shape[1] + 1) >= slices
    able = np.flatnonzero(fits.any(axis=0))
    return [*few, int(able[0]) + 1] if len(able) and able[0] >= WIDEST else few


def _edges(books: Books, rows: Sequence[int]) -> float:
    """What a unit of distance between slices costs all calls of the pod sets."""
    model, prices = books.model, books.model.problem.prices
    shares = [
        1.0 if model.targets[number].routing is Routing.ALL else prices.failover
        for workload in dict.fromkeys(model.workload[row] for row in rows)
        for number in model.calls[workload]
    ]
    return prices.network * sum(shares)


def _slices_per_location(books: Books, rows: Sequence[int]) -> Floats:
    """float64[L], roughly how many complete slices have room in each location."""
    model = books.model
    need = model.request[rows].sum(axis=0).astype(np.float64)
    asked = need > 0
    if not asked.any():
        return np.full(model.locations, np.inf)
    room: Floats = (model.incidence.T @ np.maximum(books.free[:, asked], 0) / need[asked]).min(axis=1)
    return room


def _estimate(books: Books, sets: int, members: Ints, slices: int, edges: float, base: Floats, room: Floats) -> Floats:
    """float64[P]: objective of complete slices spread evenly over each pattern.

    Args:
        books: costs and prices.
        sets: number of pod sets.
        members: int64[P, width], locations of each pattern.
        slices: how many are spread.
        edges: what a unit of distance costs.
        base: float64[P, width], what a slice costs by itself.
        room: float64[P, width], slices that fit.
    """
    model, width = books.model, members.shape[1]
    counts = np.array([len(range(j, slices, width)) for j in range(width)], dtype=np.float64)
    share = counts / slices
    block = model.cost[members[:, :, None], members[:, None, :]]
    together = np.diagonal(block, axis1=1, axis2=2) @ (share * share) / max(1.0, float(counts.max()))
    total: Floats = edges * ((block @ share) @ share - together) + base @ share
    if width == 1 and slices > 1:
        total += model.problem.prices.survive_zone * sets
    total += model.penalty * np.maximum(counts - room, 0.0).sum(axis=1)
    return total
