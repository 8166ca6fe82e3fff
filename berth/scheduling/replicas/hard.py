"""Does a finished plan keep every hard rule? Penalties of the search say how far off it is, this says yes or no."""

from __future__ import annotations

import numpy as np

from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.order import has_order
from berth.scheduling.replicas.terms.affinity import RequiredAffinityTerm
from berth.scheduling.replicas.terms.network import paid
from berth.scheduling.replicas.terms.spread import SpreadTerm

NOTHING = 1e-12
"""Share of calls that may be rounding."""


def keeps_rules(books: Books) -> bool:
    """Whether nothing that is planned breaks a rule that the search treats as a penalty."""
    return (
        not any(
            isinstance(term, RequiredAffinityTerm | SpreadTerm) and term.required and term.broken()
            for term in books.rules
        )
        and not books.bandwidth.broken()
        and not _beyond_limits(books)
        and has_order(books)
    )


def _beyond_limits(books: Books) -> bool:
    """Whether a caller reaches an endpoint beyond the limit of their edge that it did not reach before."""
    model = books.model
    if not model.limited:
        return False
    for number in range(len(model.targets)):
        limit = model.limit(number)
        if limit is None:
            continue
        callee = limit.callee
        beyond = books.network.reached(limit) > NOTHING
        placed = model.placed[callee]
        before = np.zeros_like(beyond)
        if placed.any():
            before = paid(model, limit, placed, placed @ model.incidence, float(placed.sum())) > NOTHING
        for caller in model.callers[number]:
            there = model.placed[caller]
            if (beyond & (books.x[caller] > there)).any() or (beyond & ~before & (there > 0)).any():
                return True
    return False
