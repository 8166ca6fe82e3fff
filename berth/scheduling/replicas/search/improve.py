"""Improvement of a draft by moves that the exact objective likes: single pods, all pods of a node, and swaps."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np

from berth.scheduling.gang.budget import Budget
from berth.scheduling.replicas.search.draft import Draft, cheapest
from berth.scheduling.replicas.search.exchange import exchanges
from berth.scheduling.replicas.search.wishes import Wishes

TARGETS = 3
"""Nodes that are tried for the contents of another."""
FEW = 50
"""Pod sets up to which all are looked at again after a move, not only those that are related to what moved."""
MARGIN = 0.1
"""By how much nodes may look dearer than they are when each of several pods is looked at by itself."""


def improve(draft: Draft, budget: Budget, rows: Sequence[int]) -> Generator[None, None, None]:
    """Move pods of sets that belong together while that helps and there is time."""
    wishes = Wishes(draft.books)
    yield from singles(draft, budget, rows, wishes)
    touched = rows
    while not budget.over:
        moved = yield from contents(draft, budget, rows, touched, wishes)
        moved |= yield from swaps(draft, budget, rows, touched, wishes)
        moved |= yield from exchanges(draft, budget, rows, wishes)
        if not moved:
            return
        near = draft.model.relations.of(moved)
        yield from singles(draft, budget, near, wishes)
        if len(rows) > FEW:
            touched = near


def singles(draft: Draft, budget: Budget, rows: Sequence[int], wishes: Wishes) -> Generator[None, None, None]:
    """Each replica to its best node, and again when something that it is related to has moved.

    One replica stands for all of its set on a node.
    """
    books, relations = draft.books, draft.model.relations
    queue = dict.fromkeys(rows)
    while queue and not budget.over:
        row = next(iter(queue))
        del queue[row]
        moved = False
        for column in np.flatnonzero(books.planned[row]).tolist():
            yield from budget.pause()
            while books.planned[row, column]:
                change, able = wishes.of(row, column)
                target = cheapest(change, able)
                if target < 0 or not change[target] < -draft.model.gain:
                    break
                books.move(row, column, target)
                wishes.forget((row,))
                moved = True
        if moved:
            queue.update(dict.fromkeys(relations.of((row,))))


def contents(
    draft: Draft, budget: Budget, among: Sequence[int], touched: Sequence[int], wishes: Wishes
) -> Generator[None, None, set[int]]:
    """All pods of a node, of the sets among which to look, to another node; returns the pod sets that moved.

    Only nodes with pods that were touched are looked at.
    """
    books = draft.books
    moved: set[int] = set()
    for column in np.flatnonzero(books.planned[touched].any(axis=0)).tolist():
        yield from budget.pause()
        if budget.over:
            break
        rows = [row for row in among if books.planned[row, column]]
        taken = draft.clear(rows, [column])
        targets = _destinations(draft, taken, column)
        draft.change(taken)
        before = books.value(rows) if targets else 0.0
        for target in targets:
            draft.change([each for row, _, n in taken for each in ((row, column, -n), (row, target, n))])
            if books.kept_apart(rows) and books.value(rows) < before - draft.model.gain:
                moved.update(rows)
                wishes.forget(rows)
                break
            draft.change([each for row, _, n in taken for each in ((row, target, -n), (row, column, n))])
    return moved


def _destinations(draft: Draft, taken: list[tuple[int, int, int]], column: int) -> list[int]:
    """The most promising nodes for pods that were taken off a column; of nodes that promise the same only one."""
    books, model = draft.books, draft.model
    need = sum(count * model.request[row] for row, _, count in taken)
    able = ((books.free >= need) | (need == 0)).all(axis=1)
    costs = np.zeros(model.size)
    for row, _, count in taken:
        able &= books.can(row)
        costs += count * books.costs(row)
    home = costs[column]
    able[column] = False
    chosen: dict[float, int] = {}
    # Where calls go to all endpoints, what each pod changes by itself adds up but for what they change together.
    margin = MARGIN * abs(home) if books.load.callees else -draft.model.gain
    for target in np.argsort(np.where(able, costs, np.inf), kind="stable").tolist():
        if len(chosen) == TARGETS or not able[target] or costs[target] > home + margin:
            break
        chosen.setdefault(round(float(costs[target]), 6), target)
    return list(chosen.values())


def swaps(
    draft: Draft, budget: Budget, among: Sequence[int], touched: Sequence[int], wishes: Wishes
) -> Generator[None, None, set[int]]:
    """A touched pod takes the place of another one among those to look at, which goes to its own best node.

    Returns the pod sets that moved.
    """
    books = draft.books
    moved: set[int] = set()
    for number, column in np.argwhere(books.planned[touched]).tolist():
        row = touched[number]
        yield from budget.pause()
        if budget.over:
            break
        if not books.planned[row, column]:
            continue
        change, able = wishes.of(row, column)
        able[column] = True
        wish = np.where(able | ~draft.model.allowed[row], np.inf, change)
        for target in np.argsort(wish, kind="stable")[:TARGETS].tolist():
            if not wish[target] < -draft.model.gain:
                break
            others = [other for other in among if books.planned[other, target] and other != row]
            other = _swapped(draft, (row, column, target), others, float(wish[target]), wishes)
            if other is not None:
                moved |= {row, other}
                wishes.forget((row, other))
                break
    return moved


def _swapped(
    draft: Draft,
    move: tuple[int, int, int],
    others: Sequence[int],
    gain: float,
    wishes: Wishes,
) -> int | None:
    """The pod set that made room for a move, None if none of those on its target did that at a gain."""
    books, model = draft.books, draft.model
    row, column, target = move
    short = model.request[row] - books.free[target]
    for other in others:
        if (short > model.request[other]).any():
            continue
        # Pods that are related may gain from each other's move; of others the sum is exact.
        if not model.relations.between(row, other):
            change, able = wishes.of(other, target)
            able[target] = False
            able[column] = True
            if gain + float(change[cheapest(change, able)]) > -draft.model.gain:
                continue
        before = books.value((row, other))
        books.remove(row, column)
        books.remove(other, target)
        if books.can(row)[target]:
            books.insert(row, target)
            change = books.add(other)
            home = int(change.argmin())
            if np.isfinite(change[home]):
                books.insert(other, home)
                if books.value((row, other)) < before - draft.model.gain:
                    return other
                books.remove(other, home)
            books.remove(row, target)
        books.insert(other, target)
        books.insert(row, column)
    return None
