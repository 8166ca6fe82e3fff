"""The independent validator and the evaluation: each rule broken alone is found, each term computed by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from berth.scheduling.gang import Application, Infrastructure, LinkModel, PlacedPeers, Weights, evaluate
from berth.scheduling.gang.validate import violations
from tests.support.gang import app, nodes, only, zoned

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
    pytest.param(nodes(9, 9), app(1, 1, together=[(0, 1)]), [0, 1], "on two nodes", id="together"),
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
        id="limit-of-placed peer",
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


class TestEvaluate:
    INFRASTRUCTURE = nodes(9, 9, price=[[2.0, 1.0], [3.0, 0.5]], bandwidth_price=[0.1, 0.4], **TWO_ZONES)

    def test_terms_by_hand(self) -> None:
        application = app(2, 3, edges=[(0, 1)], bandwidth=10, weight=2)
        result = evaluate(self.INFRASTRUCTURE, application, [0, 1], Weights())
        assert result.terms["price"].tolist() == [5.0, 9.5]
        assert result.terms["bandwidth"].tolist() == [1.0, 4.0]
        assert result.terms["network"].tolist() == [9.0, 9.0]
        assert result.cost == 37.5

    def test_one_node_pays_for_resources_only(self) -> None:
        result = evaluate(self.INFRASTRUCTURE, app(2, 3, edges=[(0, 1)], bandwidth=10), [0, 0], Weights())
        assert result.cost == 12.0

    def test_edges_of_the_unplaced_cost_nothing(self) -> None:
        assert evaluate(self.INFRASTRUCTURE, app(2, 3, edges=[(0, 1)], bandwidth=10), [0, -1], Weights()).cost == 5.0

    @pytest.mark.parametrize(("incoming", "network"), [(False, 9.0), (True, 7.0)], ids=["outgoing", "incoming"])
    def test_anchors_count_in_full(self, incoming: bool, network: float) -> None:
        application = app(1, placed_peers=PlacedPeers.of([0], [1], bandwidth=10, incoming=incoming))
        result = evaluate(self.INFRASTRUCTURE, application, [0], Weights())
        assert result.terms["network"].tolist() == [network]
        assert result.terms["bandwidth"].tolist() == [5.0]

    @pytest.mark.parametrize(
        ("weights", "cost"),
        [
            pytest.param(Weights(network=0.0), 19.5, id="no-network"),
            pytest.param(Weights(price=0.0), 14.0, id="no-price"),
            pytest.param(Weights(bandwidth=2.0), 33.5, id="double-bandwidth"),
            pytest.param(
                Weights(waste=9.0, balance=9.0, fit=9.0, opportunity_cost=0.1), 28.5, id="guides-do-not-count"
            ),
        ],
    )
    def test_weights(self, weights: Weights, cost: float) -> None:
        application = app(2, 3, edges=[(0, 1)], bandwidth=10)
        assert evaluate(self.INFRASTRUCTURE, application, [0, 1], weights).cost == pytest.approx(cost)

    def test_zone_costs_of_the_eight_node_example(self) -> None:
        # p1 depends on p2; p2 on n-5 (third zone): raw costs of p1 by node.
        application = app(1, placed_peers=PlacedPeers.of([0], [4]))
        costs = [evaluate(zoned(2, 9), application, [node], Weights()).cost for node in range(8)]
        assert costs == [20.0, 20.0, 20.0, 20.0, 0.0, 1.0, 10.0, 10.0]
