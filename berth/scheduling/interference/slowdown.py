"""How much slower workloads run beside others on one socket: the slowdown model, and what a slowdown is worth.

A slowdown is the run time beside neighbours divided by that alone. Of several neighbours the excesses add up:
1 + sum of (slowdown beside one of them - 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from berth.api.interference import InterferenceClass

Floats = npt.NDArray[np.float64]

CLASS_EXCESS: Final[dict[tuple[bool, bool], float]] = {
    (False, False): 0.01,
    (False, True): 0.06,
    (True, False): 0.07,
    (True, True): 0.23,
}
"""Excess by whether the victim is sensitive and whether the neighbour is contentious: means of the published pairs."""

STEPS: Final[tuple[tuple[float, float], ...]] = ((1.1, 0.5), (1.2, 2.0))
"""Slowdowns, and what a workload counts more that is above: limits are kept or broken, by much or little."""

PRICE: Final = 0.2
"""What it counts that a pod moves to another socket: two of them less than a workload above the first limit."""
_ROUNDING: Final = 1e-9
"""Sums differ in their last places by the order of their parts: one that is just at a limit must not be above it."""
_MILLION: Final = 1_000_000


class Workload(NamedTuple):
    """What the model knows a pod by."""

    name: str
    """name in the table, ``namespace/name`` in a cluster; others count by their class alone"""
    interference_class: InterferenceClass
    revision: int = 0
    """another one whenever the table says something else of it: what was worked out for the one before is not asked"""


class _Column(NamedTuple):
    """What all suffer beside a workload; whole millionths, so that the sum is the same in whatever order they come."""

    total: int
    victims: int

    def changed(self, before: float | None, now: float | None) -> _Column:
        """With one slowdown instead of another; None is none."""
        total = self.total + round(_MILLION * (now or 0)) - round(_MILLION * (before or 0))
        return _Column(total, self.victims + (now is not None) - (before is not None))

    @property
    def mean(self) -> float:
        return self.total / self.victims / _MILLION


def _namespace(workload: Workload) -> str:
    return workload.name.rpartition("/")[0]


def harm(slowdown: float) -> float:
    """Return what the slowdown of one workload counts: its excess, and a step for each limit that it is above."""
    return slowdown - 1 + sum(step for limit, step in STEPS if slowdown > limit + _ROUNDING)


def harms(excess: Floats) -> Floats:
    """Return the same of many slowdowns, less 1; of none, 0."""
    found = np.array(excess, dtype=np.float64)
    for limit, step in STEPS:
        found += step * (excess > limit - 1 + _ROUNDING)
    return found


class SlowdownModel:
    """Expected slowdowns: measured where there is a table, by class otherwise."""

    def __init__(self, table: Mapping[str, Mapping[str, float]] | None = None) -> None:
        """Begin with slowdowns by victim and neighbour."""
        self.table: dict[str, Mapping[str, float]] = {}
        """slowdowns by victim and neighbour"""
        self._suffered: dict[str, float] = {}
        self._caused: dict[str, _Column] = {}
        for victim, row in (table or {}).items():
            self.state(victim, row)

    def state(self, victim: str, row: Mapping[str, float]) -> set[str]:
        """Have what one workload suffers, by neighbour, instead of what was known of it; an empty row is none.

        Returns the names of workloads of which any pair may have another slowdown than before; of two that are not
        among them none has.
        """
        before = self.table.pop(victim, {})
        self._suffered.pop(victim, None)
        if row:
            self.table[victim] = row
            self._suffered[victim] = fmean(row.values()) - 1
        differing = {name for name in before.keys() | row.keys() if before.get(name) != row.get(name)}
        for name in differing:
            column = self._caused.pop(name, _Column(0, 0)).changed(before.get(name), row.get(name))
            if column.victims:
                self._caused[name] = column
        return differing | {victim} if differing else differing

    def among(self, names: Iterable[str]) -> SlowdownModel:
        """Return a model that says the same of pairs of these workloads, and that nobody changes: a thread may read it.

        It costs a look at each name, however much the table states.
        """
        found = SlowdownModel()
        for name in names:
            if name in self.table:
                found.table[name], found._suffered[name] = self.table[name], self._suffered[name]
            if name in self._caused:
                found._caused[name] = self._caused[name]
        return found

    def excess(self, victim: Workload, neighbour: Workload) -> float:
        """Return the slowdown of `victim` beside `neighbour` alone, less 1.

        A pair that was not measured, of workloads that were beside others, has half the sum of what the one suffers
        and the other causes on average; everything else goes by class. So do workloads of two namespaces: what one
        tenant states of his is no reason to place those of another by it.
        """
        measured = self.table.get(victim.name, {}).get(neighbour.name)
        if measured is not None:
            return measured - 1
        suffered, caused = self._suffered.get(victim.name), self._caused.get(neighbour.name)
        if suffered is not None and caused is not None and _namespace(victim) == _namespace(neighbour):
            return (suffered + caused.mean - 1) / 2
        return CLASS_EXCESS[victim.interference_class.sensitive, neighbour.interference_class.contentious]

    def slowdowns(self, residents: Sequence[Workload], *, together: float = 1.0) -> list[float]:
        """Return the expected slowdown of each of the pods on one socket, 1 of a pod alone.

        Args:
            residents: the pods.
            together: part of the time that two of them are on one socket; less than 1 where nobody pins them.
        """
        return [
            1 + together * sum(self.excess(victim, other) for place, other in enumerate(residents) if place != at)
            for at, victim in enumerate(residents)
        ]

    def harm(self, residents: Sequence[Workload], *, together: float = 1.0) -> float:
        """Return what the pods on one socket suffer from each other, all directions together."""
        return sum(map(harm, self.slowdowns(residents, together=together)))
