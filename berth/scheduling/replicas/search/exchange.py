"""Two pods that mind their neighbours change places.

Neither may have room beside the other, and one that came without the other going would be dearer than it is: such moves
are not found one pod at a time.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np

from berth.scheduling.gang.budget import Budget
from berth.scheduling.replicas.search.draft import Draft
from berth.scheduling.replicas.search.wishes import Wishes

MOST = 200
"""Pod sets and nodes with pods that mind each other, at most: each is looked at beside each."""
TRIED = 8
"""Exchanges that are tried for a pod; each seems a gain by what its pods do to others."""


def exchanges(draft: Draft, budget: Budget, rows: Sequence[int], wishes: Wishes) -> Generator[None, None, set[int]]:
    """Exchange pods of these sets as long as the objective likes it; returns the pod sets that moved."""
    books, moved = draft.books, set[int]()
    if not books.interference.active:
        return moved
    among = sorted({*books.interference.rows} & {*rows})
    places = _places(draft, among)
    for row, column in places if len(places) <= MOST else ():
        if not books.planned[row, column]:
            continue
        options: list[tuple[float, int, int]] = []
        for other, target in _places(draft, among):
            yield from budget.pause()
            change = 0.0 if target == column else books.interference.exchanged(row, column, other, target)
            if change < -draft.model.gain:
                options.append((change, other, target))
        if budget.over:
            break
        for _, other, target in sorted(options)[:TRIED]:
            yield from budget.pause()
            if _exchanged(draft, row, column, other, target):
                wishes.forget((row, other))
                moved |= {row, other}
                break
    return moved


def _places(draft: Draft, rows: Sequence[int]) -> list[tuple[int, int]]:
    """Those of these sets and the columns where they have pods."""
    return [(rows[number], column) for number, column in np.argwhere(draft.books.planned[rows]).tolist()]


def _exchanged(draft: Draft, row: int, column: int, other: int, target: int) -> bool:
    """Exchange two pods if both have room then and the objective is better."""
    books = draft.books
    before = books.value((row, other))
    books.remove(row, column)
    books.remove(other, target)
    if books.can(row)[target]:
        books.insert(row, target)
        if books.can(other)[column]:
            books.insert(other, column)
            if books.value((row, other)) < before - draft.model.gain:
                return True
            books.remove(other, column)
        books.remove(row, target)
    books.insert(other, target)
    books.insert(row, column)
    return False
