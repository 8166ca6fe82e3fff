"""What plans use is taken from the state, and each rule broken alone is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from berth.scheduling.gang import Application, Infrastructure, InfrastructureState, LinkModel, PlacedPeers
from hack.harness.gang import commit, violations
from tests.support.gang import app, nodes, only

UPLINK = LinkModel(("uplink",), np.array([4.0]), np.array([4.0]), by_location={(0, 1): (0,)})
TWO_ZONES: dict[str, Any] = {"location": [0, 1], "location_cost": [[1.0, 9.0], [7.0, 1.0]]}
PAIR: dict[str, Any] = {"edges": [(0, 1)], "bandwidth": 5.0}

BROKEN: list[Any] = [
    pytest.param(nodes(3), app(2, 2), [0, 0], "4.0 cpu used, 3.0 free", id="cores"),
    pytest.param(nodes(9, memory=1), app(1, 1), [0, 0], "memory used", id="memory"),
    pytest.param(nodes(9), app(1, 1), [0, -1], "1 of 2 components placed", id="incomplete"),
    pytest.param(nodes(9, 9), app(1, allowed=only(2, (1,))), [0], "not allowed on a", id="mask"),
    pytest.param(nodes(9, max_unit=2), app(3), [0], "larger than the largest unit", id="largest-unit"),
    pytest.param(nodes(9), app(1, 1, separate=[(0, 1)]), [0, 0], "share a node", id="separate"),
    pytest.param(nodes(8, threshold=0.5), app(3, 3), [0, 0], "cpu above its threshold", id="threshold"),
    pytest.param(nodes(8, 8, bandwidth_capacity=4), app(1, 1, **PAIR), [0, 1], "bandwidth 5.0 used", id="bandwidth"),
    pytest.param(
        nodes(8, 8, bandwidth_capacity=6, threshold=0.5),
        app(1, 1, **PAIR),
        [0, 1],
        "bandwidth above its",
        id="bandwidth-threshold",
    ),
    pytest.param(nodes(8, 8, **TWO_ZONES, links=UPLINK), app(1, 1, **PAIR), [0, 1], "link uplink: 5.0 used", id="link"),
    pytest.param(
        nodes(8, 8, **TWO_ZONES), app(1, 1, edges=[(0, 1)], max_cost=8), [0, 1], "costs 9.0, allowed 8.0", id="limit"
    ),
    pytest.param(
        nodes(8, 8, **TWO_ZONES),
        app(1, placed_peers=PlacedPeers.of([0], [1], max_cost=6, incoming=True)),
        [0],
        "costs 7.0",
        id="limit-of-placed-peer",
    ),
]


@pytest.mark.parametrize(("infrastructure", "application", "assignment", "words"), BROKEN)
def test_found(infrastructure: Infrastructure, application: Application, assignment: list[int], words: str) -> None:
    found = violations(infrastructure, [(application, assignment)])
    assert len(found) >= 1
    assert words in found[0] + found[-1]


@pytest.mark.parametrize(
    ("infrastructure", "application", "assignment"),
    [
        pytest.param(nodes(4), app(2, 2), [0, 0], id="exactly-full"),
        pytest.param(nodes(8, threshold=0.5), app(4, 4, named=only(1, (0,), ())), [0, 0], id="named-above-threshold"),
        pytest.param(nodes(8, 8, **TWO_ZONES), app(1, 1, edges=[(1, 0)], max_cost=8), [0, 1], id="cheaper-direction"),
        pytest.param(nodes(8), app(1, 1, edges=[(0, 1)], max_cost=0), [0, 0], id="same-node-costs-nothing"),
        pytest.param(nodes(8, 8, bandwidth_capacity=0), app(1, 1, **PAIR), [1, 1], id="no-bandwidth-on-one-node"),
        pytest.param(nodes(0), app(1), [-1], id="nothing-placed"),
    ],
)
def test_allowed(infrastructure: Infrastructure, application: Application, assignment: list[int]) -> None:
    assert violations(infrastructure, [(application, assignment)]) == []


def test_applications_add_up() -> None:
    infrastructure = nodes(5)
    assert violations(infrastructure, [(app(3), [0])]) == []
    assert len(violations(infrastructure, [(app(3), [0]), (app(3), [0])])) == 1


class TestCommit:
    def test_takes_requests_and_bandwidth_of_cut_edges_at_both_ends(self) -> None:
        state = InfrastructureState(nodes(10, 10, bandwidth_capacity=8.0))
        commit(state, app(2, 3, 4, edges=[(0, 1), (1, 2)], bandwidth=[1, 5]), [0, 0, 1])
        assert state.free[:, 0].tolist() == [5.0, 6.0]
        assert state.bandwidth_free.tolist() == [3.0, 3.0]

    def test_unplaced_components_take_nothing(self) -> None:
        state = InfrastructureState(nodes(10, bandwidth_capacity=8.0))
        commit(state, app(2, 3, edges=[(0, 1)], bandwidth=1), [0, -1])
        assert state.free[0, 0] == 8.0
        assert state.bandwidth_free.tolist() == [8.0]

    def test_anchors_use_the_budget_of_the_placed_pod(self) -> None:
        state = InfrastructureState(nodes(10, 10, bandwidth_capacity=8.0))
        commit(state, app(1, placed_peers=PlacedPeers.of([0, 0], [1, 0], bandwidth=[2, 4])), [0])
        assert state.bandwidth_free.tolist() == [6.0, 6.0]

    def test_the_infrastructure_itself_stays_as_it_was(self) -> None:
        infrastructure = nodes(10, bandwidth_capacity=8.0)
        state = InfrastructureState(infrastructure)
        commit(state, app(4), [0])
        assert (infrastructure.free[0, 0], state.free[0, 0]) == (10.0, 6.0)

    def test_every_link_of_the_way_is_used(self) -> None:
        state = InfrastructureState(nodes(8, 8, **TWO_ZONES, links=UPLINK))
        commit(state, app(1, 1, 1, edges=[(0, 1), (1, 2)], bandwidth=[3, 2]), [0, 1, 1])
        assert state.link_free.tolist() == [1.0]
