"""Starts: slice after slice into a pattern of locations, part by part or pod by pod."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from berth.scheduling.replicas.problem import Bools
from berth.scheduling.replicas.search.draft import Draft, cheapest
from berth.scheduling.replicas.search.patterns import Pattern
from berth.scheduling.replicas.search.template import Part


def fill(draft: Draft, pattern: Pattern, parts: Sequence[Part]) -> None:
    """Place what is missing of the parts' pod sets; pods that fit nowhere stay missing."""
    model = draft.model
    within = {place: model.location == place for place in pattern}
    everybody = sorted(row for part in parts for row in part)
    for number in range(max(draft.missing[row] for row in everybody)):
        here = within[pattern[number % len(pattern)]]
        for part in parts:
            rows = [row for row in part if draft.missing[row] and model.replicas[row] > number]
            if not rows or (len(rows) > 1 and _whole(draft, rows, here)):
                continue
            for row in rows:
                if draft.missing[row]:
                    _ = draft.place(row, here) or draft.place(row)
    complete(draft, everybody)


def _whole(draft: Draft, rows: Sequence[int], here: Bools) -> bool:
    """Place one pod of each set on one node; False if none takes all of them."""
    books, model = draft.books, draft.model
    need = model.request[rows].sum(axis=0)
    able = here & ((books.free >= need) | (need == 0)).all(axis=1)
    if not able.any():
        return False
    costs = np.zeros(model.size)
    for row in rows:
        able &= books.can(row)
        costs += books.costs(row)
    column = cheapest(costs, able)
    if column < 0:
        return False
    for row in rows:
        if books.can(row)[column]:
            draft.put(row, column)
        elif not draft.place(row, here):
            draft.place(row)
    return True


def complete(draft: Draft, rows: Sequence[int]) -> None:
    """Place what is missing of pod sets pod by pod, each on its cheapest column."""
    for row in rows:
        for _ in range(draft.missing[row]):
            if not draft.place(row):
                break
