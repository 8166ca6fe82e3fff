"""A plan in the making: the books, who has no node yet, and the objective as of now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import NamedTuple

import numpy as np

from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.problem import Bools, Counts, Floats

Changes = Sequence[tuple[int, int, int]]
"""pod set, column and a number of pods: how many more, or how many there were"""


class Shortage(NamedTuple):
    """What a plan leaves out, the lower the better, the first first."""

    pods: int = 0
    """without a node"""
    workloads: int = 0
    """without any replica: an application lacks what they do"""
    dependencies: int = 0
    """with an end that has no replica"""


NONE_MISSING = Shortage()


class Draft:
    """Books with pods that are still missing."""

    def __init__(self, books: Books) -> None:
        """Begin with everything missing."""
        self.books = books
        self.model = books.model
        self.missing = [
            count - int(placed) for count, placed in zip(books.model.replicas, books.planned.sum(axis=1), strict=True)
        ]
        """pods without a node, by set"""

    def standing(self, rows: Sequence[int]) -> tuple[Shortage, float]:
        """What decides between drafts that differ in these pod sets: what is missing, then the objective."""
        return self.shortage(rows), self.books.value(rows)

    def shortage(self, rows: Sequence[int]) -> Shortage:
        """What is missing of these pod sets, their workloads and the dependencies of these."""
        pods = sum(self.missing[row] for row in rows)
        there = set(np.flatnonzero(self.books.x.any(axis=1)).tolist()) if pods else set[int]()
        return lacking(self.model, rows, pods, there)

    def at_floor(self, rows: Sequence[int], standing: tuple[Shortage, float] | None = None) -> bool:
        """Whether no plan can be better: everybody has a node and pays nothing but the least of what plugins charge.

        `standing` is that of the pod sets, where it is known.
        """
        if self.books.interference.active:
            return False  # two pods may be better company for each other than those who were expected
        missing, value = standing or self.standing(rows)
        return not missing.pods and value <= sum(self.model.least_charge(row) for row in rows) + self.model.gain

    def place(self, row: int, within: Bools | None = None) -> bool:
        """Put a missing pod of a set on its cheapest column of those within; False if there is none."""
        able = self.books.can(row)
        if within is not None:
            able = able & within
        if not able.any():
            return False
        self.put(row, int(np.where(able, self.books.costs(row), np.inf).argmin()))
        return True

    def put(self, row: int, column: int, count: int = 1) -> None:
        """Put missing pods of a set on a column."""
        self.books.insert(row, column, count)
        self.missing[row] -= count

    def clear(self, rows: Sequence[int], columns: Sequence[int]) -> list[tuple[int, int, int]]:
        """Take the pods of the given sets off the given columns; returns set, column and count of what was there."""
        block = self.books.planned[np.ix_(rows, columns)]
        taken = [
            (rows[i], columns[k], int(block[i, k]))
            for i, k in zip(*(part.tolist() for part in block.nonzero()), strict=True)
        ]
        self.change([(row, column, -count) for row, column, count in taken])
        return taken

    def snapshot(self, rows: Sequence[int]) -> Counts:
        """int32[rows, K], the plan of some pod sets as of now."""
        planned: Counts = self.books.planned[rows]
        return planned

    def restore(self, rows: Sequence[int], planned: Counts) -> None:
        """Go back to a snapshot."""
        change = planned - self.books.planned[rows]
        number, column = change.nonzero()
        counts = change[number, column].tolist()
        self.change([(rows[i], k, n) for i, k, n in zip(number.tolist(), column.tolist(), counts, strict=True)])

    def change(self, changes: Changes) -> None:
        """Put missing pods on columns, or take some off, in many places at once."""
        self.books.change(changes)
        for row, _, count in changes:
            self.missing[row] -= count


def lacking(model: Model, rows: Iterable[int], pods: int, there: Set[int]) -> Shortage:
    """What is missing of these pod sets, where so many pods are, and these workloads alone have a replica."""
    if not pods:
        return NONE_MISSING
    workloads = {model.workload[row] for row in rows}
    ends = ({edge.caller, edge.callee} for edge in model.problem.edges)
    return Shortage(pods, len(workloads - there), sum(bool(both & workloads and both - there) for both in ends))


def cheapest(costs: Floats, able: Bools) -> int:
    """The first of the cheapest columns, -1 if there is none."""
    column = int(np.where(able, costs, np.inf).argmin())
    return column if able[column] else -1
