"""Who comes along into a domain where required affinity takes a pod, and whether there is room for all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from berth.scheduling.replicas.problem import Bools, Ints, Problem
from berth.scheduling.replicas.rule import Affinity

FEW = 4
"""Pod sets of which a pod must be near one, at the most for that one to be counted."""


class Tied(NamedTuple):
    """Pod sets all of whose pods must be in one domain, since those of one of them is a single pod."""

    domain: Ints
    """int64[N]"""
    rows: list[int]
    """that one first"""


class _Need(NamedTuple):
    request: Ints
    """int64[R], of a pod and its company"""
    met: Bools | None
    """bool[N], nodes in whose domain some of the company is placed already; None: none"""


class Company:
    """What pods bring into a domain at the least: one pod for each step of a chain of required affinity."""

    def __init__(self, problem: Problem, rules: Sequence[Affinity]) -> None:
        """Take the required affinity of a problem."""
        self._sets, self._free = problem.pod_sets, np.maximum(problem.nodes.free, 0)
        self._rules: dict[tuple[int, int], Affinity] = {}
        """by pod set and domain; a pod that is selected itself may come alone"""
        for rule in rules:
            for row in set(rule.subjects).difference(rule.selects):
                self._rules[row, id(rule.domain)] = rule
        self._needs: dict[tuple[int, int], _Need] = {}
        self._rooms: dict[int, Ints] = {}

    def tied(self) -> list[Tied]:
        """Pod sets that are in one domain together, whatever is planned; a chain is one, and no part of it another."""
        followers: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        for (row, key), rule in self._rules.items():
            options = self._options(row, key) if self._sets[row].replicas else []
            if len(options) == 1 and (rule.placed is None or not rule.placed.any()):
                followers[options[0], key].append(row)
        single = {end: rows for end, rows in followers.items() if self._sets[end[0]].replicas == 1}
        inside = {(row, key) for (_, key), rows in single.items() for row in rows}
        found: list[Tied] = []
        for (end, key), rows in single.items():
            if (end, key) not in inside:
                together = dict.fromkeys([end])
                queue = list(together)
                for row in queue:
                    fresh = [other for other in followers.get((row, key), ()) if other not in together]
                    together.update(dict.fromkeys(fresh))
                    queue += fresh
                found.append(Tied(self._rules[rows[0], key].domain, queue))
        return found

    def holds(self, tied: Tied, able: Sequence[Bools]) -> Bools:
        """bool[N], nodes in whose domain all pods of some tied sets may be; `able` is bool[N] by pod set."""
        sets, single = self._sets, tied.rows[0]
        alone = np.sum([sets[row].replicas * sets[row].request for row in tied.rows], axis=0)
        need = self._need(single, tied.domain)
        holds = self._enough(_Need(need.request - sets[single].request + alone, need.met), tied.domain)
        if need.met is not None:
            holds &= self._enough(_Need(alone, None), tied.domain)
        holds &= tied.domain >= 0
        for row in tied.rows:
            there = np.zeros(int(tied.domain.max(initial=-1)) + 2, dtype=np.bool_)
            there[tied.domain[able[row]]] = True
            holds &= there[tied.domain]
        return holds

    def fits(self, row: int, domain: Ints) -> Bools:
        """bool[N], nodes in whose domain there is room for a pod of a set with its company."""
        need = self._need(row, domain)
        # For one that comes alone, room in the whole domain says less than room on the node.
        alone = need.request is self._sets[row].request
        return np.ones(len(domain), dtype=np.bool_) if alone else self._enough(need, domain)

    def _enough(self, need: _Need, domain: Ints) -> Bools:
        room = self._room(domain)
        enough: Bools = ((room >= need.request) | (need.request == 0)).all(axis=1)
        return enough if need.met is None else enough | need.met

    def _room(self, domain: Ints) -> Ints:
        """int64[N, R], what is free in the whole domain of each node."""
        if id(domain) not in self._rooms:
            total = np.zeros((int(domain.max(initial=-1)) + 2, self._free.shape[1]), dtype=np.int64)
            np.add.at(total, domain, self._free)
            self._rooms[id(domain)] = total[domain]
        return self._rooms[id(domain)]

    def _need(self, row: int, domain: Ints) -> _Need:
        """Worked out from the end of the chain; who is on the way already is not counted again."""
        key, stack, on_the_way = id(domain), [row], {row}
        while stack:
            one = stack[-1]
            fresh = [other for other in self._options(one, key) if other not in on_the_way]
            fresh = [other for other in fresh if (other, key) not in self._needs]
            if fresh:
                stack.append(fresh[0])
                on_the_way.add(fresh[0])
                continue
            self._needs[one, key] = self._counted(one, domain)
            stack.pop()
        return self._needs[row, key]

    def _options(self, row: int, key: int) -> list[int]:
        """Pod sets of which one pod comes along; none if that is not known."""
        rule = self._rules.get((row, key))
        rows = [] if rule is None else [other for other in rule.selects if self._sets[other].replicas]
        return rows if len(rows) <= FEW else []

    def _counted(self, row: int, domain: Ints) -> _Need:
        request, rule = self._sets[row].request, self._rules.get((row, id(domain)))
        known = [self._needs.get((other, id(domain))) for other in self._options(row, id(domain))]
        if rule is None or not known or None in known:
            return _Need(request, None)
        options = [need for need in known if need is not None]
        met = [need.met for need in options if need.met is not None]
        if rule.placed is not None and rule.placed.any():
            met.append(np.isin(domain, domain[rule.placed > 0]))
        least = np.min([need.request for need in options], axis=0)
        return _Need(request + least, np.any(met, axis=0) if met else None)
