"""The books of a search: counts by column, room, and what one more pod of a set would change on every column at once.

A broken rule that a later move may mend (a hard spread constraint, a required affinity term, a limit on the network
cost, a node's bandwidth) is a penalty far above any cost; one that no later move mends (room, masks, anti-affinity,
host ports) rules a column out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.problem import Bools, Counts, Floats, Ints
from berth.scheduling.replicas.rule import Affinity, AntiAffinity
from berth.scheduling.replicas.terms.affinity import PreferredAffinityTerm, RequiredAffinityTerm
from berth.scheduling.replicas.terms.anti_affinity import AntiAffinityTerm
from berth.scheduling.replicas.terms.bandwidth import Bandwidth
from berth.scheduling.replicas.terms.interference import Interference
from berth.scheduling.replicas.terms.limits import Limits
from berth.scheduling.replicas.terms.load import Load
from berth.scheduling.replicas.terms.network import Network
from berth.scheduling.replicas.terms.spread import SpreadTerm
from berth.scheduling.replicas.terms.survival import Survival

RuleTerm = AntiAffinityTerm | PreferredAffinityTerm | RequiredAffinityTerm | SpreadTerm


class Books:
    """What is planned, and what it costs."""

    def __init__(self, model: Model) -> None:
        """Begin with what is placed."""
        self.model = model
        self.planned: Counts = np.zeros((len(model.workload), model.size), dtype=np.int32)
        """int32[M, K], pods of each set by column"""
        # Side by side, so that what is done to all of a workload's counts is done at once.
        self.counts: Floats = np.zeros((len(model.placed), model.size + model.locations + model.service_zones))
        """float64[W, K + L + S], replicas by column, location and service zone, placed ones among them"""
        self.x, self.by_location, self.by_service = model.split(self.counts)
        self.x[:] = model.placed
        self.by_location[:] = _summed(self.x, model.location, model.locations)
        self.by_service[:] = _summed(self.x, model.service_zone, model.service_zones)
        self.by_zone: Floats = _summed(self.x, model.zone, model.zones)
        """float64[W, Z]"""
        self.total: list[float] = self.x.sum(axis=1).tolist()
        """replicas of each workload"""
        self.free: Ints = np.asfortranarray(model.free)
        """int64[K, R]; negative where a node is over-committed"""
        # Of any size: a few pods may ask for more of an amount than an int64 holds.
        demand = np.array(model.replicas, dtype=object) @ model.request
        scarce: list[bool] = (model.free.min(axis=0, initial=np.iinfo(np.int64).max) < demand).tolist()
        self._needs = [
            [(resource, amount) for resource, amount in enumerate(request) if amount and scarce[resource]]
            for request in model.request.tolist()
        ]
        """what a pod of each set wants free of each resource that it requests at all and that all pods on one node may
        use up; the rest may be over-committed"""
        self.network = Network(model, self.counts, self.total)
        self.load = Load(model, self.counts, self.network.shares, self.total)
        self.limits = Limits(model, self.counts, self.total)
        self.bandwidth = Bandwidth(model, self.x)
        self.survival = Survival(model, self.x, self.by_zone, self.total)
        self.interference = Interference(model)
        self.rules: list[RuleTerm] = []
        self.rule_numbers: list[list[int]] = [[] for _ in model.workload]
        """positions in `rules` of those that each pod set takes part in"""
        self._rules_of: list[list[RuleTerm]] = [[] for _ in model.workload]
        self._masks_of: list[list[AntiAffinityTerm | RequiredAffinityTerm | SpreadTerm]] = [[] for _ in model.workload]
        self._compile_rules()
        for workload, count in enumerate(self.total):
            if count:
                self._sync(workload)

    def _compile_rules(self) -> None:
        model = self.model
        for number, rule in enumerate(model.rules):
            term: RuleTerm
            if isinstance(rule, AntiAffinity):
                term = AntiAffinityTerm(model, rule)
            elif isinstance(rule, Affinity):
                term = (RequiredAffinityTerm if rule.weight is None else PreferredAffinityTerm)(model, rule)
            else:
                term = SpreadTerm(model, rule)
            self.rules.append(term)
            for row in {*rule.subjects, *rule.selects}:
                self._rules_of[row].append(term)
                self.rule_numbers[row].append(number)
                if not isinstance(term, PreferredAffinityTerm) and term.required:
                    self._masks_of[row].append(term)

    def can(self, row: int) -> Bools:
        """bool[K], columns that take one more pod of the set."""
        able: Bools = self.model.allowed[row]
        free = self.free
        for resource, amount in self._needs[row]:
            able = able & (free[:, resource] >= amount)
        for term in self._masks_of[row]:
            allowed = term.allowed(row)
            if allowed is not None:
                able = able & allowed
        return able

    def follows(self, row: int) -> bool:
        """Whether pods of the set must be near others."""
        return any(isinstance(term, RequiredAffinityTerm) and term.binds(row) for term in self._masks_of[row])

    def kept_apart(self, rows: Iterable[int]) -> bool:
        """Whether required anti-affinity holds for pods of these sets that have moved together."""
        terms = {id(term): term for row in rows for term in self._masks_of[row]}.values()
        return not any(isinstance(term, AntiAffinityTerm) and term.pairs() for term in terms)

    def costs(self, row: int) -> Floats:
        """float64[K], exact change of the objective for one more pod of the set on each column."""
        workload = self.model.workload[row]
        change = self.network.add(workload) + self.survival.add(workload)
        if self.interference.active:
            change = change + self.interference.add(row)
        if self.load.callees:
            change = change + self.load.add(workload)
        if self.bandwidth.active:
            change = change + self.bandwidth.add(workload)
        if self.limits.active:
            change = change + self.limits.add(workload)
        for term in self._rules_of[row]:
            if not isinstance(term, AntiAffinityTerm) or not term.required:
                change = change + term.add(row)
        charge = self.model.charge[row]
        if charge is not None:
            change = change + charge
        return change if isinstance(change, np.ndarray) else np.full(self.model.size, change)

    def add(self, row: int) -> Floats:
        """float64[K], the same, infinite on columns that do not take the pod."""
        change: Floats = np.where(self.can(row), self.costs(row), np.inf)
        return change

    def wishes(self, row: int, column: int) -> tuple[Floats, Bools]:
        """Exact change of the objective if a pod of the set moved from a column to each one, and which take it."""
        self._count(row, column, -1)
        change = self.costs(row)
        able = self.can(row).copy()
        self._count(row, column, 1)
        change -= change[column]
        return change, able

    def takers(self, row: int, column: int) -> Bools:
        """bool[K], columns that take a pod of the set which leaves the given one."""
        self._count(row, column, -1)
        able = self.can(row).copy()
        self._count(row, column, 1)
        return able

    def moves_by_term(self, row: int, column: int) -> tuple[dict[str, Floats], Bools]:
        """float64[K] by term of the objective, the change for such moves, and which columns take the pod.

        A broken hard rule is part of its term; what plugins charge is left out.
        """
        workload = self.model.workload[row]
        self._count(row, column, -1)
        terms: dict[str, Floats | float] = {
            "network": self.network.add(workload),
            "survival": self.survival.add(workload),
        }
        if self.load.callees:
            terms["load"] = self.load.add(workload)
        if self.interference.active:
            terms["interference"] = self.interference.add(row)
        if self.bandwidth.active:
            terms["bandwidth"] = self.bandwidth.add(workload)
        if self.limits.active:
            terms["network"] = terms["network"] + self.limits.add(workload)
        for term in self._rules_of[row]:
            if not isinstance(term, AntiAffinityTerm) or not term.required:
                terms["rules"] = terms.get("rules", 0.0) + term.add(row)
        able = self.can(row).copy()
        self._count(row, column, 1)
        nothing = np.zeros(self.model.size)
        return {name: nothing + term - (nothing + term)[column] for name, term in terms.items()}, able

    def relief(self, row: int, column: int) -> float:
        """Exact change of the objective if a planned pod of the set went."""
        self._count(row, column, -1)
        change = float(self.costs(row)[column])
        self._count(row, column, 1)
        return -change

    def insert(self, row: int, column: int, count: int = 1) -> None:
        """Plan pods of a set on a column."""
        self._count(row, column, count)
        self.free[column] -= count * self.model.request[row]
        self._sync(self.model.workload[row])

    def change(self, changes: Sequence[tuple[int, int, int]]) -> None:
        """Plan pods in many places at once: set, column and how many more (or less)."""
        for row, column, count in changes:
            self._count(row, column, count)
            self.free[column] -= count * self.model.request[row]
        for workload in dict.fromkeys(self.model.workload[row] for row, _, _ in changes):
            self._sync(workload)

    def remove(self, row: int, column: int, count: int = 1) -> None:
        """Take planned pods of a set off a column."""
        self.insert(row, column, -count)

    def move(self, row: int, column: int, target: int) -> None:
        """Move a planned pod of a set."""
        self._count(row, column, -1)
        self.free[column] += self.model.request[row]
        self._count(row, target, 1)
        self.free[target] -= self.model.request[row]
        self._sync(self.model.workload[row])

    def _count(self, row: int, column: int, count: int) -> None:
        model = self.model
        workload = model.workload[row]
        self.planned[row, column] += count
        self.x[workload, column] += count
        self.by_location[workload, model.location[column]] += count
        self.by_zone[workload, model.zone[column]] += count
        self.by_service[workload, model.service_zone[column]] += count
        self.total[workload] += count
        if self.bandwidth.active:
            self.bandwidth.moved(workload)
        if self.interference.active:
            self.interference.change(row, column, count)
        for term in self._rules_of[row]:
            term.change(row, column, count)

    def _sync(self, workload: int) -> None:
        self.load.sync(workload, self.network.sync(workload))
        if self.limits.active:
            self.limits.sync(workload)

    def value(self, rows: Iterable[int] | None = None) -> float:
        """The objective with penalties of broken rules: the whole, or all terms that some pod sets take part in."""
        model = self.model
        if rows is None:
            targets: Collection[int] = range(len(model.targets))
            survivors: Collection[int] = range(len(self.total))
            callees: Iterable[int] = self.load.callees
            rules: Iterable[RuleTerm] = self.rules
            rows = range(len(model.workload))
        else:
            rows = list(rows)
            survivors = dict.fromkeys(model.workload[row] for row in rows)
            targets = {target for w in survivors for target in (*model.calls[w], *model.called[w])}
            callees = {callee for w in survivors for callee in (w, *model.callees[w])} if self.load.callees else ()
            rules = {id(term): term for row in rows for term in self._rules_of[row]}.values()
        total = self.network.value(targets)
        total += sum(self.survival.value(w) for w in survivors) + sum(self.load.value(w) for w in callees)
        total += sum(term.value() for term in rules if not (isinstance(term, AntiAffinityTerm) and term.required))
        for row in rows:
            charge = model.charge[row]
            if charge is not None:
                total += float(self.planned[row] @ charge)
        if self.interference.active:
            total += self.interference.value()
        if self.limits.active:
            total += self.limits.value(survivors)
        return total + (self.bandwidth.value() if self.bandwidth.active else 0.0)


def _summed(x: Floats, place: Ints, places: int) -> Floats:
    """float64[W, places]: counts by column added up by place."""
    table: Floats = np.zeros((len(x), places))
    there = np.flatnonzero(x.any(axis=0))  # few columns, or none, have a placed replica
    np.add.at(table.T, place[there], x.T[there])
    return table
