"""Improvement of a draft by moves that the exact objective likes: single pods, all pods of a node, and swaps."""

from __future__ import annotations

import numpy as np

from berth.scheduling.gang.budget import Budget
from berth.scheduling.replicas.search.draft import Draft

GAIN = 1e-7
"""Least gain of a move, relative to the objective: less may be rounding."""
TARGETS = 3
"""Nodes that are tried for the contents of another."""


def improve(draft: Draft, budget: Budget, *, thorough: bool = True) -> None:
    """Move pods while that helps and there is time."""
    while not budget.over:
        if singles(draft, budget):
            continue
        if not thorough or not (contents(draft, budget) or swaps(draft, budget)):
            return


def _occupied(draft: Draft) -> list[tuple[int, int]]:
    return [(int(row), int(column)) for row, column in np.argwhere(draft.books.planned)]


def singles(draft: Draft, budget: Budget) -> bool:
    """Each replica to its best node; one replica stands for all of its set on a node."""
    books, moved = draft.books, False
    for row, column in _occupied(draft):
        while books.planned[row, column]:
            change = books.moves(row, column)
            target = int(change.argmin())
            if not change[target] < -GAIN:
                break
            books.move(row, column, target)
            moved = True
        if budget.over:
            return False
    return moved


def contents(draft: Draft, budget: Budget) -> bool:
    """All pods of a node to another node."""
    books, model = draft.books, draft.model
    rows = range(len(model.workload))
    better = False
    for column in np.flatnonzero(books.planned.any(axis=0)).tolist():
        if budget.over:
            return False
        before = books.value()
        taken = draft.clear(rows, [column])
        need = sum(count * model.request[row] for row, _, count in taken)
        able = ((books.free >= need) | (need == 0)).all(axis=1)
        able[column] = False
        costs = np.zeros(model.size)
        for row, _, count in taken:
            able &= books.can(row)
            costs += count * books.costs(row)
        order = np.argsort(np.where(able, costs, np.inf), kind="stable")[:TARGETS].tolist()
        for target in order:
            if not able[target]:
                break
            put = []
            for row, _, count in taken:
                for _ in range(count):
                    if books.can(row)[target]:
                        draft.put(row, target)
                        put.append(row)
            if not any(draft.missing[row] for row, _, _ in taken) and books.value() < before - GAIN:
                better = True
                break
            for row in put:
                draft.put(row, target, -1)
        else:
            for row, _, count in taken:
                draft.put(row, column, count)
            continue
        if any(draft.missing[row] for row, _, _ in taken):
            for row, _, count in taken:
                draft.put(row, column, count)
    return better


def swaps(draft: Draft, budget: Budget) -> bool:
    """A pod takes the place of another one, which goes to its own best node."""
    books, better = draft.books, False
    for row, column in _occupied(draft):
        if budget.over:
            return False
        if not books.planned[row, column]:
            continue
        books._count(row, column, -1)
        wish = books.costs(row)
        wish = wish - wish[column]
        blocked = ~books.can(row) & draft.model.allowed[row]
        books._count(row, column, 1)
        blocked[column] = False
        wish[~blocked] = np.inf
        for target in np.argsort(wish, kind="stable")[:TARGETS].tolist():
            if not wish[target] < -GAIN:
                break
            if _swapped(draft, row, column, target):
                better = True
                break
    return better


def _swapped(draft: Draft, row: int, column: int, target: int) -> bool:
    books = draft.books
    before = books.value()
    for other in np.flatnonzero(books.planned[:, target]).tolist():
        if other == row:
            continue
        books.remove(row, column)
        books.remove(other, target)
        if books.can(row)[target]:
            books.insert(row, target)
            change = books.add(other)
            home = int(change.argmin())
            if np.isfinite(change[home]):
                books.insert(other, home)
                if books.value() < before - GAIN:
                    return True
                books.remove(other, home)
            books.remove(row, target)
        books.insert(other, target)
        books.insert(row, column)
    return False
