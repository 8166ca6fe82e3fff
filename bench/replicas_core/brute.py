"""The best plan in counts by trying all of them: branch and bound over the judge's plain loops, for a few pods.

What one pod set, or two of them, cost is tabled before; whatever more of them share is asked as soon as all of them are
decided. A branch ends where what is decided and the least of the rest cannot beat the best state.
"""

from __future__ import annotations

import math
from itertools import combinations_with_replacement

import numpy as np
import numpy.typing as npt

from bench.replicas_core.judge import Judge, Nodes, Part
from berth.scheduling.replicas.problem import Problem

Floats = npt.NDArray[np.float64]


class TooLargeError(Exception):
    """More states than anybody wants to wait for."""


def best(problem: Problem, limit: int = 200_000, below: float = math.inf) -> tuple[float, list[Nodes] | None]:
    """The lowest objective and a state that has it; (infinite, None) where no placement exists.

    Args:
        problem: a small one.
        limit: decisions after which to give up.
        below: only placements that are better than this are looked for.

    Raises:
        TooLargeError: the limit is reached.
    """
    return _Search(problem, limit, below).run()


class _Search:
    def __init__(self, problem: Problem, limit: int, below: float) -> None:
        self._problem, self._limit, self._judge = problem, limit, Judge(problem)
        size = len(problem.pod_sets)
        self._state: list[Nodes] = [()] * size
        self._record: list[Nodes] | None = None
        self._lowest = below
        self._shared = [part for part in self._judge.parts if len(set(part.rows)) > 2]
        self._options: list[list[Nodes]] = []
        costs: dict[int, Floats] = {}
        for row in range(size):
            self._options.append(list(combinations_with_replacement(range(problem.nodes.size), self._pods(row))))
            costs[row] = self._table(row)
            keep = np.flatnonzero(np.isfinite(costs[row]))
            self._options[row], costs[row] = [self._options[row][k] for k in keep.tolist()], costs[row][keep]
        self._usage = [self._requests(row) for row in range(size)]
        self._together = self._pairs()
        self._least = {pair: table.min(axis=1, initial=math.inf) for pair, table in self._together.items()}
        self._costs = costs

    def run(self) -> tuple[float, list[Nodes] | None]:
        base = sum(part.value(self._state) for part in self._judge.parts if not part.rows)
        free = self._problem.nodes.free.astype(np.int64)
        self._descend(base, {row: self._room(row, cost, free) for row, cost in self._costs.items()}, free)
        return (math.inf, None) if self._record is None else (self._lowest, self._record)

    def _pods(self, row: int) -> int:
        return self._problem.pod_sets[row].replicas

    def _table(self, row: int) -> Floats:
        """float64[P]: what each way to place a pod set costs whatever the others do."""
        parts = [part for part in self._judge.parts if part.rows == (row,)]
        values = []
        for nodes in self._options[row]:
            self._state[row] = nodes
            values.append(sum(part.value(self._state) for part in parts))
        self._state[row] = ()
        return np.array(values, dtype=np.float64)

    def _requests(self, row: int) -> npt.NDArray[np.int64]:
        """int64[P, N, R]: what each way takes of each node."""
        free = self._problem.nodes.free
        usage = np.zeros((len(self._options[row]), *free.shape), dtype=np.int64)
        for number, nodes in enumerate(self._options[row]):
            for node in nodes:
                usage[number, node] += self._problem.pod_sets[row].request
        return usage

    def _pairs(self) -> dict[tuple[int, int], Floats]:
        """float64[P, P'] by pair of pod sets, both orders: what two of them share."""
        tables: dict[tuple[int, int], Floats] = {}
        for part in self._judge.parts:
            if len(set(part.rows)) != 2:
                continue
            a, b = sorted(set(part.rows))
            values = np.zeros((len(self._options[a]), len(self._options[b])))
            for i, one in enumerate(self._options[a]):
                self._state[a] = one
                for j, other in enumerate(self._options[b]):
                    self._state[b] = other
                    values[i, j] = part.value(self._state)
            self._state[a] = self._state[b] = ()
            for pair, table in (((a, b), values), ((b, a), values.T)):
                tables[pair] = tables[pair] + table if pair in tables else table
        return tables

    def _room(self, row: int, costs: Floats, free: npt.NDArray[np.int64]) -> Floats:
        """The costs, infinite where a node has no room; what is reserved is judged by the judge."""
        usage = self._usage[row]
        return np.where(((usage <= free) | (usage == 0)).all(axis=(1, 2)), costs, math.inf)

    def _descend(self, value: float, costs: dict[int, Floats], free: npt.NDArray[np.int64]) -> None:
        if not costs:
            self._lowest, self._record = value, list(self._state)
            return
        bounds = {}
        for row, own in costs.items():
            bounds[row] = own + sum(
                self._least[row, other] for other in costs if other > row and (row, other) in self._least
            )
        least = {row: float(bound.min(initial=math.inf)) for row, bound in bounds.items()}
        floor = value + sum(least.values())
        if not floor < self._lowest - 1e-9:
            return
        row = min(costs, key=lambda row: (np.count_nonzero(floor - least[row] + bounds[row] < self._lowest), row))
        decided = [other for other in range(len(self._state)) if other not in costs or other == row]
        asked = [part for part in self._shared if row in part.rows and set(part.rows) <= set(decided)]
        for number in np.argsort(bounds[row], kind="stable").tolist():
            if not floor - least[row] + bounds[row][number] < self._lowest - 1e-9:
                break
            self._limit -= 1
            if self._limit < 0:
                raise TooLargeError
            self._state[row] = self._options[row][number]
            total = value + float(costs[row][number]) + self._asked(asked)
            if total < self._lowest - 1e-9:
                left = free - self._usage[row][number]
                rest = {other: cost for other, cost in costs.items() if other != row}
                for other, cost in rest.items():
                    table = self._together.get((row, other))
                    rest[other] = self._room(other, cost if table is None else cost + table[number], left)
                self._descend(total, rest, left)
        self._state[row] = ()

    def _asked(self, parts: list[Part]) -> float:
        """What parts of several pod sets cost, the first broken rule ends it."""
        total = 0.0
        for part in parts:
            total += part.value(self._state)
            if math.isinf(total):
                break
        return total
