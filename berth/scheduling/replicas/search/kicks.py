"""Kicks: empty a few nodes or workloads at random, fill again, keep what is better."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np

from berth.scheduling.gang.budget import Budget
from berth.scheduling.replicas.search.draft import Changes, Draft
from berth.scheduling.replicas.search.improve import improve, singles
from berth.scheduling.replicas.search.wishes import Wishes


def kick(
    draft: Draft, budget: Budget, rng: np.random.Generator, rows: Sequence[int], rounds: int
) -> Generator[None, None, None]:
    """Try so many times with pod sets that belong together, as long as there is time."""
    model = draft.model
    best, standing = draft.snapshot(rows), draft.standing(rows)
    for _ in range(rounds):
        if budget.over:
            break
        taken = empty_some(draft, rng, rows)
        yield from _refill(draft, budget, rng, rows)
        yield from singles(draft, budget, model.relations.of(row for row, _, _ in taken), Wishes(draft.books))
        yield from _refill(draft, budget, rng, rows)
        found = draft.standing(rows)
        if found[0] < standing[0] or (found[0] == standing[0] and found[1] < standing[1] - draft.model.gain):
            yield from improve(draft, budget, rows)
            best, standing = draft.snapshot(rows), draft.standing(rows)
        else:
            draft.restore(rows, best)


def empty_some(draft: Draft, rng: np.random.Generator, rows: Sequence[int]) -> Changes:
    """Take the pods of some sets off a few nodes, or those of a few of the sets off all; returns what was there."""
    if rng.random() < 0.5:
        used = np.flatnonzero(draft.books.planned[rows].any(axis=0))
        return draft.clear(rows, rng.permutation(used)[: int(rng.integers(1, 4))].tolist())
    chosen = rng.permutation(list(rows))[: int(rng.integers(1, 4))].tolist()
    return draft.clear(chosen, range(draft.model.size))


def _refill(draft: Draft, budget: Budget, rng: np.random.Generator, rows: Sequence[int]) -> Generator[None, None, None]:
    """Place what is missing in random order, now and then where it is not cheapest."""
    pods = [row for row in rows for _ in range(draft.missing[row])]
    books = draft.books
    for position in rng.permutation(len(pods)).tolist():
        row = pods[position]
        yield from budget.pause()
        if rng.random() < 0.8:
            draft.place(row)
            continue
        able = np.flatnonzero(books.can(row))
        if len(able):
            draft.put(row, int(able[rng.integers(len(able))]))
