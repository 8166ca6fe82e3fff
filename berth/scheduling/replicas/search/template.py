"""The template of a slice: one replica of every workload in as few parts of one node each as cut the least traffic."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Generator, Iterator, Sequence

import numpy as np

from berth.scheduling.gang.budget import UNLIMITED, Budget
from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.problem import Ints
from berth.scheduling.replicas.search.bonds import BOND, anchors_first, bonds
from berth.scheduling.replicas.search.refine import Division

Part = tuple[int, ...]

MOST_PAIRS = 1000
"""Pairs of pod sets of two workloads that are all linked: pods of one workload may all be different."""
MOST_LINKS = 100_000
"""The same of all workloads together: where many call each other, fewer pairs of each two are linked."""


def parts(
    books: Books, rows: Sequence[int], replicas: int = 1, budget: Budget = UNLIMITED
) -> Generator[None, None, list[Part]]:
    """Pod sets by part, in the order in which they are to be placed; a node has room for so many replicas of a part.

    Others have their turns meanwhile; without time left, parts are smaller, and cut more traffic, than they need.
    """
    request = books.model.request
    room = _typical_room(books, rows) // replicas
    links = yield from _links(books, rows, budget)
    content: dict[int, list[int]] = {row: [row] for row in rows}
    load: dict[int, Ints] = {row: request[row] for row in rows}
    near = {row: dict(others) for row, others in links.items()}
    # Heaviest link first, small parts first among equals: large ones would soon be full.
    queue = [(-weight, 2, a, b) for a, others in near.items() for b, weight in others.items() if a < b]
    heapq.heapify(queue)
    while queue:
        yield from budget.pause()
        if budget.over:
            break
        weight, size, a, b = heapq.heappop(queue)
        if a not in content or near[a].get(b) != -weight:
            continue
        if size != (size := len(content[a]) + len(content[b])):
            heapq.heappush(queue, (weight, size, a, b))
            continue
        del near[a][b], near[b][a]
        together = load[a] + load[b]
        if (together > room).any() and not (
            -weight >= BOND and _some_node_takes(books, [*content[a], *content[b]], together * replicas)
        ):
            continue
        content[a] += content.pop(b)
        load[a] = together
        del load[b]
        for other, amount in near.pop(b).items():
            del near[other][b]
            near[a][other] = near[other][a] = near[a].get(other, 0.0) + amount
            first, second = min(a, other), max(a, other)
            heapq.heappush(queue, (-near[a][other], len(content[a]) + len(content[other]), first, second))
    division = Division(list(content.values()), links, request, room)
    yield from division.refine(budget)
    rank = anchors_first(books, rows)
    in_order = (tuple(sorted(part, key=lambda row: (rank[row], row))) for part in division.parts)
    return sorted(in_order, key=lambda part: (rank[part[0]], -len(part), part))


def cut_cost(books: Books, template: Sequence[Part]) -> float:
    """What the edges between parts of a slice cost at the most while it stays in one location."""
    model = books.model
    part_of = {model.workload[row]: number for number, part in enumerate(template) for row in part}
    cut = sum(part_of.get(callee, home) != home for caller, home in part_of.items() for callee in model.callees[caller])
    return model.problem.prices.network * cut * float(model.cost.diagonal().max(initial=0.0))


def _links(books: Books, rows: Sequence[int], budget: Budget) -> Generator[None, None, dict[int, dict[int, float]]]:
    """Edges between pod sets, in both directions, and what must share a node."""
    model = books.model
    of_workload: dict[int, list[int]] = {}
    for row in rows:
        of_workload.setdefault(model.workload[row], []).append(row)
    links: dict[int, dict[int, float]] = {row: {} for row in rows}
    calls = sum(len(model.callees[caller]) for caller in of_workload)
    most = min(MOST_PAIRS, MOST_LINKS // max(1, calls))
    for caller, own in of_workload.items():
        yield from budget.pause()
        for callee in model.callees[caller]:
            for a, b in _pairs(own, of_workload.get(callee, []), most):
                links[a][b] = links[b][a] = links[a].get(b, 0.0) + 1.0
    for a, b in bonds(books, rows):
        links[a][b] = links[b][a] = links[a].get(b, 0.0) + BOND
    return links


def _pairs(callers: Sequence[int], callees: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    """Pod sets of two workloads that are linked: all with all, and one after the other where these are too many."""
    if len(callers) * len(callees) <= most:
        yield from itertools.product(callers, callees)
    elif callees:
        for number in range(max(len(callers), len(callees))):
            yield callers[number % len(callers)], callees[number % len(callees)]


def _some_node_takes(books: Books, rows: Sequence[int], need: Ints) -> bool:
    """Whether a column that each of some pod sets may use has room for all of this, int64[R]."""
    able = ((books.free >= need) | (need == 0)).all(axis=1)
    for row in rows:
        if not able.any():
            return False
        able &= books.can(row)
    return bool(able.any())


def _typical_room(books: Books, rows: Sequence[int]) -> Ints:
    """int64[R], room of the column that is at the upper quarter of all, by the scarcest resource that is asked for."""
    need = books.model.request[rows].sum(axis=0)
    asked = need > 0
    fill = (books.free[:, asked] / need[asked]).min(axis=1, initial=np.inf)
    typical: Ints = np.maximum(books.free[np.argsort(fill, kind="stable")[(3 * len(fill)) // 4]], 0)
    return typical
