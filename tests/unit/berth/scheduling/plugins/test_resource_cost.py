"""ResourceCost: prices count when a pod is placed alone."""

from __future__ import annotations

import pytest

from berth.scheduling.configuration import ObjectiveWeights, Profile
from tests.support.placement import Lab, lone, zoned


def test_prices_count() -> None:
    dear, cheap = zoned("dear"), zoned("cheap")
    dear.metadata.annotations["berth.dev/price-cpu"] = "10"
    cheap.metadata.annotations["berth.dev/price-cpu"] = "1"
    lab = Lab([dear, cheap])
    (decision,) = lab.place_alone(lone("p", cpu="1")).decisions
    assert decision.node == "cheap"
    assert decision.terms["price"] == 100.0


@pytest.mark.parametrize(
    ("weights", "term"),
    [
        pytest.param({}, 100.0, id="default"),
        pytest.param({"price": 10}, 1000.0, id="as joint plans weigh it"),
        pytest.param({"price": 0}, None, id="switched off"),
        pytest.param({"price": 0, "price_score": 2}, 200.0, id="a weight of its own"),
        pytest.param({"price_score": 0}, None, id="switched off alone"),
    ],
)
def test_weight(weights: dict[str, float], term: float | None) -> None:
    dear, cheap = zoned("dear"), zoned("cheap")
    cheap.metadata.annotations["berth.dev/price-cpu"] = "1"
    lab = Lab([dear, cheap], Profile(weights=ObjectiveWeights(**weights)))
    (decision,) = lab.place_alone(lone("p", cpu="1")).decisions
    assert decision.terms.get("price") == term
