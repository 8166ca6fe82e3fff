"""Every rule of a placement, alone, under every strategy: kept when it can be, reported when it cannot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from berth.scheduling.framework import reasons
from berth.scheduling.framework.rejection import Rejection
from berth.scheduling.gang import STRATEGIES, Application, Infrastructure, LinkModel, PlacedPeers, plan
from berth.scheduling.gang.outcome import Cause
from berth.scheduling.gang.placement_state import FILTERS
from hack.harness.gang import violations
from tests.support.gang import app, nodes, only, zoned

EVERY_STRATEGY = pytest.mark.parametrize("strategy", sorted(STRATEGIES))
TWO_ZONES: dict[str, Any] = {"location": [0, 1], "location_cost": [[1.0, 9.0], [9.0, 1.0]]}


def shared_link(free: float) -> LinkModel:
    return LinkModel(("uplink",), np.array([10.0]), np.array([free]), by_location={(0, 1): (0,)})


FEASIBLE: list[Any] = [
    pytest.param(nodes(5, 3), app(3, 5), [1, 0], id="cores"),
    pytest.param(nodes(9, 9, memory=1), app(1, 1), None, id="memory"),
    pytest.param(nodes(9, 9, max_unit=[[2, 9], [9, 9]]), app(3, 2), [1, None], id="largest-component"),
    pytest.param(
        nodes(10, 4, threshold=[0.5, 1.0]), app(6, 4, named=only(2, (0,), ())), [0, 1], id="threshold-exception"
    ),
    pytest.param(nodes(9, 9), app(1, 1, allowed=only(2, (1,), (0,))), [1, 0], id="masks"),
    pytest.param(nodes(9, 9), app(1, 1, separate=[(0, 1)]), None, id="separate"),
    pytest.param(nodes(4, 4, bandwidth_capacity=[1, 9]), app(2, 2, edges=[(0, 1)], bandwidth=5), None, id="bandwidth"),
    pytest.param(
        nodes(4, 4, **TWO_ZONES, links=shared_link(1)), app(2, 2, edges=[(0, 1)], bandwidth=5), None, id="shared-link"
    ),
    pytest.param(nodes(9, 2, **TWO_ZONES), app(3, 3, edges=[(0, 1)], max_cost=5), [0, 0], id="network-cost"),
    pytest.param(
        nodes(9, 9, **TWO_ZONES),
        app(1, placed_peers=PlacedPeers.of([0], [1], max_cost=5)),
        [1],
        id="network-cost-of-placed-peer",
    ),
    pytest.param(
        nodes(9, 9, bandwidth_capacity=[2, 2]),
        app(1, placed_peers=PlacedPeers.of([0], [1], bandwidth=5)),
        [1],
        id="bandwidth-of-placed-peer",
    ),
    pytest.param(
        Infrastructure.of(["a", "b"], ("cpu", "gpu"), [[4, 0], [4, 1]], free=[[4, -1], [4, 1]]),
        Application.of([[1, 1], [4, 0]]),
        [1, 0],
        id="nothing-wanted-of-an-over-committed-resource",
    ),
]

INFEASIBLE: list[Any] = [
    pytest.param(nodes(5, 3), app(6), ["Insufficient cpu"], id="cores"),
    pytest.param(nodes(5, 5, memory=1.5), app(1, 1, 1), ["Insufficient memory"], id="memory"),
    pytest.param(nodes(9, max_unit=2), app(3), [reasons.above_max_unit("cpu")], id="largest-component"),
    pytest.param(nodes(10, threshold=0.5), app(6), [reasons.filled_to_threshold("cpu")], id="threshold"),
    pytest.param(nodes(9, 9), app(1, allowed=only(2, ())), [""], id="masks"),
    pytest.param(nodes(9), app(1, 1, separate=[(0, 1)]), [reasons.PORTS_TAKEN], id="separate"),
    pytest.param(
        nodes(2, 2, bandwidth_capacity=[1, 9]),
        app(2, 2, edges=[(0, 1)], bandwidth=5),
        ["Insufficient cpu", reasons.TOO_LITTLE_BANDWIDTH],
        id="bandwidth",
    ),
    pytest.param(
        nodes(2, 2, **TWO_ZONES, links=shared_link(1)),
        app(2, 2, edges=[(0, 1)], bandwidth=5),
        ["Insufficient cpu", reasons.link_too_narrow("uplink", 5, 1)],
        id="shared-link",
    ),
    pytest.param(
        nodes(2, 2, **TWO_ZONES),
        app(2, 2, edges=[(0, 1)], max_cost=5),
        ["Insufficient cpu", reasons.MAX_NETWORK_COST_EXCEEDED],
        id="network-cost",
    ),
    pytest.param(Infrastructure.of([], ("cpu", "memory"), np.zeros((0, 2))), app(1), [], id="no-nodes"),
]


@EVERY_STRATEGY
@pytest.mark.parametrize(("infrastructure", "application", "expected"), FEASIBLE)
def test_kept(
    strategy: str, infrastructure: Infrastructure, application: Application, expected: list[int | None] | None
) -> None:
    result = plan(infrastructure, application, strategy=strategy)
    assert result.complete, result.unplaced
    assert violations(infrastructure, [(application, result.assignment)]) == []
    for node, wanted in zip(result.assignment.tolist(), expected or [], strict=False):
        assert wanted is None or node == wanted


@EVERY_STRATEGY
@pytest.mark.parametrize(("infrastructure", "application", "expected"), INFEASIBLE)
def test_reported(strategy: str, infrastructure: Infrastructure, application: Application, expected: list[str]) -> None:
    result = plan(infrastructure, application, strategy=strategy)
    assert set(result.assignment.tolist()) == {-1}
    assert result.cost == 0.0
    assert [entry.component for entry in result.unplaced] == list(range(application.size))
    stuck = [entry for entry in result.unplaced if entry.cause is Cause.NO_NODE_FITS]
    assert [item.reason for item in stuck[-1].rejections] == expected
    assert sum(item.count for item in stuck[-1].rejections) == infrastructure.size
    for entry in result.unplaced:
        assert entry in stuck or (entry.cause, entry.other) == (Cause.WAITS_FOR, stuck[0].component)


@EVERY_STRATEGY
def test_no_components_is_a_complete_plan(strategy: str) -> None:
    result = plan(nodes(4), Application.of(np.zeros((0, 2))), strategy=strategy)
    assert result.complete
    assert result.assignment.size == 0


@EVERY_STRATEGY
def test_partial_places_the_rest_of_the_group(strategy: str) -> None:
    result = plan(nodes(4, 4), app(3, 9, 3, edges=[(0, 1), (1, 2)]), strategy=strategy, partial=True)
    assert result.assignment[1] == -1
    assert (result.assignment[[0, 2]] >= 0).all()
    assert [entry.component for entry in result.unplaced] == [1]


@EVERY_STRATEGY
def test_adding_a_node_keeps_the_group_placed(strategy: str) -> None:
    application = app(3, 2, 2, edges=[(0, 1), (1, 2)], bandwidth=1.0)
    for extra in range(5):
        assert plan(nodes(4, 4, *[1.0] * extra), application, strategy=strategy).complete


def test_counts_of_rejected_nodes_add_up() -> None:
    result = plan(nodes(5, 3, 9, 9), app(6, allowed=only(4, (0, 1, 2))), strategy="greedy")
    assert result.complete
    entry = plan(nodes(5, 3, 4, 9), app(6, allowed=only(4, (0, 1, 2)))).unplaced[0]
    assert entry.rejections == (
        Rejection(FILTERS, "", 1),
        Rejection(reasons.NODE_RESOURCES_FIT, "Insufficient cpu", 3),
    )


def test_runner_ups_name_the_three_best_alternatives() -> None:
    result = plan(zoned(1, 10), app(1, 1, edges=[(0, 1)], allowed=only(4, (0,), None)), explain=True)
    assert result.assignment.tolist() == [0, 0]
    assert result.runner_ups[0] == ()
    options = result.runner_ups[1]
    assert [(option.node, option.cost) for option in options] == [(1, 5.0), (2, 20.0), (3, 20.0)]
    assert options[0].terms["network"] == 5.0


def test_without_explain_there_are_none() -> None:
    assert plan(nodes(4, 4), app(1)).runner_ups == {}
