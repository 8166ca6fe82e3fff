"""What pods cost on a node that are known by their classes alone: they count by how many there are of each."""

from __future__ import annotations

from collections.abc import Iterable
from operator import mul
from typing import Final, NamedTuple

from berth.api.interference import InterferenceClass
from berth.scheduling.interference.closeness import MILLI, need_of, spans
from berth.scheduling.interference.counted_pairings import CountedPairings
from berth.scheduling.interference.group_costs import MOST, STRIDE, GroupCosts
from berth.scheduling.interference.least_slowdown import LeastSlowdown
from berth.scheduling.interference.residents import Kind, Layout, Resident
from berth.scheduling.interference.slowdown import Workload

CLASSES: Final = {Workload("", letter): STRIDE**at for at, letter in enumerate(InterferenceClass)}
"""Pods that are known by their class alone, and one of each as a group."""


class _Counted(NamedTuple):
    """Pods that are known by their classes alone."""

    group: int
    """all of them, as `GroupCosts` knows groups"""
    number: int
    """how many they are"""
    size: int
    """what they take together"""
    sizes: dict[int, int]
    """what the largest of each class takes, by one of it as a group, ascending"""

    def with_one_more(self, one: int, size: int) -> _Counted:
        """Return the same with a pod more, one of its class as a group."""
        sizes = self.sizes | {one: max(size, self.sizes[one])}
        return _Counted(self.group + one, self.number + 1, self.size + size, sizes)


def _counted(kind: Kind) -> _Counted | None:
    """Return the pods of a kind whose sockets are pinned and that are known by their classes alone; None of others."""
    if not kind.layout.pinned or not kind.layout.capacities:
        return None
    group, taken, sizes = 0, 0, dict.fromkeys(CLASSES.values(), 0)
    for workload, size in kind.residents:
        one = CLASSES.get(workload)
        if one is None:
            return None
        group += one
        taken += size
        sizes[one] = max(size, sizes[one])
    return _Counted(group, len(kind.residents), taken, sizes)


class ByClass:
    """Costs of pods that are known by their classes alone, of one slowdown model."""

    def __init__(self, judge: LeastSlowdown) -> None:
        """Begin without any; `judge` knows what pods on a socket cost."""
        self._judge = judge
        self._pairings: dict[tuple[int, int], CountedPairings] = {}

    @property
    def looked_at(self) -> int:
        """Pairings that were worked out."""
        return sum(each.looked_at for each in self._pairings.values())

    def added(self, before: Kind, newcomer: Resident) -> float | None:
        """Return what a newcomer adds; None where one is known by more than its class, or may not fit so."""
        now, one = _counted(before), CLASSES.get(newcomer.workload)
        if now is None or one is None:
            return None
        then = self._of_counted(before.layout, now.with_one_more(one, newcomer.size))
        cost = None if then is None else self._of_counted(before.layout, now)
        return None if then is None or cost is None else max(0.0, then - cost)

    def cost(self, kind: Kind) -> float | None:
        """Return the cost of a kind; None where one is known by more than its class, or may not fit so."""
        pods = _counted(kind)
        return None if pods is None else self._of_counted(kind.layout, pods)

    def _of_counted(self, layout: Layout, pods: _Counted) -> float | None:
        """Cost of pods that are known by their classes alone; None where they may not fit so."""
        capacities, _, caches, cores = layout
        smallest, most, largest = min(capacities), max(caches, default=1), max(pods.sizes.values())
        if pods.number > MOST or (caches and min(caches) < most):
            return None
        if largest >= smallest or spans(largest, smallest, most):
            return None
        # Of pods that keep a CPU busy each, who meets on SMT siblings is told by their number.
        alike = cores[0] if cores and largest <= MILLI and len(set(zip(capacities, cores, strict=True))) == 1 else 0
        alike = alike if pods.number > alike else 0
        counted = self._pairings.get((most, alike))
        if counted is None:
            counted = CountedPairings(self._judge.group_costs(list(CLASSES), most, alike))
            self._pairings[most, alike] = counted
        found, largest_of = counted.best(pods.group, max(1, min(len(capacities), pods.number))), pods.sizes.values()
        if pods.size > smallest and not _fit(counted.costs, found.groups, largest_of, smallest):
            return None  # where they take less, all of them fit on one
        # A pairing in which nobody meets on SMT siblings costs what it does without these, where nothing is cheaper.
        for capacity, own in set(zip(capacities, cores, strict=True)) if cores and not alike else ():
            needed = [need_of(size, capacity, 1, own).cores for size in largest_of] if own else []
            if pods.number * max(needed, default=0) > own and not _fit(counted.costs, found.groups, needed, own):
                return None
        return found.cost


def _fit(costs: GroupCosts, groups: Iterable[int], largest: Iterable[int], room: int) -> bool:
    """Whether each group has room on a socket if all of a class take as much as the largest."""
    takes = list(largest)
    return all(sum(map(mul, costs.counts(group), takes)) <= room for group in set(groups))
