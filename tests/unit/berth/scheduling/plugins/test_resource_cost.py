"""ResourceCost: prices count when a pod is placed alone."""

from __future__ import annotations

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


def test_weight_zero_switches_the_price_off() -> None:
    dear, cheap = zoned("dear"), zoned("cheap")
    cheap.metadata.annotations["berth.dev/price-cpu"] = "1"
    lab = Lab([dear, cheap], Profile(weights=ObjectiveWeights(price_score=0)))
    (decision,) = lab.place_alone(lone("p", cpu="1")).decisions
    assert "price" not in decision.terms
