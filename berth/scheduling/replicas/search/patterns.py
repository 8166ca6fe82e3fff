"""Zone patterns: in which locations the slices of an application go, the r-th slice into ``pattern[r % len(pattern)]``.

For every location its nearest 1, 2, ... locations; ranked by an estimate of the objective of complete slices.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np

from berth.scheduling.gang.budget import Budget
from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.problem import Floats, Routing

WIDEST = 6
"""Locations of a pattern at most."""

Pattern = tuple[int, ...]


def patterns(books: Books, budget: Budget, rows: Sequence[int], limit: int) -> Generator[None, None, list[Pattern]]:
    """The most promising patterns for pod sets that belong together, at most `limit`.

    The best one of every width is among them if the limit allows.

    Of patterns that promise the same to the last digit only one: they are the same but for names.
    """
    model = books.model
    slices = max(model.replicas[row] for row in rows)
    base = np.full((len(rows), model.locations), np.inf)
    for position, row in enumerate(rows):
        np.minimum.at(base[position], model.location, books.add(row))
        yield from budget.pause()
    open_to = np.isfinite(base).any(axis=0)
    places = np.flatnonzero(open_to)
    base = np.where(np.isfinite(base), base, model.penalty)
    weights = np.array([model.replicas[row] for row in rows], dtype=np.float64)
    distance = (model.cost + model.cost.T) / 2
    order = np.argsort(
        distance[:, places] + np.where(places == np.arange(model.locations)[:, None], -1e-9, 0), axis=1, kind="stable"
    )
    room = _slices_per_location(books, rows)
    ranked: dict[Pattern, float] = {}
    for place in places.tolist():
        near = [place, *(int(places[k]) for k in order[place] if places[k] != place)]
        for width in range(1, min(slices, WIDEST, len(near)) + 1):
            pattern = tuple(near[:width])
            key = tuple(sorted(pattern))
            if key not in ranked:
                ranked[key] = _estimate(books, rows, pattern, slices, base, weights, room)
    distinct: dict[tuple[int, float], Pattern] = {}
    for pattern in sorted(ranked, key=lambda pattern: (ranked[pattern], pattern)):
        distinct.setdefault((len(pattern), round(ranked[pattern], 6)), pattern)
    in_order = list(distinct.values())
    first: dict[int, Pattern] = {}
    for pattern in in_order:
        first.setdefault(len(pattern), pattern)
    chosen = dict.fromkeys([*first.values(), *in_order])
    return list(chosen)[:limit]


def _slices_per_location(books: Books, rows: Sequence[int]) -> Floats:
    """float64[L], roughly how many complete slices have room in each location."""
    model = books.model
    need = model.request[rows].sum(axis=0).astype(np.float64)
    free = np.zeros((model.locations, len(need)))
    np.add.at(free, model.location, np.maximum(books.free, 0))
    asked = need > 0
    if not asked.any():
        return np.full(model.locations, np.inf)
    room: Floats = (free[:, asked] / need[asked]).min(axis=1)
    return room


def _estimate(
    books: Books, rows: Sequence[int], pattern: Pattern, slices: int, base: Floats, weights: Floats, room: Floats
) -> float:
    """Objective of complete slices spread evenly over the pattern."""
    model, prices = books.model, books.model.problem.prices
    width = len(pattern)
    counts = np.array([len(range(j, slices, width)) for j in range(width)], dtype=np.float64)
    share = counts / slices
    block = model.cost[np.ix_(pattern, pattern)]
    everywhere = float(share @ block @ share) - float((share * share) @ block.diagonal()) / max(1.0, counts.max())
    total = 0.0
    for workload in dict.fromkeys(model.workload[row] for row in rows):
        for number in model.calls[workload]:
            near = model.targets[number].routing is not Routing.ALL
            total += prices.network * everywhere * (prices.failover if near else 1.0)
    if width == 1 and slices > 1:
        total += prices.survive_zone * len(weights)
    crowded = np.maximum(counts - room[list(pattern)], 0.0).sum()
    return total + float(weights @ (base[:, pattern] @ share)) + model.penalty * float(crowded)
