"""Anti-affinity: a mask for required terms and host ports, a price by ordered pairs in a domain for preferred ones."""

from __future__ import annotations

import numpy as np

from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.problem import Bools, Floats
from berth.scheduling.replicas.rule import AntiAffinity


class AntiAffinityTerm:
    """One rule and the counts of its pods by domain. Pairs of placed pods are left out: no plan changes them."""

    def __init__(self, model: Model, rule: AntiAffinity) -> None:
        """Begin with the pods that are placed."""
        self.required = rule.weight is None
        self._subjects, self._selects = frozenset(rule.subjects), frozenset(rule.selects)
        self._price = 0.0 if rule.weight is None else model.problem.prices.soft_affinity * rule.weight / 100
        domains = model.domains(rule.domain)
        self._column = domains.column
        self._matching, self._owners = domains.table(rule.placed), domains.table(rule.placed_subjects)
        self._pairs = -float(self._matching @ self._owners)
        """negative number of pairs of placed pods, and of planned pods with themselves"""

    def change(self, row: int, column: int, count: int) -> None:
        """Count pods of a set that came (or went)."""
        domain = self._column[column]
        if domain >= 0:
            selected, subject = row in self._selects, row in self._subjects
            if selected:
                self._matching[domain] += count
            if subject:
                self._owners[domain] += count
            if selected and subject:
                self._pairs -= count

    def _near(self, row: int) -> Floats | float:
        near: Floats | float = 0.0
        if row in self._subjects:
            near = self._matching.take(self._column, mode="wrap")
        if row in self._selects:
            near = near + self._owners.take(self._column, mode="wrap")
        return near

    def allowed(self, row: int) -> Bools:
        """bool[K], columns where one more pod of the set breaks nothing."""
        free: Bools = np.asarray(self._near(row)) == 0
        return free

    def add(self, row: int) -> Floats | float:
        """float64[K], exact change for one more pod of the set on each column."""
        return self._price * self._near(row)

    def pairs(self) -> float:
        """Pairs of pods of the rule in one domain, without those of placed pods."""
        return float(self._matching @ self._owners) + self._pairs

    def value(self) -> float:
        """What the rule costs now."""
        return self._price * self.pairs()
