"""The best pairings of pods of a few workloads, by how many there are of each, on sockets that are alike.

Pods of a workload are the same to each other: of up to eight pods of four workloads there are 494 sets. What each costs
on any number of sockets is worked out at once, exactly. A larger set is made of one with a pod less: the pod goes where
it adds least, then pods move as long as that is better.

Nothing is said about room: who asks looks whether the groups fit that he is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from berth.scheduling.interference.assignment import EXACT_PODS
from berth.scheduling.interference.group_costs import REMEMBERED, ROUNDING, Change, GroupCosts, small_groups

Ints = npt.NDArray[np.int64]
PLACES: Final = 12
"""Places after the point that are kept of a cost: what is alike is the same then."""


class Pairing(NamedTuple):
    """Who is beside whom."""

    cost: float
    """sum over sockets"""
    groups: tuple[int, ...]
    """who is on each socket, as `GroupCosts` knows groups; sockets without pods are left out"""


class CountedPairings:
    """Pairings of some pods, with the costs of their groups."""

    def __init__(self, costs: GroupCosts) -> None:
        """Begin without any."""
        self.costs = costs
        """what its groups cost"""
        self.looked_at = 0
        """Pairings that were worked out."""
        self._known: dict[tuple[int, int], Pairing] = {}

    def best(self, pods: int, sockets: int) -> Pairing:
        """Return a pairing: of up to `EXACT_PODS` pods the best, of more one that no pod and no two make better.

        Args:
            pods: all pods as one group.
            sockets: how many sockets there are, 1 at least.
        """
        found = self._known.get((pods, sockets))
        if found is not None:
            return found
        rows, wanted, left = self._ways.rows, pods, list[int]()
        while found is None and wanted not in rows:
            # One less of those that are most: a set is made of the same one, whatever was asked before.
            counts = self.costs.counts(wanted)
            left.append(self.costs.strides[counts.index(max(counts))])
            wanted -= left[-1]
            found = self._known.get((wanted, sockets))
        found = found or self._keep(wanted, sockets, self._exact(rows[wanted], sockets))
        for pod in reversed(left):
            wanted += pod
            found = self._keep(wanted, sockets, self._with_one_more(found, pod, sockets))
        return found

    def _keep(self, pods: int, sockets: int, found: Pairing) -> Pairing:
        self.looked_at += 1
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        self._known[pods, sockets] = found
        return found

    @cached_property
    def _ways(self) -> _Ways:
        return _ways(len(self.costs.strides))

    @cached_property
    def _steps(self) -> list[tuple[list[float], list[int]]]:
        """For 1, 2 .. sockets, by set: what it costs there, and the way of which a part is on the last of them."""
        ways = self._ways
        alone = np.array([self.costs.cost(group) for group in ways.groups])
        lengths = np.diff(ways.begins, append=len(ways.placed))
        least, found = alone, [(alone.tolist(), ways.begins.tolist())]
        for _ in range(1, EXACT_PODS):
            costs = least[ways.placed] + alone[ways.added]
            least = np.minimum.reduceat(costs, ways.begins)
            good = np.flatnonzero(costs <= np.repeat(least, lengths) + ROUNDING)
            found.append((least.tolist(), good[np.searchsorted(good, ways.begins)].tolist()))
        return found

    def _exact(self, row: int, sockets: int) -> Pairing:
        ways, steps, used = self._ways, self._steps, min(sockets, EXACT_PODS) - 1
        cost, groups = steps[used][0][row], []
        while row:
            way = steps[used][1][row]
            groups.append(ways.groups[ways.added.item(way)])
            row, used = ways.placed.item(way), used - 1
        return Pairing(round(cost, PLACES), tuple(group for group in groups if group))

    def _with_one_more(self, before: Pairing, pod: int, sockets: int) -> Pairing:
        groups = [*before.groups, *[0] * (sockets - len(before.groups))]
        costs = self.costs.costs
        added = zip(costs([group + pod for group in groups]), costs(groups), groups, strict=True)
        to = min((then - now, group) for then, now, group in added)[1]
        groups[groups.index(to)] += pod
        while (better := self.best_change(groups)) is not None:
            groups[groups.index(better.before[0])] = better.after[0]
            groups[groups.index(better.before[1])] = better.after[1]
        return Pairing(round(sum(costs(groups)), PLACES), tuple(group for group in groups if group))

    def best_change(self, groups: Sequence[int]) -> Change | None:
        """Return the best that one pod or two can do on all sockets; None where nothing makes it better.

        Args:
            groups: who is on each socket, those without pods as well.
        """
        counts, best = Counter(groups), None
        distinct = sorted(counts)
        for at, one in enumerate(distinct):
            for other in distinct[at + (counts[one] == 1) :]:
                change = self.costs.best_change(one, other)
                if change.cost < (best.cost if best else -ROUNDING):
                    best = change
        return best


class _Ways(NamedTuple):
    """Sets of up to `EXACT_PODS` pods, R, and all ways to make each of two, those of one set after the other."""

    groups: list[int]
    """R, each as a group, ascending"""
    rows: dict[int, int]
    """number of each by its group"""
    begins: Ints
    """int64[R], where the ways of each begin; the first has all of it added"""
    placed: Ints
    """int64[ways], one part, ascending"""
    added: Ints
    """int64[ways], the other"""


@lru_cache
def _ways(workloads: int) -> _Ways:
    groups, counts = small_groups(workloads, EXACT_PODS)
    numbers, rows = np.array(groups), {group: row for row, group in enumerate(groups)}
    whole, placed = np.nonzero((counts[:, None] >= counts).all(axis=2))
    added = np.searchsorted(numbers, numbers[whole] - numbers[placed])
    return _Ways(groups, rows, np.searchsorted(whole, np.arange(len(groups))), placed, added)
