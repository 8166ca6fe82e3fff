"""Search states over all nodes of a small problem, and what they are compared with.

The objective is recomputed by `evaluate` and feasibility by `violations`; heuristics are switched off, since they are
no part of the objective.
"""

from __future__ import annotations

import numpy as np

from berth.scheduling.gang import Application, Infrastructure, InfrastructureState, Weights, evaluate
from berth.scheduling.gang.instance import Instance
from berth.scheduling.gang.search_state import INFEASIBLE, SearchState
from hack.harness.gang import violations

PLAIN = Weights(waste=0.0, balance=0.0, opportunity_cost=0.0, scarcity=0.0, avoid_named=0.0, fit=0.0)


def opened(infrastructure: Infrastructure, application: Application) -> SearchState:
    """Return a search state with nothing placed, over all nodes."""
    instance = Instance(InfrastructureState(infrastructure), application, PLAIN)
    return SearchState(instance, np.arange(infrastructure.size))


def cost(search: SearchState, assignment: np.ndarray) -> float:
    """Return the objective of an assignment."""
    instance = search.instance
    return evaluate(instance.infrastructure, instance.application, assignment, PLAIN).cost


def feasible(search: SearchState, assignment: np.ndarray) -> bool:
    """Return whether an assignment, complete or not, breaks no rule."""
    instance = search.instance
    return not violations(instance.infrastructure, [(instance.application, assignment)], complete=False)


def filled(search: SearchState) -> list[int]:
    """Place every component on its last feasible column, to get away from the optimum; return those placed."""
    placed = []
    for component in range(search.instance.components):
        columns = np.flatnonzero(search.costs(component) < INFEASIBLE / 2)
        if columns.size:
            search.place(component, int(columns[-1]))
            placed.append(component)
    return placed
