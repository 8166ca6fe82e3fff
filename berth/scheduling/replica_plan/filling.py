"""In which order the pods of each set are given its planned nodes: emptier domains of its hard spread first.

Whatever the order, a pod whose constraint does not hold yet gets another turn once others are assumed. So only those
constraints are followed that are likely to decide.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence

import numpy as np

from berth.scheduling.gang.budget import Budget
from berth.scheduling.replicas.problem import Ints, Rule
from berth.scheduling.replicas.rule import Spread

KEYS = 4
"""Constraints of one pod set that are followed: the strictest of each topology key, the strictest first."""
MOST = 500
"""Constraints that are followed in all: each pod counts for all of those that select it."""


def filling_order(
    rules: Sequence[Rule], counts: Sequence[Mapping[int, int]], budget: Budget
) -> Generator[None, None, list[list[int]]]:
    """Node slots of each pod set, one a pod, in turns.

    Sets take turns, pod by pod; where no constraint says otherwise, nodes come as the plan has them, each once before
    any comes again.

    Args:
        rules: of the problem.
        counts: pods of each set by node slot, as planned.
        budget: time, in turns.
    """
    own, counting = _followed(rules, counts)
    tables = {id(rule): _table(rule) for followed in own.values() for rule in followed}
    sets = [_Set(each, [(tables[id(rule)], rule.domain) for rule in own[number]]) for number, each in enumerate(counts)]
    found: list[list[int]] = [[] for _ in counts]
    waiting = [number for number, each in enumerate(counts) if each]
    while waiting:
        for number in waiting:
            yield from budget.pause()
            slot = sets[number].take()
            found[number].append(slot)
            for rule in counting[number]:
                tables[id(rule)][rule.domain[slot]] += 1
        waiting = [number for number in waiting if sets[number].left]
    return found


def _followed(
    rules: Sequence[Rule], counts: Sequence[Mapping[int, int]]
) -> tuple[Mapping[int, Sequence[Spread]], Mapping[int, Sequence[Spread]]]:
    """Constraints that decide for each pod set which node is next, and those that count its pods."""
    stated: defaultdict[int, list[Spread]] = defaultdict(list)
    for rule in rules:
        if isinstance(rule, Spread) and rule.hard:
            for number in rule.subjects:
                if len(counts[number]) > 1:
                    stated[number].append(rule)
    own: defaultdict[int, list[Spread]] = defaultdict(list)
    followed: dict[int, Spread] = {}
    for number, candidates in stated.items():
        strictest: dict[int, Spread] = {}
        for rule in sorted(candidates, key=lambda rule: rule.max_skew):
            strictest.setdefault(id(rule.domain), rule)
        for rule in [*strictest.values()][:KEYS]:
            if id(rule) in followed or len(followed) < MOST:
                followed[id(rule)] = rule
                own[number].append(rule)
    counting: defaultdict[int, list[Spread]] = defaultdict(list)
    for rule in followed.values():
        for number in rule.selects:
            counting[number].append(rule)
    return own, counting


def _table(rule: Spread) -> Ints:
    """int64[D + 1], placed pods that a constraint counts, by domain; the last entry is of nodes without one."""
    table = np.zeros(int(rule.domain.max(initial=-1)) + 2, dtype=np.int64)
    if rule.placed is not None:
        np.add.at(table, rule.domain, rule.placed)
    return table


class _Set:
    """Nodes that a pod set is to be given, each once before any comes again: those that go last leave no two on one."""

    def __init__(self, counts: Mapping[int, int], own: Sequence[tuple[Ints, Ints]]) -> None:
        """Take pods by node slot, and of each constraint to follow counts by domain and the nodes' domains."""
        self.left = sum(counts.values())
        """pods without a node"""
        self._slots = list(counts)
        self._counts = np.array([*counts.values()], dtype=np.int64)
        self._taken = np.zeros_like(self._counts)
        self._own = [(table, domain[self._slots]) for table, domain in own]
        self._round: list[int] = []

    def take(self) -> int:
        """The slot for the next pod."""
        place = self._emptiest() if self._own else self._in_order()
        self._counts[place] -= 1
        self._taken[place] += 1
        self.left -= 1
        return self._slots[place]

    def _emptiest(self) -> int:
        filled = np.max([table[domain] for table, domain in self._own], axis=0)
        filled[self._counts == 0] = np.iinfo(np.int64).max
        emptiest = np.flatnonzero(filled == filled.min())
        return int(emptiest[self._taken[emptiest].argmin()])

    def _in_order(self) -> int:
        if not self._round:
            self._round = np.flatnonzero(self._counts)[::-1].tolist()
        return self._round.pop()
