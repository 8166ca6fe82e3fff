"""Kicks: empty a few nodes or workloads at random, fill again, keep what is better."""

from __future__ import annotations

import numpy as np

from berth.scheduling.gang.budget import Budget
from berth.scheduling.replicas.search.draft import Draft
from berth.scheduling.replicas.search.improve import GAIN, improve, singles


def kick(draft: Draft, budget: Budget, rng: np.random.Generator, rounds: int) -> None:
    """Try so many times, as long as there is time."""
    model = draft.model
    rows = np.flatnonzero(np.array(model.replicas) > 0)
    if not len(rows):
        return
    best, standing = draft.snapshot(), draft.standing
    for _ in range(rounds):
        if budget.over:
            break
        if rng.random() < 0.5:
            used = np.flatnonzero(draft.books.planned.any(axis=0))
            columns = rng.permutation(used)[: int(rng.integers(1, 4))].tolist()
            taken = draft.clear(range(len(model.workload)), columns)
        else:
            chosen = rng.permutation(rows)[: int(rng.integers(1, 4))].tolist()
            taken = draft.clear(chosen, range(model.size))
        _refill(draft, rng)
        singles(draft, budget, {row for row, _, _ in taken})
        _refill(draft, rng)
        found = draft.standing
        if found[0] < standing[0] or (found[0] == standing[0] and found[1] < standing[1] - GAIN):
            improve(draft, budget)
            best, standing = draft.snapshot(), draft.standing
        else:
            draft.restore(best)


def _refill(draft: Draft, rng: np.random.Generator) -> None:
    """Place what is missing in random order, now and then where it is not cheapest."""
    rows = [row for row, count in enumerate(draft.missing) for _ in range(count)]
    books = draft.books
    for position in rng.permutation(len(rows)).tolist():
        row = rows[position]
        if rng.random() < 0.8:
            draft.place(row)
            continue
        able = np.flatnonzero(books.can(row))
        if len(able):
            draft.put(row, int(able[rng.integers(len(able))]))
