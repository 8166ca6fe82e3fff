"""The template of a slice: one replica of every workload in as few parts of one node each as cut the least traffic."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.problem import Ints

Part = tuple[int, ...]


def parts(books: Books, rows: Sequence[int]) -> list[Part]:
    """Pod sets by part, in the order in which they are to be placed."""
    model = books.model
    room = _typical_room(books, rows)
    links: dict[tuple[int, int], float] = {}
    of_workload: dict[int, list[int]] = {}
    for row in rows:
        of_workload.setdefault(model.workload[row], []).append(row)
    for caller, callees in enumerate(model.callees):
        for callee in callees:
            for a in of_workload.get(caller, ()):
                for b in of_workload.get(callee, ()):
                    pair = (min(a, b), max(a, b))
                    links[pair] = links.get(pair, 0.0) + 1.0
    member = {row: row for row in rows}
    content: dict[int, list[int]] = {row: [row] for row in rows}
    load: dict[int, Ints] = {row: model.request[row].copy() for row in rows}
    while links:
        # Heaviest link first, small parts first among equals: large ones would soon be full.
        (one, other), _ = max(
            links.items(),
            key=lambda item: (item[1], -len(content[item[0][0]]) - len(content[item[0][1]]), -item[0][0], -item[0][1]),
        )
        del links[one, other]
        if (load[one] + load[other] > room).any():
            continue
        content[one] += content.pop(other)
        load[one] = load[one] + load.pop(other)
        for row in content[one]:
            member[row] = one
        for (a, b), weight in list(links.items()):
            if other in (a, b):
                del links[a, b]
                rest = b if a == other else a
                pair = (min(one, rest), max(one, rest))
                links[pair] = links.get(pair, 0.0) + weight
    return sorted((tuple(sorted(rows)) for rows in content.values()), key=lambda part: (-len(part), part))


def _typical_room(books: Books, rows: Sequence[int]) -> Ints:
    """int64[R], room of the column that is at the upper quarter of all, by its scarcest resource."""
    need = np.maximum(books.model.request[rows].sum(axis=0), 1)
    fill = (books.free / need).min(axis=1)
    typical: Ints = books.free[np.argsort(fill, kind="stable")[(3 * len(fill)) // 4]]
    return typical
