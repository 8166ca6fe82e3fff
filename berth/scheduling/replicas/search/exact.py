"""Exact search of small problems: depth first over all ways to place one workload after another.

What two workloads cost together is tabled, and whatever else they share is added as soon as all but one of those who
share it are placed. A branch ends where the sum of what is placed and the least of what is not cannot beat the best
plan. So a plan is found whenever one exists, and the cheapest one unless time or steps run out.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from berth.scheduling.gang.budget import BEFORE_LONG, Budget
from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.hard import keeps_rules
from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.problem import Counts, Floats
from berth.scheduling.replicas.rule import Affinity
from berth.scheduling.replicas.search.alike import kinds, one_of_each, told_apart
from berth.scheduling.replicas.search.draft import Draft
from berth.scheduling.replicas.search.loads import Loads
from berth.scheduling.replicas.search.options import Options

LARGEST = 5000
"""Pods times columns of problems that are looked at at all."""


class Exact:
    """One search, from an empty draft or with a plan to beat."""

    def __init__(self, draft: Draft, budget: Budget, steps: int) -> None:
        """Take a draft whose plan is to be beaten."""
        self._draft, self._budget = draft, budget
        self.steps = steps
        """what is left of them"""
        self._rows = range(len(draft.missing))
        model = draft.model
        self.best: Counts | None = None
        """int64[M, K], the best plan so far"""
        self.lowest = np.inf
        """what it costs, as `unpunished` has it"""
        self.proved = False
        """whether nothing better exists"""
        self._known: Options | None = None
        self._tied = any(isinstance(rule, Affinity) and rule.weight is None for rule in model.rules)

    def run(self) -> Generator[None, None, bool]:
        """Search; False if the problem is too large to begin with.

        Another run, with more steps, has another plan of the draft to beat.
        """
        draft = self._draft
        if sum(draft.model.replicas) * draft.model.size > LARGEST:
            return False
        kept = draft.snapshot(self._rows)
        if not any(draft.missing) and keeps_rules(draft.books):
            self.best, self.lowest = kept, unpunished(draft.books)
        draft.restore(self._rows, np.zeros_like(kept))
        if self._known is None:
            yield from self._budget.pause(BEFORE_LONG)
            rows = Options.few(draft.books)
            if rows is None or any(
                draft.missing[row] and not rows.get(draft.model.workload[row]) for row in range(len(draft.missing))
            ):
                draft.restore(self._rows, kept)
                return False
            self._known = Options(draft.books, rows)
            yield from self._known.work_out(self._budget)
        options = self._options = self._known
        books = draft.books
        base = constant(books)
        self._free, self._chosen = books.free.copy(), dict[int, int]()
        self._loads = Loads(books, options) if books.bandwidth.active else None
        self._taken = np.zeros(0) if self._loads is None else self._loads.settled
        self._kind = kinds(draft.model)
        self._most = {w: usage.max(axis=0, initial=0) for w, usage in options.usage.items()}
        costs = {workload: options.alone[workload] for workload in options.workloads}
        self._least = {pair: table.min(axis=1, initial=np.inf) for pair, table in options.together.items()}
        ready = {w: self._fitting(w, costs[w]) for w in options.workloads}
        self.proved = yield from self._descend(base, ready)
        draft.restore(self._rows, kept if self.best is None else self.best)
        return True

    @property
    def _late(self) -> bool:
        """A first plan may take longer than a better one."""
        return self._budget.over if self.best is not None else self._budget.exhausted

    def _fitting(self, workload: int, costs: Floats) -> Floats:
        """The costs, infinite for ways that have no room or too little bandwidth beside what is decided."""
        usage, most = self._options.usage[workload], self._most[workload]
        able = np.ones(len(usage), dtype=np.bool_)
        if not ((most <= self._free) | (most == 0)).all():
            able = ((usage <= self._free) | (usage == 0)).all(axis=(1, 2))
        if self._loads is not None:
            able &= self._loads.fits(self._taken + self._loads.more(workload, self._chosen))
        return np.where(able, costs, np.inf)

    def _bounds(self, costs: dict[int, Floats]) -> dict[int, Floats]:
        """Per workload, its costs and the least of what each pair with a later one costs: a pair counts once."""
        bounds = {}
        for workload, own in costs.items():
            bound = own
            for other in costs:
                if other > workload and (workload, other) in self._least:
                    bound = bound + self._least[workload, other]
            bounds[workload] = bound
        return bounds

    def _descend(self, value: float, costs: dict[int, Floats]) -> Generator[None, None, bool]:
        """Place the rest; False if steps or time ran out."""
        if not costs:
            return self._take(value)
        bounds = self._bounds(costs)
        least = {workload: float(bound.min(initial=np.inf)) for workload, bound in bounds.items()}
        floor = value + sum(least.values())
        if not floor < self.lowest - self._draft.model.gain:
            return True
        slack = {w: floor - least[w] + bound for w, bound in bounds.items()}
        workload = min(costs, key=lambda w: (int(np.count_nonzero(slack[w] < self.lowest - self._draft.model.gain)), w))
        ways = [self._options.counts[row] for row in self._options.rows[workload]]
        for number in one_of_each(self._kind, ways, np.argsort(slack[workload], kind="stable").tolist()):
            if not slack[workload][number] < self.lowest - self._draft.model.gain:
                break
            self.steps -= 1
            yield from self._budget.pause()
            if self.steps < 0 or self._late:
                return False
            placed = yield from self._place(workload, number, value, costs)
            if not placed:
                return False
        return True

    def _place(self, workload: int, number: int, value: float, costs: dict[int, Floats]) -> Generator[None, None, bool]:
        options, free, taken, kind = self._options, self._free, self._taken, self._kind
        if self._loads is not None:
            self._taken = taken + self._loads.more(workload, self._chosen)[number]
        self._chosen[workload] = number
        self._free = free - options.usage[workload][number]
        self._kind = told_apart(kind, (options.counts[row][number] for row in options.rows[workload]))
        after = {}
        for other, own in costs.items():
            if other == workload:
                continue
            cost = own
            if (workload, other) in options.together:
                cost = cost + options.together[workload, other][number]
            for among, part in options.parts:
                if workload in among and other in among and all(w == other or w in self._chosen for w in among):
                    cost = cost + part(self._counts(among, other))
            after[other] = self._fitting(other, cost)
            if not np.isfinite(after[other]).any():
                done = True
                break
        else:
            done = yield from self._descend(value + float(costs[workload][number]), after)
        self._free, self._taken, self._kind = free, taken, kind
        del self._chosen[workload]
        return done

    def _counts(self, among: set[int], varying: int) -> dict[int, Floats]:
        options = self._options
        counts = {}
        for workload in among:
            for row in options.rows[workload]:
                table = options.counts[row]
                counts[row] = table if workload == varying else table[self._chosen[workload]]
        return counts

    def _take(self, value: float) -> bool:
        options = self._options
        planned = np.zeros_like(self._draft.books.planned)
        for workload, number in self._chosen.items():
            for row in options.rows[workload]:
                planned[row] = options.counts[row][number].astype(np.int32)
        if self._tied:
            # Orders of binding are judged for whole plans only.
            self._draft.restore(self._rows, planned)
            valid = keeps_rules(self._draft.books)
            self._draft.restore(self._rows, np.zeros_like(planned))
            if not valid:
                return True
        self.lowest, self.best = value, planned
        return True


def without_room(model: Model) -> bool:
    """Whether pods request more than all nodes together have: a search would try each way to place all but the last."""
    wanted = np.array(model.replicas, dtype=np.int64) @ model.request
    return bool((wanted > np.maximum(model.free, 0).sum(axis=0))[wanted > 0].any())


def unpunished(books: Books) -> float:
    """The objective of a plan that keeps all rules.

    The books hold a penalty against calls beyond their limit between pods that are there, which no plan can help.
    """
    model, network = books.model, books.network
    value = books.value()
    for number in range(len(model.targets)) if model.limited else ():
        if model.limit(number) is not None:
            unlimited = network.reached(model.plain(number))
            value += float(network.callers(number) @ (unlimited - network.reach(number)))
    if books.limits.active:
        value -= books.limits.value(range(len(model.placed)))
    return value


def constant(books: Books) -> float:
    """What the plan costs with nothing planned: edges, load and survival among what is placed."""
    waiting = {books.model.workload[row] for row, count in enumerate(books.model.replicas) if count}
    model = books.model
    total = 0.0
    for edge, number in zip(model.problem.edges, model.target_of, strict=True):
        if edge.caller not in waiting and edge.callee not in waiting:
            total += books.network.edge_value(edge.caller, number)
    for workload, called in enumerate(model.called):
        if workload not in waiting:
            total += books.survival.value(workload)
            if called and waiting.isdisjoint(model.called_by[workload]):
                total += books.load.value(workload)
    moved = {row for row, count in enumerate(model.replicas) if count}
    for rule, term in zip(model.rules, books.rules, strict=True):
        if not moved & {*rule.subjects, *rule.selects} and not term.required:
            total += term.value()
    return total
