"""What to do with a plan that breaks a rule when as many pods as possible are to be placed: leave some of them out."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from berth.scheduling.gang.budget import Budget
from berth.scheduling.replicas.hard import Breach, breaches, keeps_rules
from berth.scheduling.replicas.order import required
from berth.scheduling.replicas.search.draft import Draft

FEW = 64
"""Pods that take part in a broken rule up to which one is taken off at a time, the worst."""
SHARE = 8
"""Of more pods one in so many is taken off at a time."""


def repair(draft: Draft, budget: Budget) -> Generator[None, None, None]:
    """Take pods off until every rule holds, then put back those that break none.

    Without time left all pods go that have a broken rule.
    """
    dropped: dict[int, None] = {}
    while (breach := next(breaches(draft.books), None)) is not None:
        if budget.exhausted:
            if not draft.clear(breach.subjects, range(draft.model.size)):
                return
            continue
        worst = yield from _worst(draft, budget, breach)
        if not worst:
            return
        for row, column in worst:
            draft.put(row, column, -1)
            dropped[row] = None
    for row in dropped:
        yield from _put_back(draft, budget, row)


def _worst(draft: Draft, budget: Budget, breach: Breach) -> Generator[None, None, list[tuple[int, int]]]:
    """The pods without which the plan would be best off."""
    books = draft.books
    # Waiting for each other has no price: those with required affinity go first then.
    bound = {row for rule in required(draft.model) for row in rule.subjects}
    ranked: list[tuple[float, int, int]] = []
    rows = sorted({*breach.subjects, *breach.others})
    for number, column in np.argwhere(books.planned[rows]).tolist():
        row = rows[number]
        change = books.relief(row, column) - (books.model.penalty * 1e-6 if row in bound else 0.0)
        ranked.append((change, row, column))
        yield from budget.pause()
        if budget.exhausted:
            break
    ranked.sort()
    pods = int(books.planned[rows].sum())
    return [(row, column) for _, row, column in ranked[: pods // SHARE if pods > FEW else 1]]


def _put_back(draft: Draft, budget: Budget, row: int) -> Generator[None, None, None]:
    books = draft.books
    for _ in range(draft.missing[row]):
        costs = books.add(row)
        for column in np.argsort(costs, kind="stable").tolist():
            yield from budget.pause()
            if budget.exhausted or not costs[column] < books.model.penalty * 1e-3:
                return
            draft.put(row, column)
            if keeps_rules(books):
                break
            draft.put(row, column, -1)
        else:
            return
