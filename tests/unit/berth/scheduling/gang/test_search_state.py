"""The search books agree with plain recomputation: marginal costs, moves, exchanges, and the bounds they keep.

The objective is recomputed by `evaluate` and feasibility by `violations`; guides are switched off where costs are
compared, since they are no part of the objective.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from berth.scheduling.gang import Application, Infrastructure, InfrastructureState, Weights, evaluate
from berth.scheduling.gang.instance import Instance
from berth.scheduling.gang.local_search import exchange_units, improve
from berth.scheduling.gang.placement_state import PlacementState
from berth.scheduling.gang.search_state import BLOCKED, SearchState
from berth.scheduling.gang.validate import violations
from tests.support.gang import app, boutique, nodes, zoned
from tests.support.gang_problems import problems

PLAIN = Weights(waste=0.0, balance=0.0, opportunity_cost=0.0, scarcity=0.0, avoid_named=0.0, fit=0.0)
SOME = settings(max_examples=50, deadline=None, derandomize=True)


def opened(infrastructure: Infrastructure, application: Application, weights: Weights = PLAIN) -> SearchState:
    state = InfrastructureState(infrastructure)
    return SearchState(Instance(state, application, weights), np.arange(infrastructure.size))


def cost(field: SearchState, assignment: np.ndarray) -> float:
    instance = field.instance
    return evaluate(instance.infrastructure, instance.application, instance.expand(assignment), PLAIN).cost


def fine(field: SearchState, assignment: np.ndarray) -> bool:
    instance = field.instance
    placement = [(instance.application, instance.expand(assignment))]
    return not violations(instance.infrastructure, placement, complete=False)


def filled(field: SearchState) -> list[int]:
    """Place every unit on its last feasible column, to get away from the optimum; return those placed."""
    placed = []
    for unit in range(field.instance.units):
        feasible = np.flatnonzero(field.costs(unit) < BLOCKED / 2)
        if feasible.size:
            field.place(unit, int(feasible[-1]))
            placed.append(unit)
    return placed


@SOME
@given(problem=problems())
def test_costs_are_marginal_costs(problem: tuple[Infrastructure, Application]) -> None:
    field = opened(*problem)
    if field.instance.contradiction is not None:
        return
    for unit in range(field.instance.units):
        before = field.nodes()
        costs = field.costs(unit)
        for column in np.flatnonzero(costs < BLOCKED / 2).tolist():
            after = before.copy()
            after[unit] = field.columns[column]
            assert fine(field, after)
            assert costs[column] == pytest.approx(cost(field, after) - cost(field, before), abs=1e-6)
        if (costs < BLOCKED / 2).any():
            field.place(unit, int(costs.argmin()))


@SOME
@given(problem=problems(), data=st.data())
def test_moves_are_changes_of_cost(problem: tuple[Infrastructure, Application], data: st.DataObject) -> None:
    field = opened(*problem)
    placed = filled(field) if field.instance.contradiction is None else []
    assume(placed)
    home = int(field.where[data.draw(st.sampled_from(placed))])
    there = [unit for unit in placed if field.where[unit] == home]
    members = np.array(data.draw(st.lists(st.sampled_from(there), min_size=1, unique=True)))
    mover = np.zeros((1, field.where.size))
    mover[0, members] = 1.0
    changes = field.moves(mover, np.array([home]))[0]
    assert changes == pytest.approx(field.change(members, home), abs=1e-6)
    before = field.nodes()
    assert changes[home] >= BLOCKED / 2
    for column in np.flatnonzero(changes < BLOCKED / 2).tolist():
        after = before.copy()
        after[members] = field.columns[column]
        assert changes[column] == pytest.approx(cost(field, after) - cost(field, before), abs=1e-6)
        assert fine(field, after) or field.paths is not None


@SOME
@given(problem=problems())
def test_improvement_never_costs_and_stays_within_the_rules(problem: tuple[Infrastructure, Application]) -> None:
    field = opened(*problem)
    if field.instance.contradiction is not None or not filled(field):
        return
    before = cost(field, field.nodes())
    gained = improve(field) + exchange_units(field)
    assert gained <= 1e-9
    assert cost(field, field.nodes()) == pytest.approx(before + gained, abs=1e-6)
    assert fine(field, field.nodes())


@SOME
@given(problem=problems())
def test_ledger_and_field_agree(problem: tuple[Infrastructure, Application]) -> None:
    field = opened(*problem)
    placement = PlacementState(field.instance)
    if field.instance.contradiction is not None:
        return
    for unit in range(field.instance.units):
        costs, feasible = field.costs(unit), placement.feasible(unit)
        # The field is stricter only where a named node's bandwidth threshold may be exceeded.
        assert (feasible | (costs >= BLOCKED / 2)).all()
        both = feasible & (costs < BLOCKED / 2)
        assert costs[both] == pytest.approx(placement.marginal(unit)[both], abs=1e-6)
        if both.any():
            column = int(np.flatnonzero(both)[0])
            field.place(unit, column)
            placement.place(unit, column)


@SOME
@given(problem=problems())
def test_taking_back_restores_the_books(problem: tuple[Infrastructure, Application]) -> None:
    field = opened(*problem)
    if field.instance.contradiction is not None:
        return
    start = field.spare.copy()
    for unit in filled(field):
        field.remove(unit)
    assert field.spare == pytest.approx(start)
    if field.traffic is not None:
        assert field.heard[: field.instance.units].sum() >= -1e-9
        assert np.abs(field.received[:, :].sum(axis=1) - field.heard).max() < 1e-9


def test_joint_costs_price_the_whole_application_on_each_node() -> None:
    infrastructure = nodes(10, 6, 4, price=[[3.0, 0.0], [2.0, 0.0], [1.0, 0.0]], bandwidth_price=1.0)
    joint = opened(infrastructure, app(2, 3, edges=[(0, 1)], bandwidth=2.0)).joint_costs()
    assert joint[:2].tolist() == [15.0, 10.0]
    assert joint[2] >= BLOCKED / 2


def test_a_move_of_two_units_together_escapes_what_single_moves_cannot() -> None:
    # Apart they pay 40 for the edge, together they save 2 each on the second node.
    infrastructure = nodes(4, 4, price=[[2.0, 0.0], [1.0, 0.0]], bandwidth_price=10.0)
    field = opened(infrastructure, app(2, 2, edges=[(0, 1)], bandwidth=2.0))
    field.place(0, 0)
    field.place(1, 0)
    single = field.moves(np.eye(2), field.where[:2])
    assert single.min() > 0
    assert improve(field) == -4.0
    assert field.nodes().tolist() == [1, 1]


def test_an_exchange_mends_crossed_edges_on_full_nodes() -> None:
    field = opened(zoned(1, 2), app(1, 1, 1, 1, edges=[(0, 1), (2, 3)]))
    for unit, column in enumerate([0, 2, 0, 2]):
        field.place(unit, column)
    full = np.array([[1.0, 0, 0, 0]])
    field.spare[:, [1, 3]] = 0.0
    assert field.moves(full, np.array([0]))[0].min() >= BLOCKED / 2
    assert exchange_units(field) == -40.0
    where = field.nodes().tolist()
    assert where[0] == where[1]
    assert where[2] == where[3]


def test_improvement_of_a_large_application_ends() -> None:
    field = opened(zoned(6, 900), boutique(5))
    placed = filled(field)
    assert len(placed) == 55
    before = cost(field, field.nodes())
    gained = improve(field) + exchange_units(field)
    assert gained < 0
    assert cost(field, field.nodes()) == pytest.approx(before + gained)
    assert fine(field, field.nodes())
