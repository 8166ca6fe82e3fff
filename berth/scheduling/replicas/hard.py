"""Does a finished plan keep every hard rule? Penalties of the search say how far off it is, this says yes or no."""

from __future__ import annotations

import numpy as np

from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.model import Model, Target
from berth.scheduling.replicas.order import has_order
from berth.scheduling.replicas.problem import Floats
from berth.scheduling.replicas.terms.affinity import RequiredAffinityTerm
from berth.scheduling.replicas.terms.network import paid
from berth.scheduling.replicas.terms.spread import SpreadTerm

NOTHING = 1e-9
"""Share or number of endpoints that may be rounding."""


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
    """Whether a caller reaches an endpoint beyond the limit of their edge, or a placed one more of them than before."""
    model = books.model
    if not model.limited:
        return False
    for number in range(len(model.targets)):
        limit = model.limit(number)
        if limit is None:
            continue
        beyond = _reached_beyond(model, limit, books.x[limit.callee])
        if not beyond.any():
            continue
        before = _reached_beyond(model, limit, model.placed[limit.callee])
        for caller in model.callers[number]:
            there = model.placed[caller]
            if beyond[books.x[caller] > there].any() or (beyond > before + NOTHING)[there > 0].any():
                return True
    return False


def _reached_beyond(model: Model, limit: Target, endpoints: Floats) -> Floats:
    """float64[K], how many of these endpoints, float64[K], a caller on each column reaches beyond the limit."""
    total = float(endpoints.sum())
    if not total:
        return np.zeros(model.size)
    here = endpoints @ model.incidence
    share = paid(model, limit, endpoints, here, total)
    reached = np.full(model.locations, total) if limit.near_cost is None else np.where(model.served(here), here, total)
    return np.where(share > NOTHING, share * reached.take(model.location), 0.0)
