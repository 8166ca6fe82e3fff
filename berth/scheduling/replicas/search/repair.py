"""What to do with a plan that breaks a rule when as many pods as possible are to be placed: leave some of them out."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from berth.scheduling.gang.budget import Budget
from berth.scheduling.replicas.hard import keeps_rules
from berth.scheduling.replicas.rule import Affinity
from berth.scheduling.replicas.search.draft import Draft


def repair(draft: Draft, budget: Budget) -> Generator[None, None, None]:
    """Take pods off until every rule holds, then put back those that break none."""
    dropped: dict[int, None] = {}
    while not keeps_rules(draft.books):
        row, column = _worst(draft)
        yield from budget.pause()
        if row < 0:
            return
        draft.put(row, column, -1)
        dropped[row] = None
    for row in dropped:
        _put_back(draft, row)
        yield from budget.pause()


def _worst(draft: Draft) -> tuple[int, int]:
    """The pod without which the plan would be best off."""
    books = draft.books
    best, choice = np.inf, (-1, -1)
    bound = {
        row
        for rule in draft.model.problem.rules
        if isinstance(rule, Affinity) and rule.weight is None
        for row in rule.subjects
    }
    for row, column in np.argwhere(books.planned).tolist():
        # Waiting for each other has no price: those with required affinity go first then.
        change = books.relief(row, column) - (books.model.penalty * 1e-6 if row in bound else 0.0)
        if change < best:
            best, choice = change, (row, column)
    return choice


def _put_back(draft: Draft, row: int) -> None:
    books = draft.books
    for _ in range(draft.missing[row]):
        costs = books.add(row)
        for column in np.argsort(costs, kind="stable").tolist():
            if not costs[column] < books.model.penalty * 1e-3:
                return
            draft.put(row, column)
            if keeps_rules(books):
                break
            draft.put(row, column, -1)
        else:
            return
