"""Building problems: defaults, broadcasting, errors that name object, field and remedy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from berth.scheduling.gang import (
    Application,
    Infrastructure,
    NodeCosts,
    PlacedPeers,
    ProblemError,
    plan,
)
from tests.support.gang import app, nodes, only

COSTS = NodeCosts(np.array([[1.0, 2.0]]), np.array([0, 0], dtype=np.int32))
TWO: dict[str, Any] = {"names": ["a", "b"], "resources": ["cpu"], "capacity": [[4.0], [8.0]]}


class TestInfrastructure:
    def test_defaults(self) -> None:
        built = Infrastructure.of(**TWO)
        assert built.size == 2
        assert built.free.tolist() == [[4.0], [8.0]]
        assert built.free is not built.capacity
        assert np.isinf(built.bandwidth_free).all()
        assert np.isinf(built.max_unit).all()
        assert built.price.tolist() == [[0.0], [0.0]]
        assert built.location_cost.tolist() == [[1.0]]

    @pytest.mark.parametrize(
        ("field", "value", "words"),
        [
            pytest.param("capacity", [[1.0]] * 3, r"capacity has shape \(3, 1\), expected \(2, 1\)", id="capacity"),
            pytest.param("free", [1.0, 2.0, 3.0], "free has shape", id="free"),
            pytest.param("price", [[1.0, 2.0, 3.0]], "price has shape", id="price"),
            pytest.param("threshold", [0.5, 0.0], r"threshold must lie in \(0, 1\]; node 'b'", id="threshold-zero"),
            pytest.param("threshold", 1.5, "threshold must lie", id="threshold-above-one"),
            pytest.param("location", [0, 3], "location names 3, location_cost has 1 rows", id="location"),
            pytest.param("location_cost", [[1.0, 2.0]], "square matrix", id="location-cost-shape"),
            pytest.param("location_cost", [[-1.0]], "costs >= 0", id="location-cost-negative"),
            pytest.param("location_cost", [[np.nan]], "costs >= 0", id="location-cost-nan"),
        ],
    )
    def test_errors(self, field: str, value: object, words: str) -> None:
        arguments: dict[str, Any] = TWO | {field: value}
        with pytest.raises(ProblemError, match=words):
            Infrastructure.of(**arguments)


class TestApplication:
    def test_defaults(self) -> None:
        built = app(1, 2, edges=[(0, 1)])
        assert built.names == ("component-0", "component-1")
        assert built.bandwidth.tolist() == [0.0]
        assert built.weight.tolist() == [1.0]
        assert np.isinf(built.max_cost).all()
        assert built.separate.shape == (0, 2)
        assert built.has_selector.tolist() == [False, False]

    @pytest.mark.parametrize(
        ("fields", "words"),
        [
            pytest.param({"edges": [(0, 5)]}, "edges names component 5, there are 2", id="edge-out-of-range"),
            pytest.param({"edges": [(1, 1)]}, "connects a component with itself", id="self-edge"),
            pytest.param({"edges": [(0, 1, 1)]}, r"expected \(X, 2\)", id="edge-shape"),
            pytest.param({"edges": [(0, 1)], "bandwidth": -1.0}, "bandwidth holds a negative", id="negative-bandwidth"),
            pytest.param({"edges": [(0, 1)], "bandwidth": [1, 2]}, "bandwidth has shape", id="bandwidth-shape"),
            pytest.param({"separate": [(0, 2)]}, "separate names component 2", id="separate-out-of-range"),
            pytest.param({"names": ["x"]}, "names has 1 entries for 2 components", id="names"),
            pytest.param({"allowed": only(3, None)}, r"allowed.group has shape \(1,\)", id="masks-per-component"),
            pytest.param({"node_costs": {"price": COSTS}}, "price is a term that the engine computes", id="term-taken"),
            pytest.param(
                {"node_costs": {"Wear": NodeCosts(COSTS.values, COSTS.group[:1])}},
                r"node_costs\['Wear'\].group has shape \(1,\), expected \(2,\)",
                id="costs-per-component",
            ),
            pytest.param({"node_costs": {"Wear": NodeCosts(-COSTS.values, COSTS.group)}}, "negative", id="negative"),
            pytest.param(
                {"node_costs": {"Wear": NodeCosts(COSTS.values * np.inf, COSTS.group)}}, "infinite", id="cost-infinite"
            ),
            pytest.param(
                {"placed_peers": PlacedPeers.of([4], [0])},
                "placed_peers names component 4",
                id="placed-peer-out-of-range",
            ),
        ],
    )
    def test_errors(self, fields: dict[str, Any], words: str) -> None:
        with pytest.raises(ProblemError, match=words):
            app(1, 2, **fields)

    @pytest.mark.parametrize("requests", [[[-1.0]], [[np.nan]], [1.0, 2.0]], ids=["negative", "nan", "flat"])
    def test_bad_requests(self, requests: object) -> None:
        with pytest.raises(ProblemError, match=r"Application\.requests"):
            Application.of(requests)  # type: ignore[arg-type]

    def test_lengths_of_placed_peers_must_agree(self) -> None:
        with pytest.raises(ProblemError, match="PlacedPeers"):
            PlacedPeers.of([0, 1], [0])


@pytest.mark.parametrize("name", ["", "Berth", "firmament"])
def test_unknown_strategy_lists_the_known_ones(name: str) -> None:
    with pytest.raises(ProblemError, match="choose one of berth, greedy, phare"):
        plan(nodes(1), app(1), strategy=name)
