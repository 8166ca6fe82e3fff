"""Does a finished plan keep every hard rule? Penalties of the search say how far off it is, this says yes or no."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.problem import Routing
from berth.scheduling.replicas.rule import Affinity
from berth.scheduling.replicas.terms.affinity import RequiredAffinityTerm
from berth.scheduling.replicas.terms.spread import SpreadTerm


def keeps_rules(books: Books) -> bool:
    """Whether nothing that is planned breaks a rule that the search treats as a penalty."""
    return (
        not any(
            isinstance(term, RequiredAffinityTerm | SpreadTerm) and term.required and term.broken()
            for term in books.rules
        )
        and not books.bandwidth.broken()
        and not _beyond_limits(books)
        and _has_order(books)
    )


def _beyond_limits(books: Books) -> bool:
    """Whether a caller reaches an endpoint beyond the limit of their edge."""
    model = books.model
    if not model.limited:
        return False
    for number, beyond in enumerate(model.beyond):
        if beyond is None:
            continue
        target = model.targets[number]
        if target.routing is Routing.LOCAL:
            continue
        near = None if target.near_cost is None else beyond
        spread = beyond if near is None else np.zeros_like(beyond)
        share = books.network.reached(replace(target, spread_cost=spread, near_cost=near))
        if float(books.network.callers(number) @ share) > 1e-9 / max(1.0, books.total[target.callee]) ** 2:
            return True
    return False


def _has_order(books: Books) -> bool:
    """Whether pods with required affinity can be bound one after another: two that wait for each other never are."""
    model = books.model
    rules = defaultdict(list)
    for rule in model.problem.rules:
        if isinstance(rule, Affinity) and rule.weight is None:
            for row in rule.subjects:
                rules[row].append(rule)
    if not rules:
        return True
    waiting = {(int(row), int(column)) for row, column in np.argwhere(books.planned) if int(row) in rules}
    bound = {(int(row), int(column)) for row, column in np.argwhere(books.planned)} - waiting

    def met(rule: Affinity, row: int, column: int) -> bool:
        domain = rule.domain[model.columns[column]]
        if rule.placed is not None and rule.placed[rule.domain == domain].any():
            return True
        if any(r in rule.selects and rule.domain[model.columns[k]] == domain for r, k in bound):
            return True
        if row not in rule.selects or (rule.placed is not None and rule.placed.any()):
            return False
        return not any(r in rule.selects and r in rule.subjects for r, _ in bound)

    while waiting:
        now = sorted((row, column) for row, column in waiting if all(met(rule, row, column) for rule in rules[row]))
        if not now:
            return False
        # One at a time: the first of its kind opens the domain for the others.
        bound.add(now[0])
        waiting.remove(now[0])
    return True
