"""Counts of pods by topology domain, read by column.

Only domains with a column have an entry in a table: a plan changes no others. Tables have one entry more than there
are such domains: the last one belongs to nodes without the key (domain -1) and stays 0, so that indexing with a
column's domain never needs a bounds check.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from berth.scheduling.replicas.problem import Bools, Floats, Ints
from berth.scheduling.replicas.rule import Spread


class Domains:
    """The domains of one topology key, those with a column numbered anew."""

    def __init__(self, domain: Ints, columns: Ints) -> None:
        """Take the domain of every node, int64[N], and the columns, int64[K]."""
        self._domain, self._columns = domain, columns
        here = domain[columns]
        self._known = np.unique(here[here >= 0])
        self._number = np.full(int(domain.max(initial=-1)) + 2, -1, dtype=np.int64)
        self._number[self._known] = np.arange(len(self._known))
        self.size = len(self._known)
        """number of domains D with a column"""
        self.column: Ints = self._number[here]
        """int64[K], domain of each column, -1 without the key"""
        self.keyed: Bools = self.column >= 0
        """bool[K], columns that have the key"""
        self.single = len(self._known) == int(np.count_nonzero(self.keyed))
        """whether no two columns share a domain"""
        self._counted: dict[int, Counted] = {}

    def table(self, by_node: Ints | None) -> Floats:
        """float64[D + 1]: pods by node, int64[N], added up by domain."""
        table: Floats = np.zeros(self.size + 1)
        if by_node is not None:
            number, counts = self._numbered(by_node)
            inside = number >= 0
            np.add.at(table, number[inside], counts[inside])
        return table

    def outside(self, by_node: Ints | None) -> Floats:
        """float64[N], the pods that are in domains without a column, other entries 0."""
        rest: Floats = np.zeros(len(self._domain))
        if by_node is not None:
            rest = np.where((self._domain >= 0) & (self._number[self._domain] < 0), by_node, 0.0)
        return rest

    def _numbered(self, by_node: Ints) -> tuple[Ints, Ints]:
        nodes = np.flatnonzero(by_node)
        return self._number[self._domain[nodes]], by_node[nodes]

    def by_domain(self, by_node: Floats) -> Floats:
        """float64[all domains]: amounts by node, float64[N], of nodes with the key added up by domain as it was."""
        keyed = self._domain >= 0
        total: Floats = np.bincount(
            self._domain[keyed], weights=by_node[keyed], minlength=len(self._number) - 1
        ).astype(np.float64)
        return total

    def counted(self, rule: Spread) -> Counted:
        """What a topology spread constraint counts; rules with the same eligible nodes share it."""
        key = id(rule.eligible)
        if key not in self._counted:
            eligible = self.keyed if rule.eligible is None else self.keyed & rule.eligible[self._columns]
            present = rule.present[self._known]
            self._counted[key] = Counted(eligible, present, int(rule.present.sum() - present.sum()))
        return self._counted[key]


@dataclass(frozen=True, slots=True)
class Counted:
    """Nodes and domains that a topology spread constraint counts."""

    column: Bools
    """bool[K], columns whose pods count"""
    present: Bools
    """bool[D], eligible domains"""
    outside: int
    """number of eligible domains without a column"""


def spread_table(domains: Domains, rule: Spread) -> tuple[Floats, Floats]:
    """Placed pods that a constraint counts, by domain: those with a column, and eligible ones without one.

    Of the latter all that are empty are one.

    Returns:
        float64[D + 1] and float64[others].
    """
    counted, placed = domains.counted(rule), rule.placed
    if placed is None or not placed.any():
        return domains.table(None), np.zeros(min(1, counted.outside))
    eligible = rule.domain >= 0 if rule.eligible is None else rule.eligible & (rule.domain >= 0)
    here = np.where(eligible, placed, 0)
    others = domains.by_domain(domains.outside(here))
    others = others[others > 0]
    return domains.table(here), np.append(others, np.zeros(min(1, counted.outside - len(others))))
