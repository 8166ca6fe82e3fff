"""Affinity: a price for every pod with a preferred term and no other selected pod in its domain; required terms.

A required term is a price as well while the search may still mend it: one for every domain that subjects use and that
holds no *anchor*, a selected pod that does not have the rule itself. While no selected pod is placed anywhere, one such
domain with a subject that is selected itself is free: somebody must be the first.
"""

from __future__ import annotations

import numpy as np

from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.problem import Bools, Floats
from berth.scheduling.replicas.rule import Affinity
from berth.scheduling.replicas.terms.domains import Domains


class PreferredAffinityTerm:
    """One preferred term and the counts of its pods by domain."""

    required = False

    def __init__(self, model: Model, rule: Affinity) -> None:
        """Begin with the pods that are placed."""
        self._subjects, self._selects = frozenset(rule.subjects), frozenset(rule.selects)
        self._price = model.problem.prices.soft_affinity * (rule.weight or 0) / 100
        domains = model.domains(rule.domain)
        self._column = domains.column
        self._matching = domains.table(rule.placed)
        self._owners, self._alike = domains.table(rule.placed_subjects), domains.table(None)
        self._lost = unmet_outside(domains, rule)
        """subjects on nodes without the key, and those whose domain no plan reaches"""
        # Placed subjects are not told apart: those of a rule that selects its own subjects are selected themselves.
        if self._subjects and self._subjects <= self._selects:
            self._alike, self._owners = self._owners, self._alike

    def change(self, row: int, column: int, count: int) -> None:
        """Count pods of a set that came (or went)."""
        domain = self._column[column]
        subject, selected = row in self._subjects, row in self._selects
        if domain < 0:
            self._lost += count * subject
            return
        if selected:
            self._matching[domain] += count
        if subject:
            (self._alike if selected else self._owners)[domain] += count

    @staticmethod
    def _unmet(matching: Floats, owners: Floats, alike: Floats) -> Floats:
        unmet: Floats = owners * (matching == 0) + alike * (matching == 1)
        return unmet

    def add(self, row: int) -> Floats | float:
        """float64[K], exact change for one more pod of the set on each column."""
        subject, selected = row in self._subjects, row in self._selects
        now = self._unmet(self._matching, self._owners, self._alike)
        after = self._unmet(
            self._matching + selected, self._owners + (subject and not selected), self._alike + (subject and selected)
        )
        change = after - now
        change[-1] = subject
        return self._price * change.take(self._column, mode="wrap")

    def value(self) -> float:
        """What the rule costs now."""
        return self._price * (float(self._unmet(self._matching, self._owners, self._alike)[:-1].sum()) + self._lost)


def unmet_outside(domains: Domains, rule: Affinity) -> float:
    """Placed pods with a preferred term that is not met, in domains without a column."""
    if rule.placed_subjects is None or not rule.placed_subjects.any():
        return 0.0
    owners = domains.by_domain(domains.outside(rule.placed_subjects))
    matching = domains.by_domain(domains.outside(rule.placed))
    alike = bool(rule.subjects) and set(rule.subjects) <= set(rule.selects)
    return float(owners[matching == alike].sum())


class RequiredAffinityTerm:
    """One required term and the counts of its pods by domain."""

    required = True

    def __init__(self, model: Model, rule: Affinity) -> None:
        """Begin with the pods that are placed."""
        self._subjects, self._selects = frozenset(rule.subjects), frozenset(rule.selects)
        self._price = model.penalty
        domains = model.domains(rule.domain)
        self._column, self._keyed = domains.column, domains.keyed
        self._anchors, self._users = domains.table(rule.placed), domains.table(None)
        self._alike = domains.table(None)
        """subjects that are selected themselves"""
        self._exempt = not (rule.placed is not None and rule.placed.any())

    def change(self, row: int, column: int, count: int) -> None:
        """Count pods of a set that came (or went)."""
        domain = self._column[column]
        if domain < 0:
            return
        if row in self._subjects:
            self._users[domain] += count
            if row in self._selects:
                self._alike[domain] += count
        elif row in self._selects:
            self._anchors[domain] += count

    def binds(self, row: int) -> bool:
        """Whether pods of the set have the rule and are not selected themselves."""
        return row in self._subjects and row not in self._selects

    def allowed(self, row: int) -> Bools | None:
        """bool[K], columns that have the key; None for sets without the rule."""
        return self._keyed if row in self._subjects else None

    def broken(self) -> float:
        """Domains with subjects and without anchors, beyond the one that may be first."""
        lonely = (self._users > 0) & (self._anchors == 0)
        count = int(np.count_nonzero(lonely))
        return float(count - (self._exempt and bool((lonely & (self._alike > 0)).any())))

    def add(self, row: int) -> Floats | float:
        """float64[K], change of the penalty for one more pod of the set on each column."""
        unanchored = self._anchors == 0
        lonely = (self._users > 0) & unanchored
        first = lonely & (self._alike > 0)
        count, firsts = np.count_nonzero(lonely), np.count_nonzero(first)
        if row in self._subjects:
            after = count + (~lonely & unanchored)
            able = firsts + unanchored > 0 if row in self._selects else np.full(len(unanchored), firsts > 0)
        elif row in self._selects:
            after = count - lonely
            able = firsts - first > 0
        else:
            return 0.0
        change = (after - (able & self._exempt)) - float(count - (self._exempt and firsts > 0))
        change[-1] = 0.0
        by_column: Floats = self._price * change.take(self._column, mode="wrap")
        return by_column

    def value(self) -> float:
        """Penalty as of now."""
        return self._price * self.broken()
