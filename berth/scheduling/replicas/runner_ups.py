"""Which nodes came next for the pods of a plan: what the objective would be with one of them elsewhere."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from berth.scheduling.gang.budget import Budget
from berth.scheduling.replicas.books import Books

ALTERNATIVES = 3
"""Nodes for each pod set and node."""
MOST = 64
"""Pod sets and nodes that are looked at, pods of one set on one node being alike; of every set one before the next."""


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """Another node for one pod of a set, all others staying."""

    node: int
    """the node"""
    changes: Mapping[str, float]
    """by how much that changes the objective, by term"""


RunnerUps = Mapping[tuple[int, int], tuple[RunnerUp, ...]]
"""The cheapest first, by pod set and planned node."""


def runner_ups(books: Books, budget: Budget) -> Generator[None, None, RunnerUps]:
    """Look for the next best of the nodes that the search looked at; those that break a rule are none.

    A plan that was cut short has none, and where its time is over meanwhile the pods that are left have none.
    """
    model = books.model
    found: dict[tuple[int, int], tuple[RunnerUp, ...]] = {}
    if budget.cut_short:
        return found
    for row, column in _places(books):
        yield from budget.pause()
        if budget.over:
            break
        changes, able = books.moves_by_term(row, column)
        charge = model.charge[row]
        total = sum(changes.values(), np.zeros(model.size)) + (0.0 if charge is None else charge - charge[column])
        able[column] = False
        able &= total < model.penalty * 1e-3
        options = np.flatnonzero(able)
        best = options[np.argsort(total[options], kind="stable")[:ALTERNATIVES]]
        found[row, int(model.columns[column])] = tuple(
            RunnerUp(int(model.columns[at]), {name: float(change[at]) for name, change in changes.items()})
            for at in best.tolist()
        )
    return found


def _places(books: Books) -> Iterator[tuple[int, int]]:
    """Pod sets and their columns, the first column of every set, then the second of every set, and so on."""
    columns = [np.flatnonzero(planned).tolist() for planned in books.planned]
    turns = (
        (row, own[turn])
        for turn in range(max(map(len, columns), default=0))
        for row, own in enumerate(columns)
        if turn < len(own)
    )
    for _, place in zip(range(MOST), turns, strict=False):
        yield place
