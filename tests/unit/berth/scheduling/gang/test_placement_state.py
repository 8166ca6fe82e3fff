"""The placement state: marginal costs add up to the objective, removing undoes placing, every rule names its plugin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from berth.scheduling.framework import reasons
from berth.scheduling.gang import Application, Infrastructure, InfrastructureState, PlacedPeers, Weights, evaluate
from berth.scheduling.gang.instance import Instance
from berth.scheduling.gang.placement_state import FILTERS, PlacementState
from tests.support.gang import app, nodes, only
from tests.support.gang_problems import problems

SOME = settings(max_examples=80, deadline=None, derandomize=True)


def opened(infrastructure: Infrastructure, application: Application) -> PlacementState:
    return PlacementState(Instance(InfrastructureState(infrastructure), application, Weights(network=2.0)))


@SOME
@given(problem=problems())
def test_the_objective_is_the_sum_of_marginal_costs(problem: tuple[Infrastructure, Application]) -> None:
    infrastructure, application = problem
    placement = opened(infrastructure, application)
    total, sums = 0.0, dict.fromkeys(("network", "price", "bandwidth", *application.node_costs), 0.0)
    for component in range(application.size):
        feasible = np.flatnonzero(placement.feasible(component))
        if feasible.size:
            node = int(feasible[-1])
            total += placement.marginal(component)[node]
            for name, values in placement.terms(component).items():
                sums[name] += values[node]
            placement.place(component, node)
    result = evaluate(infrastructure, application, placement.nodes, placement.instance.weights)
    assert result.cost == pytest.approx(total)
    assert {name: float(values.sum()) for name, values in result.terms.items()} == pytest.approx(sums)


@SOME
@given(problem=problems())
def test_removing_undoes_placing(problem: tuple[Infrastructure, Application]) -> None:
    placement = opened(*problem)
    amounts = (placement.free, placement.bandwidth, placement.link)
    before = [array.copy() for array in amounts]
    placed = []
    for component in range(placement.instance.components):
        feasible = placement.feasible(component)
        if feasible.any():
            placement.place(component, int(feasible.argmax()))
            placed.append(component)
    for component in placed:
        placement.remove(component)
    assert (placement.nodes == -1).all()
    for array, start in zip(amounts, before, strict=True):
        assert array == pytest.approx(start)


TWO_ZONES: dict[str, Any] = {"location": [0, 1], "location_cost": [[1.0, 9.0], [9.0, 1.0]]}
PEER = PlacedPeers.of([0], [0], bandwidth=5, max_cost=8)


@pytest.mark.parametrize(
    ("infrastructure", "application", "plugin", "reason", "rejected"),
    [
        pytest.param(nodes(9, 9), app(1, allowed=only(2, (1,))), FILTERS, "", [0], id="masks"),
        pytest.param(nodes(9, 2), app(3), reasons.NODE_RESOURCES_FIT, "Insufficient cpu", [1], id="cores"),
        pytest.param(
            Infrastructure.of(["a", "b"], ("pods",), [[1.0], [0.0]]),
            Application.of([[1.0]]),
            reasons.NODE_RESOURCES_FIT,
            "Too many pods",
            [1],
            id="pods",
        ),
        pytest.param(
            nodes(9, 9, threshold=[1.0, 0.3]),
            app(3),
            reasons.USAGE_THRESHOLD,
            reasons.filled_to_threshold("cpu"),
            [1],
            id="threshold",
        ),
        pytest.param(
            nodes(9, 9, max_unit=[[2, 9], [9, 9]]),
            app(3),
            reasons.MAX_UNIT,
            reasons.above_max_unit("cpu"),
            [0],
            id="max-unit",
        ),
        pytest.param(
            nodes(9, 9, **TWO_ZONES),
            app(1, placed_peers=PEER),
            reasons.NETWORK_OVERHEAD,
            reasons.MAX_NETWORK_COST_EXCEEDED,
            [1],
            id="max-network-cost",
        ),
        pytest.param(
            nodes(9, 9, bandwidth_capacity=4.0),
            app(1, placed_peers=PEER),
            reasons.BANDWIDTH,
            reasons.TOO_LITTLE_BANDWIDTH,
            [1],
            id="bandwidth",
        ),
    ],
)
def test_a_rule_names_its_plugin_and_its_nodes(
    infrastructure: Infrastructure, application: Application, plugin: str, reason: str, rejected: list[int]
) -> None:
    found = [item for item in opened(infrastructure, application).rejections(0) if item[2].any()]
    assert [(name, text, np.flatnonzero(nodes).tolist()) for name, text, nodes in found] == [(plugin, reason, rejected)]
