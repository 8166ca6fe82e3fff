"""Strategy `greedy`: one pass over all nodes, largest component first, each on its cheapest feasible node.

The plain baseline: no lookahead, no local search, no shortlist. Ties go to the node with the least free amount of the
first resource (best fit), then to the first node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.gang.placement_state import PlacementState

if TYPE_CHECKING:
    from collections.abc import Generator

    from berth.scheduling.gang.instance import Indices, Instance


def greedy(instance: Instance, *, partial: bool) -> Generator[None, None, Indices]:
    """Return one node per component, -1 where none fits; stops at the first failure unless `partial`."""
    placement = PlacementState(instance)
    totals = instance.state.infrastructure.capacity.sum(axis=0)
    size = (instance.requests / np.where(totals > 0, totals, 1.0)).max(axis=1, initial=0.0)
    for component in np.lexsort((-size, ~instance.application.has_selector)).tolist():
        yield from instance.budget.pause()
        feasible = placement.feasible(component)
        if not feasible.any():
            if partial:
                continue
            return placement.nodes
        cost = np.where(feasible, placement.marginal(component), np.inf)
        best = np.flatnonzero(cost <= cost.min() * (1 + 1e-12))
        placement.place(component, int(best[np.argmin(placement.free[best, 0])]))
    return placement.nodes
