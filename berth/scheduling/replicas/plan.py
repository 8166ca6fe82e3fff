"""The joint plan: columns, starts, improvement, kicks, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from berth.scheduling.gang.budget import UNLIMITED, Budget
from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.columns import choose_columns
from berth.scheduling.replicas.hard import keeps_rules
from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.problem import Ints, Problem
from berth.scheduling.replicas.result import Plan, result_of
from berth.scheduling.replicas.search.draft import Draft
from berth.scheduling.replicas.search.exact import Exact
from berth.scheduling.replicas.search.fill import complete, fill
from berth.scheduling.replicas.search.improve import improve
from berth.scheduling.replicas.search.kicks import kick
from berth.scheduling.replicas.search.patterns import patterns
from berth.scheduling.replicas.search.template import parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is tried as long as the budget lasts."""

    patterns: int = 6
    """zone patterns that are filled"""
    improved: int = 2
    """starts that are improved"""
    kicks: int = 30
    """rounds of kicks for a small problem; fewer for larger ones"""
    steps: int = 20_000
    """of exact search, for problems small enough"""
    seed: int = 0
    """of kicks"""


def plan(problem: Problem, *, partial: bool = False, budget: Budget = UNLIMITED, effort: Effort | None = None) -> Plan:
    """Place the pods of a problem, all of them or none.

    Args:
        problem: nodes, workloads, rules and prices.
        partial: place as many as possible, and among those plans the cheapest.
        budget: time; without time left the best plan so far is the answer.
        effort: how much is tried; the default suits applications of up to a few hundred pods.
    """
    effort = effort or Effort()
    rng = np.random.default_rng(effort.seed)
    draft = None
    for columns in choose_columns(problem):
        draft = _search(Model(problem, columns), budget, effort, rng)
        if not any(draft.missing) and keeps_rules(draft.books):
            break
        if budget.exhausted:
            break
    if draft is None:
        raise ValueError("a problem without nodes has no plan")
    valid = keeps_rules(draft.books) and (partial or not any(draft.missing))
    return result_of(draft, valid, cut_short=budget.cut_short)


def _search(model: Model, budget: Budget, effort: Effort, rng: np.random.Generator) -> Draft:
    books = Books(model)
    draft = Draft(books)
    empty = draft.snapshot()
    starts: list[tuple[tuple[int, float], Ints]] = []
    template = parts(books)
    for pattern in patterns(books, effort.patterns):
        if starts and budget.over:
            break
        fill(draft, pattern, template)
        starts.append((draft.standing, draft.snapshot()))
        draft.restore(empty)
    if not starts:
        complete(draft)
        return draft
    distinct: dict[tuple[int, float], Ints] = {}
    for (missing, value), planned in sorted(starts, key=lambda start: start[0]):
        distinct.setdefault((missing, round(value, 6)), planned)
    best, standing = starts[0][1], None
    for planned in list(distinct.values())[: effort.improved]:
        draft.restore(planned)
        improve(draft, budget)
        complete(draft)
        if standing is None or draft.standing < standing:
            best, standing = draft.snapshot(), draft.standing
        if budget.over:
            break
    draft.restore(best)
    exact = Exact(draft, budget, effort.steps)
    if exact.run() and exact.proved:
        return draft
    kick(draft, budget, rng, _rounds(model, effort))
    return draft


def _rounds(model: Model, effort: Effort) -> int:
    """Kicks by the size of the problem: they pay where a few moves reach everything."""
    size = sum(model.replicas) * model.size
    return effort.kicks if size <= 200 else effort.kicks * 200 // size
