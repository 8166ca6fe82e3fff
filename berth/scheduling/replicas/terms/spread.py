"""Topology spread: a price for every pod by which a domain exceeds the emptiest eligible one plus maxSkew.

A hard constraint is the same sum over the domains that its subjects use, at the penalty of a broken rule: removing a
pod from the emptiest domain breaks it elsewhere, so it is no mask.
"""

from __future__ import annotations

import numpy as np

from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.problem import Bools, Floats
from berth.scheduling.replicas.rule import Spread
from berth.scheduling.replicas.terms.domains import spread_table


class SpreadTerm:
    """One constraint and the counts of its pods by domain."""

    def __init__(self, model: Model, rule: Spread) -> None:
        """Begin with the pods that are placed."""
        self.required = rule.hard
        self._subjects, self._selects = frozenset(rule.subjects), frozenset(rule.selects)
        self._skew = rule.max_skew
        self._price = model.penalty if rule.hard else model.problem.prices.of_spread(rule)
        domains = model.domains(rule.domain)
        self._column, self._keyed = domains.column, domains.keyed
        counted = domains.counted(rule)
        self._counted = counted.column
        self._every = bool(counted.column.all())
        table, others = spread_table(domains, rule)
        self._table = np.concatenate([table[:-1], others, [0.0]])
        """selected pods by domain; those without a column follow those with one"""
        self._present = np.concatenate([counted.present, np.ones(len(others), dtype=np.bool_), [False]])
        self._where = np.flatnonzero(self._present)
        self._from_zero = int(rule.present.sum()) < (rule.min_domains if rule.hard else 1)
        self._users = np.zeros(len(self._table))

    def change(self, row: int, column: int, count: int) -> None:
        """Count pods of a set that came (or went)."""
        domain = self._column[column]
        if domain >= 0:
            if row in self._selects and self._counted[column]:
                self._table[domain] += count
            if row in self._subjects:
                self._users[domain] += count

    def allowed(self, row: int) -> Bools | None:
        """bool[K], columns that have the key; None for sets without a hard constraint."""
        return self._keyed if self.required and row in self._subjects else None

    def _least(self) -> float:
        return 0.0 if self._from_zero else float(self._table[self._where].min())

    def _excess(self, table: Floats, least: float) -> Floats:
        excess: Floats = np.maximum(table - (least + self._skew), 0.0)
        return excess if self.required else excess * self._present

    def broken(self) -> float:
        """Pods beyond maxSkew, of a hard constraint in the domains of its subjects."""
        if not len(self._where) and not self.required:
            return 0.0
        excess = self._excess(self._table, self._least())
        return float(excess[self._users > 0].sum() if self.required else excess.sum())

    def add(self, row: int) -> Floats | float:
        """float64[K], exact change for one more pod of the set on each column."""
        selected, subject = row in self._selects, row in self._subjects
        if not len(self._where) or not (selected or (subject and self.required)):
            return 0.0
        least = self._least()
        used = self._users > 0
        table = self._table
        before = self._excess(table, least)
        after = self._excess(table + 1, least) if selected else before
        uncounted = before if self.required else None
        if self.required:
            total = float(before[used].sum())
            held = np.ones_like(used) if subject else used
            before = before * used
            after = after * held
            uncounted = before if uncounted is None else uncounted * held
        else:
            total = float(before.sum())
        change = after - before
        if selected and not self._from_zero:
            bottom = self._where[table[self._where] == least]
            if len(bottom) == 1:
                change[bottom[0]] = self._raised(int(bottom[0]), least, used, subject) - total
        by_column = change.take(self._column, mode="wrap")
        if selected and not self._every:
            other = 0.0 if uncounted is None else (uncounted - before).take(self._column, mode="wrap")
            by_column = np.where(self._counted, by_column, other)
        by_column[~self._keyed] = 0.0
        by_column *= self._price
        return by_column

    def _raised(self, domain: int, least: float, used: Bools, subject: bool) -> float:
        """The sum if the only emptiest domain got one more pod."""
        table = self._table.copy()
        table[domain] += 1
        excess = self._excess(table, least + 1)
        if not self.required:
            return float(excess.sum())
        if subject and not used[domain]:
            used = used.copy()
            used[domain] = True
        return float(excess[used].sum())

    def value(self) -> float:
        """Price or penalty as of now."""
        return self._price * self.broken()
