"""Costs that plugins charge for nodes: they decide where all else is equal, and the plan says what they were."""

from __future__ import annotations

import numpy as np
import pytest

from berth.scheduling.gang import STRATEGIES, NodeCosts, Weights, plan
from tests.support.gang import app, boutique, nodes, zoned

EVERY_STRATEGY = pytest.mark.parametrize("strategy", sorted(STRATEGIES))


def charged(*rows: list[float], group: list[int]) -> dict[str, NodeCosts]:
    return {"Wear": NodeCosts(np.array(rows), np.array(group, dtype=np.int32))}


@EVERY_STRATEGY
@pytest.mark.parametrize("cheaper", [0, 1])
def test_of_nodes_alike_the_cheaper_is_chosen(strategy: str, cheaper: int) -> None:
    costs = [2.0, 2.0]
    costs[cheaper] = 1.0
    result = plan(nodes(9, 9), app(1, 1, node_costs=charged(costs, group=[0, 0])), strategy=strategy, explain=True)
    assert result.assignment.tolist() == [cheaper, cheaper]
    assert result.cost == 2.0
    assert result.terms["Wear"].tolist() == [1.0, 1.0]
    (option,) = result.runner_ups[0]
    assert (option.node, option.cost, option.terms["Wear"]) == (1 - cheaper, 2.0, 2.0)


@EVERY_STRATEGY
def test_components_may_differ_in_what_they_are_charged(strategy: str) -> None:
    application = app(1, 1, node_costs=charged([0.0, 5.0], [5.0, 0.0], group=[0, 1]))
    assert plan(nodes(9, 9), application, strategy=strategy).assignment.tolist() == [0, 1]


@EVERY_STRATEGY
def test_plugins_add_up_with_prices(strategy: str) -> None:
    infrastructure = nodes(9, 9, price=[[1.0, 0.0], [2.0, 0.0]])
    dear = charged([5.0, 0.0], group=[0]) | {"Noise": NodeCosts(np.array([[0.0, 1.0]]), np.zeros(1, dtype=np.int32))}
    result = plan(infrastructure, app(3, node_costs=dear), strategy=strategy)
    assert result.assignment.tolist() == [1]
    terms = {name: float(values[0]) for name, values in result.terms.items()}
    assert terms == {"network": 0.0, "price": 6.0, "bandwidth": 0.0, "Wear": 0.0, "Noise": 1.0}


def test_what_is_left_out_is_charged_nothing() -> None:
    application = app(1, 99, node_costs=charged([2.0], group=[0, 0]))
    assert plan(nodes(9), application, partial=True).terms["Wear"].tolist() == [2.0, 0.0]


def test_the_cheapest_nodes_of_each_component_are_found_among_thousands() -> None:
    # For the two components together every node costs the same: only their own rows tell nodes apart.
    count = 2000
    rows = np.full((2, count), 5.0)
    rows[0, 1700], rows[1, 1700] = 0.0, 10.0
    rows[1, 1900], rows[0, 1900] = 0.0, 10.0
    application = app(1, 1, node_costs=charged(*rows.tolist(), group=[0, 1]))
    result = plan(nodes(*[9.0] * count), application)
    assert result.assignment.tolist() == [1700, 1900]


def test_a_location_where_nodes_are_dear_is_left_for_another() -> None:
    # Room is the same in all zones; only the charge tells them apart.
    costs = np.repeat([4.0, 4.0, 0.0, 4.0], 6)
    application = boutique(node_costs=charged(costs.tolist(), group=[0] * 11))
    result = plan(zoned(6, 450), application)
    assert {node // 6 for node in result.assignment.tolist()} == {2}


@pytest.mark.parametrize(
    ("network", "assignment"), [pytest.param(10.0, [3, 3], id="near"), pytest.param(0.1, [2, 3], id="cheap")]
)
def test_network_costs_and_charges_share_the_decision(network: float, assignment: list[int]) -> None:
    # The second component fits the last node only; the first is charged 6 there and 10 away from it nothing.
    costs = charged([6.0, 6.0, 0.0, 6.0], [0.0] * 4, group=[0, 1])
    infrastructure = nodes(4, 4, 4, 12, location=[0, 1, 2, 3], location_cost=np.full((4, 4), 10.0) - 9 * np.eye(4))
    result = plan(infrastructure, app(1, 9, edges=[(0, 1)], node_costs=costs), Weights(network=network))
    assert result.assignment.tolist() == assignment
