"""The objective of an assignment: each term computed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from berth.scheduling.gang import PlacedPeers, Weights, evaluate
from tests.support.gang import app, nodes, zoned

TWO_ZONES: dict[str, Any] = {"location": [0, 1], "location_cost": [[1.0, 9.0], [7.0, 1.0]]}


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
    def test_edges_to_placed_peers_count_in_full(self, incoming: bool, network: float) -> None:
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
                Weights(waste=9.0, balance=9.0, fit=9.0, opportunity_cost=0.1), 28.5, id="heuristics-do-not-count"
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
