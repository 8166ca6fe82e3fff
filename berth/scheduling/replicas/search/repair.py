"""Plans of as many pods as possible where not all can have a node: whatever is placed, no rule is broken."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np

from berth.scheduling.gang.budget import BEFORE_LONG, Budget
from berth.scheduling.replicas.hard import Breach, breaches, keeps_rules
from berth.scheduling.replicas.search.draft import Draft
from berth.scheduling.replicas.search.kicks import empty_some

BROKEN = 1e-3
"""Share of the penalty from which on a change may be that of a broken rule."""
TRIES = 4
"""Columns dearer than that on which a pod is tried all the same: many soft rules may be as dear."""


def repair(draft: Draft, budget: Budget, rng: np.random.Generator, rounds: int) -> Generator[None, None, None]:
    """Take pods off until every rule holds, and place what is missing where it breaks none.

    While a pod is missing and there is time, the same follows from nothing, one pod after another, and with so many
    rounds of kicks. Once time is exhausted all pods go that have a broken rule.
    """
    rows = [row for row, count in enumerate(draft.model.replicas) if count]
    yield from _take_off(draft, budget)
    yield from _place(draft, budget, rows)
    yield from _make_way(draft, budget, rows)
    for number in range(rounds + 1):
        if budget.over or not any(draft.missing):
            return
        best, standing = draft.snapshot(rows), draft.standing(rows)
        if number:
            empty_some(draft, rng, rows)
            yield from _take_off(draft, budget)
            yield from _place(draft, budget, rng.permutation(rows).tolist())
        else:
            draft.clear(rows, range(draft.model.size))
            yield from _place(draft, budget, rows)
        yield from _make_way(draft, budget, rows)
        if not draft.standing(rows) < standing:
            draft.restore(rows, best)


def _take_off(draft: Draft, budget: Budget) -> Generator[None, None, None]:
    """Take pods off until every rule holds."""
    taken = True
    while taken:
        taken = False
        yield from budget.pause(BEFORE_LONG)
        for breach in breaches(draft.books):
            taken |= yield from _mend(draft, budget, breach)


def _mend(draft: Draft, budget: Budget, breach: Breach) -> Generator[None, None, bool]:
    """Take off those pods without which less is broken, the worst first, or else all that have the rule."""
    books, taken = draft.books, False
    bar = -BROKEN * books.model.penalty
    ranked: list[tuple[float, int, int]] = []
    rows = sorted({*breach.subjects, *breach.others})
    for number, column in np.argwhere(books.planned[rows]).tolist():
        yield from budget.pause()
        ranked.append((0.0 if budget.over else books.relief(rows[number], column), rows[number], column))
    for _, row, column in sorted(ranked):
        while not budget.exhausted and books.planned[row, column] and books.relief(row, column) < bar:
            draft.put(row, column, -1)
            taken = True
            yield from budget.pause()
    return taken or bool(draft.clear(breach.subjects, range(draft.model.size)))


def _place(draft: Draft, budget: Budget, rows: Sequence[int]) -> Generator[None, None, None]:
    """Place what is missing, each pod on the cheapest column where it breaks nothing, as long as some have one."""
    left = [row for row in rows if draft.missing[row]]
    while left:
        later, placed = [], False
        for row in left:
            while draft.missing[row]:
                yield from budget.pause()
                if budget.exhausted:
                    return
                if not _place_one(draft, row):
                    later.append(row)
                    break
                placed = True
        left = later if placed else []


def _make_way(draft: Draft, budget: Budget, rows: Sequence[int]) -> Generator[None, None, None]:
    """Let workloads without a replica have the place of one of those that have several."""
    books, model = draft.books, draft.model
    replicas = books.x.sum(axis=1).tolist()
    for row in rows:
        yield from budget.pause()
        if not draft.missing[row] or replicas[model.workload[row]]:
            continue
        several = [other for other in rows if replicas[model.workload[other]] > 1]
        for other in sorted(several, key=lambda one: -replicas[model.workload[one]]):
            yield from budget.pause()
            if budget.over:
                return
            enough = ((books.free + model.request[other] >= model.request[row]) | (model.request[row] == 0)).all(axis=1)
            able = np.flatnonzero(enough & model.allowed[row] & (books.planned[other] > 0))
            if any(_takes_place(draft, row, other, column) for column in able[:TRIES].tolist()):
                replicas[model.workload[row]] += 1
                replicas[model.workload[other]] -= 1
                break


def _takes_place(draft: Draft, row: int, other: int, column: int) -> bool:
    """Put a pod where one of another set is, if no rule is broken then."""
    draft.put(other, column, -1)
    if draft.books.can(row)[column]:
        draft.put(row, column)
        if keeps_rules(draft.books):
            return True
        draft.put(row, column, -1)
    draft.put(other, column)
    return False


def _place_one(draft: Draft, row: int) -> bool:
    books, dear = draft.books, 0
    costs = books.add(row)
    for column in np.argsort(costs, kind="stable").tolist():
        dear += costs[column] > BROKEN * books.model.penalty
        if dear > TRIES or not np.isfinite(costs[column]):
            break
        draft.put(row, column)
        if keeps_rules(books, row):
            return True
        draft.put(row, column, -1)
    return False
