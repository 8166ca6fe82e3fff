"""The search state agrees with plain recomputation of marginal costs, and with the placement state."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from berth.scheduling.gang import Application, Infrastructure
from berth.scheduling.gang.placement_state import PlacementState
from berth.scheduling.gang.search_state import INFEASIBLE
from tests.support.gang import app, nodes
from tests.support.gang_problems import problems
from tests.support.gang_search import cost, feasible, filled, opened

SOME = settings(max_examples=50, deadline=None, derandomize=True)


@SOME
@given(problem=problems())
def test_costs_are_marginal_costs(problem: tuple[Infrastructure, Application]) -> None:
    search = opened(*problem)
    for component in range(search.instance.components):
        before = search.nodes()
        costs = search.costs(component)
        for column in np.flatnonzero(costs < INFEASIBLE / 2).tolist():
            after = before.copy()
            after[component] = search.columns[column]
            assert feasible(search, after)
            assert costs[column] == pytest.approx(cost(search, after) - cost(search, before), abs=1e-6)
        if (costs < INFEASIBLE / 2).any():
            search.place(component, int(costs.argmin()))


@SOME
@given(problem=problems())
def test_it_agrees_with_the_placement_state(problem: tuple[Infrastructure, Application]) -> None:
    search = opened(*problem)
    placement = PlacementState(search.instance)
    for component in range(search.instance.components):
        costs, possible = search.costs(component), placement.feasible(component)
        # The search is stricter only where a named node's bandwidth threshold may be exceeded.
        assert (possible | (costs >= INFEASIBLE / 2)).all()
        both = possible & (costs < INFEASIBLE / 2)
        assert costs[both] == pytest.approx(placement.marginal(component)[both], abs=1e-6)
        if both.any():
            column = int(np.flatnonzero(both)[0])
            search.place(component, column)
            placement.place(component, column)


@SOME
@given(problem=problems())
def test_removing_undoes_placing(problem: tuple[Infrastructure, Application]) -> None:
    search = opened(*problem)
    start = search.spare.copy()
    for component in filled(search):
        search.remove(component)
    assert search.spare == pytest.approx(start)
    if search.traffic is not None:
        assert search.total_received[: search.instance.components].sum() >= -1e-9
        assert np.abs(search.received[:, :].sum(axis=1) - search.total_received).max() < 1e-9


def test_joint_costs_price_the_whole_application_on_each_node() -> None:
    infrastructure = nodes(10, 6, 4, price=[[3.0, 0.0], [2.0, 0.0], [1.0, 0.0]], bandwidth_price=1.0)
    joint = opened(infrastructure, app(2, 3, edges=[(0, 1)], bandwidth=2.0)).joint_costs()
    assert joint[:2].tolist() == [15.0, 10.0]
    assert joint[2] >= INFEASIBLE / 2
