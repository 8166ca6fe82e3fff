"""Starts: an application goes into a pattern of locations, slice by slice or in blocks of several replicas."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence

import numpy as np

from berth.scheduling.gang.budget import Budget
from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.problem import Bools
from berth.scheduling.replicas.search.draft import Draft, cheapest
from berth.scheduling.replicas.search.patterns import Pattern
from berth.scheduling.replicas.search.template import Part


def turns_of(model: Model, rows: Sequence[int], slots: Pattern) -> list[int]:
    """Which slot each slice goes to: the one with the fewest replicas so far, placed ones among them."""
    workloads = sorted({model.workload[row] for row in rows})
    placed = (model.placed[workloads].sum(axis=0) @ model.incidence / len(workloads)).tolist()
    held = [placed[place] / slots.count(place) for place in slots]
    turns = []
    for _ in range(max(model.replicas[row] for row in rows)):
        turns.append(held.index(min(held)))
        held[turns[-1]] += 1
    return turns


def fill_slices(draft: Draft, budget: Budget, slots: Pattern, parts: Sequence[Part]) -> Generator[None, None, None]:
    """Place what is missing of the parts' pod sets, one replica of each after another.

    Pods that fit nowhere stay missing.
    """
    model = draft.model
    within = {place: model.location == place for place in slots}
    everybody = sorted(row for part in parts for row in part)
    for number, slot in enumerate(turns_of(model, everybody, slots)):
        here = within[slots[slot]]
        for part in parts:
            yield from _place(draft, budget, {row: 1 for row in part if model.replicas[row] > number}, here)
            yield from budget.pause()
            if budget.exhausted:
                return
    yield from complete(draft, budget, everybody)


def fill_node(draft: Draft, budget: Budget, rows: Sequence[int]) -> Generator[None, None, None]:
    """Place one replica of each pod set on one node; nothing if none takes them all."""
    column = yield from _one_node(draft, budget, dict.fromkeys(rows, 1), np.ones(draft.model.size, dtype=np.bool_))
    for row in rows if column >= 0 else ():
        yield from budget.pause()
        if draft.books.can(row)[column]:
            draft.put(row, column)


def slots_of(pattern: Pattern) -> Pattern:
    """Where blocks go: one to each location, two if there is only one, as no workload is to die with a node."""
    return pattern if len(pattern) > 1 else pattern * 2


def fill_blocks(draft: Draft, budget: Budget, slots: Pattern, parts: Sequence[Part]) -> Generator[None, None, None]:
    """The same with all replicas that a slot gets of a part together on one node."""
    model = draft.model
    within = {place: model.location == place for place in slots}
    everybody = sorted(row for part in parts for row in part)
    turns = turns_of(model, everybody, slots)
    for number, place in enumerate(slots):
        for part in parts:
            counts = {row: turns[: model.replicas[row]].count(number) for row in part}
            yield from _place(draft, budget, {row: count for row, count in counts.items() if count}, within[place])
            yield from budget.pause()
            if budget.exhausted:
                return
    yield from complete(draft, budget, everybody)


def _place(draft: Draft, budget: Budget, counts: Mapping[int, int], here: Bools) -> Generator[None, None, None]:
    """Place pods of a part on one node of a location, or each on its cheapest node if none takes them all."""
    books = draft.books
    column = (yield from _one_node(draft, budget, counts, here)) if sum(counts.values()) > 1 else -1
    if column < 0 and len(counts) > 1 and any(books.follows(row) for row in counts):
        # Those that must share a node are better off together elsewhere than apart here.
        column = yield from _one_node(draft, budget, counts, np.ones(draft.model.size, dtype=np.bool_))
    for row, count in counts.items():
        for _ in range(min(count, draft.missing[row])):
            yield from budget.pause()
            if column >= 0 and books.can(row)[column]:
                draft.put(row, column)
            elif not (draft.place(row, here) or draft.place(row)):
                break


def _one_node(draft: Draft, budget: Budget, counts: Mapping[int, int], here: Bools) -> Generator[None, None, int]:
    """The column that takes so many pods of each set and looks cheapest for each by itself; -1 if there is none."""
    books, model = draft.books, draft.model
    need = sum((count * model.request[row] for row, count in counts.items()), np.zeros(1, dtype=np.int64))
    able = here & ((books.free >= need) | (need == 0)).all(axis=1)
    if not able.any():
        return -1
    costs = np.zeros(model.size)
    for row, count in counts.items():
        yield from budget.pause()
        able &= books.can(row)
        costs += count * books.costs(row)
    return cheapest(costs, able)


def complete(draft: Draft, budget: Budget, rows: Sequence[int]) -> Generator[None, None, None]:
    """Place what is missing of pod sets pod by pod, each on its cheapest column."""
    for row in rows:
        for _ in range(draft.missing[row]):
            if budget.exhausted:
                return
            if not draft.place(row):
                break
            yield from budget.pause()
