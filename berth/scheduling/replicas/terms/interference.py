"""Interference: what the planned pods of a node add to the harm there, to each other and to those that are there.

A node's pods are a multiset; what it costs is asked once for each kind of node, and looked up from then on.
"""

from __future__ import annotations

from bisect import insort

import numpy as np

from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.problem import Counts, Floats, Ints
from berth.scheduling.replicas.sharing import Residents

_State = tuple[int, Residents]
"""Kind of the column, and the planned pods there that matter."""
_SPARE = 64


class Interference:
    """Columns by what is planned there; columns of one kind with the same pods are in the same state."""

    def __init__(self, model: Model) -> None:
        """Begin with nothing planned."""
        sharing = self._sharing = model.problem.sharing
        self.active = sharing is not None
        """whether any pods mind each other"""
        if sharing is None:
            return
        self.rows = sorted(row for row in sharing.number if model.replicas[row])
        """pod sets that matter to others"""
        kinds, start = np.unique(sharing.kind[model.columns], return_inverse=True)
        self._states: list[_State] = [(int(kind), ()) for kind in kinds.tolist()]
        self._numbers = {state: number for number, state in enumerate(self._states)}
        self._worth: list[float] = [0.0] * len(self._states)
        self._start: Ints = start.reshape(-1).astype(np.int64)
        self._now: Ints = self._start.copy()
        """int64[K], state of each column"""
        self._added: dict[int, Floats] = {}
        """float64[states], what one more pod of each number changes; NaN where nobody has asked"""

    def add(self, row: int) -> Floats | float:
        """float64[K], exact change for one more pod of the set on each column."""
        number = self._number(row)
        if number is None:
            return 0.0
        added = self._added.get(number)
        if added is None or len(added) < len(self._states):
            grown = np.full(2 * len(self._states) + _SPARE, np.nan)
            if added is not None:
                grown[: len(added)] = added
            added = self._added[number] = grown
        found: Floats = added[self._now]
        unknown = np.isnan(found)
        if unknown.any():
            for state in np.unique(self._now[unknown]).tolist():
                added[state] = self._worth[self._with(state, number, 1)] - self._worth[state]
            found = added[self._now]
        return found

    def change(self, row: int, column: int, count: int) -> None:
        """Pods of a set have come or gone."""
        number = self._number(row)
        if number is not None:
            self._now[column] = self._with(int(self._now[column]), number, count)

    def exchanged(self, row: int, column: int, other: int, target: int) -> float:
        """Exact change if a planned pod of the set and one of another set on another column changed places."""
        one, two = self._number(row), self._number(other)
        if one == two or one is None or two is None:
            return 0.0
        here, there = int(self._now[column]), int(self._now[target])
        then = self._with(self._with(here, one, -1), two, 1), self._with(self._with(there, two, -1), one, 1)
        return sum(self._worth[state] for state in then) - self._worth[here] - self._worth[there]

    def value(self) -> float:
        """What the plan costs now."""
        if not self.active:
            return 0.0
        changed = self._now[self._now != self._start]
        return float(sum(self._worth[state] for state in changed.tolist()))

    def shares(self, planned: Counts) -> Floats:
        """float64[M], what the pods of each set cost, int32[M, K] being planned: those of a node share it evenly."""
        total: Floats = np.zeros(len(planned))
        if not self.active or not self.rows:
            return total
        counts = planned[self.rows]
        by_pod = np.array([self._worth[state] for state in self._now.tolist()]) / np.maximum(counts.sum(axis=0), 1)
        total[self.rows] = counts @ by_pod
        return total

    def _number(self, row: int) -> int | None:
        return None if self._sharing is None else self._sharing.number.get(row)

    def _with(self, state: int, number: int, count: int) -> int:
        """The state with pods more, or less."""
        kind, residents = self._states[state]
        pods = list(residents)
        for _ in range(count):
            insort(pods, number)
        for _ in range(-count):
            pods.remove(number)
        then = kind, tuple(pods)
        found = self._numbers.get(then)
        if found is None:
            found = self._numbers[then] = len(self._states)
            self._states.append(then)
            self._worth.append(self._worth_of(*then))
        return found

    def _worth_of(self, kind: int, residents: Residents) -> float:
        if self._sharing is None or not residents:
            return 0.0
        if len(residents) == 1:
            return float(self._sharing.alone[residents[0], kind])
        return self._sharing.together(kind, residents)
