"""The joint plan: columns, starts, improvement, kicks, and what became of it."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from berth.network.routing import Routing
from berth.scheduling.gang.budget import BEFORE_LONG, UNLIMITED, Budget
from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.columns import choose_columns
from berth.scheduling.replicas.hard import keeps_rules
from berth.scheduling.replicas.hopeless import with_hopeless, without_hopeless
from berth.scheduling.replicas.lasting import lasting_first
from berth.scheduling.replicas.model import LARGE, Model
from berth.scheduling.replicas.near import near_enough
from berth.scheduling.replicas.problem import Counts, Problem
from berth.scheduling.replicas.result import Plan, result_of
from berth.scheduling.replicas.runner_ups import runner_ups
from berth.scheduling.replicas.search.draft import NONE_MISSING, Draft, Shortage
from berth.scheduling.replicas.search.exact import Exact, without_room
from berth.scheduling.replicas.search.fill import complete, fill_blocks, fill_node, fill_slices, slots_of, turns_of
from berth.scheduling.replicas.search.improve import improve
from berth.scheduling.replicas.search.kicks import kick
from berth.scheduling.replicas.search.leave_out import leave_out
from berth.scheduling.replicas.search.patterns import patterns
from berth.scheduling.replicas.search.repair import repair
from berth.scheduling.replicas.search.template import cut_cost, parts

SMALL = 200
"""Pods times columns up to which kicks are not cut down."""
FEW = 12
"""Workloads up to which exact search may take all steps to beat a plan."""
MANY = 400
"""Pods that belong together up to which more than the best start is improved."""
MANY_RESUMED = 200
"""The same of :attr:`Effort.resumed`: of larger plans these starts take twice the time for a hundredth or two."""

_Standing = tuple[Shortage, float]
"""what is missing, and the objective"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is tried as long as the budget lasts."""

    patterns: int = 6
    """zone patterns that are filled"""
    improved: int = 2
    """starts that are improved"""
    resumed: int = 4
    """the same where replicas are placed to whom a Service keeps calls near"""
    kicks: int = 30
    """rounds of kicks for a small problem; fewer for larger ones"""
    rescue: int = 20
    """rounds of kicks at least while some pod has no node"""
    steps: int = 20_000
    """of exact search, for problems small enough"""
    first_steps: int = 500
    """of it before kicks, where there is a plan: most proofs take less, and what has none needs time for kicks"""
    seed: int = 0
    """of kicks"""


def plan(
    problem: Problem, *, partial: bool = False, budget: Budget = UNLIMITED, effort: Effort | None = None
) -> Generator[None, None, Plan]:
    """Place the pods of a problem, all of them or none, in turns; the problem's arrays must not change in between.

    Args:
        problem: nodes, workloads, rules and prices.
        partial: place as many as possible, and among those plans one that leaves the fewest workloads without a
            replica, then the fewest dependencies without one of their ends, then the cheapest.
        budget: time; without time left the best plan so far is the answer.
        effort: how much is tried; the default suits applications of up to a few hundred pods.
    """
    effort = effort or Effort()
    asked, problem = problem, (yield from without_hopeless(problem, budget, whole=not partial))
    problem = yield from near_enough(problem, budget, whole=not partial)
    rng = np.random.default_rng(effort.seed)
    best: tuple[_Quality, Draft] | None = None
    for columns in choose_columns(problem):
        yield from budget.pause(BEFORE_LONG)
        model = Model(problem, columns)
        yield from budget.pause(BEFORE_LONG)
        draft = yield from _search(model, budget, effort, rng)
        quality = yield from _quality(draft, budget)
        # Penalties of the search say how far off a rule is, and may weigh less than what breaking it saves.
        if quality.broken or (partial and not quality.whole):
            yield from repair(draft, budget, rng, effort.rescue)
            quality = yield from _quality(draft, budget)
        if best is None or quality < best[0]:
            best = quality, draft
        if quality.whole or budget.exhausted or (partial and budget.over):
            break
    if best is None:
        draft = Draft(Books(Model(problem, np.zeros(0, dtype=np.int64))))
        best = (yield from _quality(draft, budget)), draft
    quality, draft = best
    if partial and not quality.whole:
        yield from leave_out(draft, budget)
    keep, cut_short = quality.whole or partial, budget.cut_short
    others = (yield from runner_ups(draft.books, budget)) if keep else {}
    lasting = yield from lasting_first(draft, budget)
    yield from budget.pause(BEFORE_LONG)
    made = result_of(draft, keep=keep, cut_short=cut_short, runner_ups=others, lasting=lasting)
    return with_hopeless(made, asked, problem)


class _Quality(NamedTuple):
    """What decides between plans, the lower the better."""

    broken: bool
    missing: Shortage
    value: float

    @property
    def whole(self) -> bool:
        return not self.broken and not self.missing.pods


def _quality(draft: Draft, budget: Budget) -> Generator[None, None, _Quality]:
    yield from budget.pause(BEFORE_LONG)
    broken = not keeps_rules(draft.books)
    yield from budget.pause(BEFORE_LONG)
    value = draft.books.value()
    return _Quality(broken, draft.shortage(range(len(draft.missing))), value)


def _search(model: Model, budget: Budget, effort: Effort, rng: np.random.Generator) -> Generator[None, None, Draft]:
    """Place what belongs together, one component after another."""
    draft = Draft(Books(model))
    yield from budget.pause(BEFORE_LONG)
    for rows in model.components():
        yield from _place(draft, rows, budget, effort)
    yield from budget.pause()
    waiting = [row for row, count in enumerate(model.replicas) if count]
    if draft.at_floor(waiting) and keeps_rules(draft.books):
        return draft
    # Exact search knows nothing of interference: it finds a plan where there is none yet.
    together = draft.books.interference.active
    stands = not any(draft.missing) and keeps_rules(draft.books)
    again: Exact | None = None
    if not (together and stands) and not without_room(model):
        exact = Exact(draft, budget, _steps(model, min(effort.first_steps, effort.steps)) if stands else effort.steps)
        searched = yield from exact.run()
        if searched and exact.proved and (exact.best is None or not together):
            return draft
        again = exact if searched and stands else None
    yield from budget.pause()
    if any(draft.missing) or not keeps_rules(draft.books):
        # Those that have nothing to do with each other may still be in each other's way.
        yield from improve(draft, budget, waiting)
        yield from complete(draft, budget, waiting)
        yield from kick(draft, budget, rng, waiting, max(effort.rescue, _rounds(model, waiting, effort)))
        return draft
    for rows in model.components():
        yield from kick(draft, budget, rng, rows, _rounds(model, rows, effort))
    if again is not None:
        again.steps = _steps(model, effort.steps)
        yield from again.run()
    return draft


def _place(draft: Draft, rows: Sequence[int], budget: Budget, effort: Effort) -> Generator[None, None, None]:
    """The best of several starts, improved."""
    replicas = [draft.model.replicas[row] for row in rows]
    if max(replicas) == 1:
        # Nothing is to be spread: one node may do.
        empty = draft.snapshot(rows)
        yield from fill_node(draft, budget, rows)
        if draft.at_floor(rows):
            return
        draft.restore(rows, empty)
    starts = yield from _starts(draft, rows, budget, effort, starts_to_improve(draft.model, rows, effort))
    found: list[tuple[_Standing, Counts]] = []
    for _, planned in sorted(starts.items(), key=lambda start: start[0]):
        if found and budget.over:
            break
        draft.restore(rows, planned)
        yield from improve(draft, budget, rows)
        yield from complete(draft, budget, rows)
        found.append((draft.standing(rows), draft.snapshot(rows)))
    if found:
        draft.restore(rows, min(found, key=lambda end: end[0])[1])


def _starts(
    draft: Draft, rows: Sequence[int], budget: Budget, effort: Effort, keep: int
) -> Generator[None, None, dict[_Standing, Counts]]:
    """Fill the most promising patterns; returns the best of these plans, none if the draft is as good as can be.

    Once the best one is what its pattern promised, patterns that promise worse than the plans to keep are left out.
    """
    books = draft.books
    empty = draft.snapshot(rows)
    yield from budget.pause(BEFORE_LONG)
    templates = {1: (yield from parts(books, rows, budget=budget))}
    yield from budget.pause()
    starts: dict[_Standing, Counts] = {}
    # Without room enough for its slices a pattern promises something near a penalty, whatever it is worth.
    trusted, kept_promise = books.model.penalty / LARGE, False
    promising = yield from patterns(books, budget, rows, effort.patterns)
    for promise, pattern in promising:
        if kept_promise and len(starts) == keep and max(starts) < (NONE_MISSING, promise) and promise < trusted:
            continue
        slots = slots_of(pattern)
        turns = turns_of(books.model, rows, slots)
        block = max(turns.count(slot) for slot in set(turns))
        if block not in templates:
            yield from budget.pause(BEFORE_LONG)
            templates[block] = yield from parts(books, rows, block, budget)
        ways = [(fill_slices, 1, pattern)]
        if templates[block] != templates[1]:
            ways.append((fill_blocks, block, slots))
        for way, size, where in ways:
            if starts and budget.over:
                break
            draft.restore(rows, empty)
            yield from way(draft, budget, where, templates[size])
            missing, value = draft.standing(rows)
            if draft.at_floor(rows, (missing, value)):
                return {}
            start = missing, round(value, 6)
            if not starts or start < min(starts):
                kept_promise = promise < trusted and start <= (NONE_MISSING, promise + cut_cost(books, templates[size]))
            starts.setdefault(start, draft.snapshot(rows))
            if len(starts) > keep:
                del starts[max(starts)]
    return starts


def starts_to_improve(model: Model, rows: Sequence[int], effort: Effort) -> int:
    """Return how many starts of a plan of these pod sets are improved."""
    pods = sum(model.replicas[row] for row in rows)
    if pods <= MANY_RESUMED and _resumes(model, rows):
        return effort.resumed
    return effort.improved if pods <= MANY else 1


def _resumes(model: Model, rows: Sequence[int]) -> bool:
    """Whether workloads of these pod sets have placed replicas to whom a Service keeps calls near.

    A slice beyond those has endpoints of its own, but its pods look dear as long as it is not complete: patterns with
    one promise too little, and what fills them is no good before it is improved.
    """
    return any(
        model.problem.workloads[workload].routing is not Routing.ALL and model.placed[workload].any()
        for workload in {model.workload[row] for row in rows}
    )


def _rounds(model: Model, rows: Sequence[int], effort: Effort) -> int:
    """Kicks by the size of the problem: they pay where a few moves reach everything."""
    size = sum(model.replicas[row] for row in rows) * model.size
    return effort.kicks if size <= SMALL else effort.kicks * SMALL // size


def _steps(model: Model, steps: int) -> int:
    """Of so many steps of exact search those that are worth it beside a plan: of many workloads few are proved."""
    workloads = {model.workload[row] for row, count in enumerate(model.replicas) if count}
    return int(steps * (FEW / max(FEW, len(workloads))) ** 3)
