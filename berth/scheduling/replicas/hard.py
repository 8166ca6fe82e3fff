"""Does a finished plan keep every hard rule? Penalties of the search say how far off it is, this says yes or no."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.model import Model, Target
from berth.scheduling.replicas.order import has_order, required
from berth.scheduling.replicas.problem import Floats, Rule
from berth.scheduling.replicas.terms.affinity import RequiredAffinityTerm
from berth.scheduling.replicas.terms.network import paid
from berth.scheduling.replicas.terms.spread import SpreadTerm

NOTHING = 1e-9
"""Share or number of endpoints that may be rounding."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule that is broken."""

    subjects: Sequence[int]
    """pod sets without whose pods it would hold"""
    others: Sequence[int] = ()
    """pod sets some of whose pods may be in the way as well"""


def keeps_rules(books: Books, row: int | None = None) -> bool:
    """Whether nothing that is planned breaks a rule that the search treats as a penalty.

    Args:
        books: the plan.
        row: pod set with one pod more than when all rules held: only what it concerns is looked at.
    """
    return next(breaches(books, row), None) is None


def breaches(books: Books, row: int | None = None) -> Iterator[Breach]:
    """Rules that planned pods break, among all or among those that concern a pod set."""
    model = books.model
    numbers = range(len(books.rules)) if row is None else books.rule_numbers[row]
    waiting: list[Rule] = []
    for number in numbers:
        rule, term = model.rules[number], books.rules[number]
        if isinstance(term, RequiredAffinityTerm):
            waiting.append(rule)
        if isinstance(term, RequiredAffinityTerm | SpreadTerm) and term.required and term.broken():
            yield Breach(rule.subjects, rule.selects)
    if books.bandwidth.broken():
        ends = dict.fromkeys(
            end for edge in model.problem.edges if edge.bandwidth for end in (edge.caller, edge.callee)
        )
        yield Breach([row for end in ends for row in model.relations.sets(end)])
    yield from _beyond_limits(books, None if row is None else model.workload[row])
    if waiting and not has_order(books):
        rules = required(model)
        yield Breach(
            sorted({row for rule in rules for row in rule.subjects}), [row for rule in rules for row in rule.selects]
        )


def _beyond_limits(books: Books, workload: int | None) -> Iterator[Breach]:
    """Edges with a caller that reaches an endpoint beyond their limit that it did not reach before."""
    model = books.model
    numbers: Iterable[int] = range(len(model.targets))
    if workload is not None:
        numbers = dict.fromkeys([*model.calls[workload], *model.called[workload]])
    for number in numbers if model.limited else ():
        limit = model.limit(number)
        if limit is None:
            continue
        there = model.leaving[limit.callee]
        beyond = reached_beyond(model, limit, books.x[limit.callee] + there)
        if not beyond.any():
            continue
        before = reached_beyond(model, limit, model.placed[limit.callee] + there)
        for caller in model.callers[number]:
            homes = model.placed[caller] + model.leaving[caller] > 0
            if beyond[books.x[caller] > model.placed[caller]].any() or (beyond > before + NOTHING)[homes].any():
                yield Breach([*model.relations.sets(caller), *model.relations.sets(limit.callee)])


def reached_beyond(model: Model, limit: Target, endpoints: Floats) -> Floats:
    """How many of these endpoints a caller on each column reaches beyond the limit.

    Args:
        model: locations and zones.
        limit: the callee, with costs of 1 beyond the limit and 0 within it.
        endpoints: float64[..., K], by column, in every row as many.

    Returns:
        float64[..., K].
    """
    total = float(np.atleast_2d(endpoints)[:1].sum())
    if not total:
        return np.zeros_like(endpoints)
    here = endpoints @ model.incidence
    share = paid(model, limit, endpoints, here, total)
    kept = model.gathered(here)
    reached = np.where(model.served(kept) & (limit.near_cost is not None), kept, total)
    return np.where(share > NOTHING, share * reached.take(model.service_zone, axis=-1), 0.0)
