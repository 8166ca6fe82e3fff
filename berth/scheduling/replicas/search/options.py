"""All ways to place one workload, and what each costs by itself and together with each way to place another one."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator
from itertools import combinations_with_replacement, permutations
from math import comb, prod

import numpy as np

from berth.network.routing import Routing
from berth.scheduling.gang.budget import BEFORE_LONG, Budget
from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.hard import NOTHING, reached_beyond
from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.problem import Floats, Ints
from berth.scheduling.replicas.rule import AntiAffinity
from berth.scheduling.replicas.search.joint_rules import Counts, Part, load_part, rule_part
from berth.scheduling.replicas.terms.network import paid

MOST = 400
"""Ways to place one workload at most."""
MOST_FIGURES = 10_000_000
"""Of all pairs of ways of workloads that call each other, 80 MB: a hundred workloads of two replicas that all call each
other would have 60 times as many. Of all rules that are tabled likewise: they take 0.2 s then."""


class Options:
    """Ways to place every workload that has pods to place."""

    def __init__(self, books: Books, rows: dict[int, list[int]]) -> None:
        """Take the books' empty plan, of which `work_out` works out all ways; `rows` are pod sets by workload."""
        self._books = books
        self.model: Model = books.model
        self.rows = rows
        self.workloads = sorted(rows)
        self.counts: dict[int, Floats] = {}
        """float64[P, K] by pod set, the ways of its workload"""
        self.total: dict[int, Floats] = {}
        """float64[P, K] by workload, replicas with the placed ones"""
        self.usage: dict[int, Ints] = {}
        """int64[P, K, R] by workload, what its pods request"""
        self.alone: dict[int, Floats] = {}
        """float64[P] by workload, what each way costs whatever the others do; infinite where it breaks a rule"""
        self.together: dict[tuple[int, int], Floats] = {}
        """float64[P, P'] by pair of workloads, both orders, what two ways cost together"""
        self.parts: list[tuple[set[int], Part]] = []
        """terms of several workloads, and which"""
        self._left = MOST_FIGURES
        """figures that tables of rules may still have"""

    def work_out(self, budget: Budget) -> Generator[None, None, None]:
        """Make all tables, in turns."""
        for workload in self.workloads:
            yield from budget.pause()
            self._enumerate(workload)
        for workload in self.workloads:
            yield from budget.pause()
            self.alone[workload] = self._unary(workload)
        yield from self._pairs(budget)
        for found in self._parts():
            yield from budget.pause(BEFORE_LONG)
            if found is None:
                continue
            among, part = found
            if len(among) > 1:
                self.parts.append(found)
            for workload in among if len(among) == 1 else ():
                self.alone[workload] = self.alone[workload] + part(self.of(workload))

    @staticmethod
    def few(books: Books) -> dict[int, list[int]] | None:
        """The pod sets of each workload; None if there are too many ways to place one, or two that call each other."""
        model = books.model
        rows: dict[int, list[int]] = {}
        ways: dict[int, int] = {}
        for row, count in enumerate(model.replicas):
            if count:
                workload = model.workload[row]
                able = int(np.count_nonzero(books.can(row)))
                rows.setdefault(workload, []).append(row)
                ways[workload] = ways.get(workload, 1) * comb(able + count - 1, count)
                if ways[workload] > MOST:
                    return None
        pairs = {frozenset((edge.caller, edge.callee)) for edge in model.problem.edges}
        figures = sum(prod(ways[workload] for workload in pair) for pair in pairs if pair <= ways.keys())
        return rows if figures <= MOST_FIGURES else None

    def of(self, workload: int) -> Counts:
        """Counts of a workload's pod sets, all ways."""
        return {row: self.counts[row] for row in self.rows[workload]}

    def _enumerate(self, workload: int) -> None:
        model = self.model
        sets = []
        for row in self.rows[workload]:
            able = np.flatnonzero(self._books.can(row)).tolist()
            ways = list(combinations_with_replacement(able, model.replicas[row]))
            table = np.zeros((len(ways), model.size))
            for number, way in enumerate(ways):
                np.add.at(table[number], list(way), 1.0)
            sets.append(table)
        every = np.arange(prod(len(table) for table in sets))
        total = np.repeat(model.placed[workload][None, :], len(every), axis=0)
        usage = np.zeros((*total.shape, model.request.shape[1]), dtype=np.int64)
        later = len(every)
        for row, table in zip(self.rows[workload], sets, strict=True):
            # The last changes fastest. np.indices does not take more than 63 sets.
            later //= max(1, len(table))
            self.counts[row] = table[every // later % len(table)]
            total = total + self.counts[row]
            usage += self.counts[row].astype(np.int64)[:, :, None] * model.request[row]
        self.total[workload], self.usage[workload] = total, usage

    def _unary(self, workload: int) -> Floats:
        model, prices = self.model, self.model.problem.prices
        x = self.total[workload]
        cost: Floats = np.zeros(len(x))
        for row in self.rows[workload]:
            charge = model.charge[row]
            if charge is not None:
                cost = cost + self.counts[row] @ charge
        if len(x) and x[0].sum() >= 2:
            by_zone = x @ (model.zone[:, None] == np.arange(model.zones))
            cost = cost + prices.survive_node * ((x > 0).sum(axis=1) == 1)
            cost = cost + prices.survive_zone * ((by_zone > 0).sum(axis=1) == 1)
        for edge, number in zip(model.problem.edges, model.target_of, strict=True):
            if edge.caller == workload and edge.callee not in self.total:
                cost = cost + self._edge(number, workload, x, model.placed[edge.callee][None, :])[:, 0]
            elif edge.callee == workload and edge.caller not in self.total:
                cost = cost + self._edge(number, edge.caller, model.placed[edge.caller][None, :], x)[0]
        return cost

    def _pairs(self, budget: Budget) -> Generator[None, None, None]:
        model, table = self.model, self.together
        for edge, number in zip(model.problem.edges, model.target_of, strict=True):
            if edge.caller in self.total and edge.callee in self.total:
                yield from budget.pause()
                cost = self._edge(number, edge.caller, self.total[edge.caller], self.total[edge.callee])
                for pair, values in (((edge.caller, edge.callee), cost), ((edge.callee, edge.caller), cost.T)):
                    table[pair] = table[pair] + values if pair in table else values

    def _edge(self, number: int, caller: int, callers: Floats, endpoints: Floats) -> Floats:
        """float64[P, P']: cost of an edge for all ways of its callers and endpoints; infinite beyond its limit."""
        model, target = self.model, self.model.targets[number]
        here = endpoints @ model.incidence
        total = float(endpoints[0].sum()) if len(endpoints) else 0.0
        calling = callers.sum(axis=1, keepdims=True)
        if not total:
            return np.zeros((len(callers), len(endpoints)))
        share = callers / np.maximum(calling, 1.0)
        limit = model.limit(number)
        value: Floats = share @ paid(model, model.plain(number), endpoints, here, total).T
        if limit is None:
            return value
        # Calls of pods that go later, and those to them, keep to limits as well.
        kept = model.leaving[target.callee]
        beyond = reached_beyond(model, limit, endpoints + kept)
        more = beyond > reached_beyond(model, limit, model.placed[target.callee] + kept) + NOTHING
        there = model.placed[caller]
        homes = there + model.leaving[caller] > 0
        # What pods that are placed already reached before is no fault of the plan.
        broken = (callers > there).astype(np.float64) @ (beyond > 0).T + (homes & more).any(axis=1)
        return np.where(broken > 0, np.inf, value)

    def _parts(self) -> Iterator[tuple[set[int], Part] | None]:
        """Terms of rules and load; None comes after one that is in the tables."""
        model = self.model
        for rule in model.rules:
            among = {model.workload[row] for row in (*rule.subjects, *rule.selects) if model.replicas[row]}
            if len(among) > 1 and isinstance(rule, AntiAffinity) and self._tables(among):
                self._part_by_pairs(rule, among)
                yield None
            elif among:
                yield among, self._padded(rule_part(model, rule))
        if model.problem.prices.load:
            for callee, called in enumerate(model.called):
                callers = model.called_by[callee]
                among = {callee, *callers} & set(self.workloads)
                if called and among and model.problem.workloads[callee].routing is not Routing.ALL:
                    yield among, load_part(model, callee, callers, self.rows)

    def _tables(self, among: set[int]) -> bool:
        """Whether to table one more rule, by pairs of workloads that need not call each other."""
        figures = sum(len(self.total[workload]) for workload in among) ** 2
        if figures > self._left:
            return False
        self._left -= figures
        return True

    def _part_by_pairs(self, rule: AntiAffinity, among: set[int]) -> None:
        """Add a rule that counts pairs of pods to the tables, so that two workloads that break it end a branch."""
        domains = self.model.domains(rule.domain)
        incidence = (domains.column[:, None] == np.arange(domains.size)).astype(np.float64)
        placed, owners = domains.table(rule.placed)[:-1], domains.table(rule.placed_subjects)[:-1]
        price = self.model.problem.prices.soft_affinity * (rule.weight or 0) / 100

        def cost(pairs: Floats) -> Floats:
            return np.where(pairs > 0, np.inf, 0.0) if rule.weight is None else price * pairs

        def planned(workload: int, rows: Collection[int]) -> Floats:
            nobody = np.zeros((len(self.total[workload]), self.model.size))
            found: Floats = sum((self.counts[row] for row in self.rows[workload] if row in rows), nobody)
            table: Floats = found @ incidence
            return table

        meant = {workload: planned(workload, rule.selects) for workload in among}
        bound = {workload: planned(workload, rule.subjects) for workload in among}
        both = {*rule.subjects} & {*rule.selects}
        for workload in among:
            own = (meant[workload] * bound[workload]).sum(axis=1) - planned(workload, both).sum(axis=1)
            self.alone[workload] = self.alone[workload] + cost(
                own + meant[workload] @ owners + bound[workload] @ placed
            )
        for one, other in permutations(among, 2):
            more = cost(meant[one] @ bound[other].T + bound[one] @ meant[other].T)
            self.together[one, other] = self.together[one, other] + more if (one, other) in self.together else more

    def _padded(self, part: Part) -> Part:
        """The part with counts of pod sets that have nothing to place."""
        model = self.model
        nothing = {row: np.zeros(model.size) for row, count in enumerate(model.replicas) if not count}
        return (lambda counts: part({**nothing, **counts})) if nothing else part
