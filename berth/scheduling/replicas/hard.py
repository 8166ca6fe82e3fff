"""Does a finished plan keep every hard rule? Penalties of the search say how far off it is, this says yes or no."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.order import has_order
from berth.scheduling.replicas.problem import Routing
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
        and has_order(books)
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
