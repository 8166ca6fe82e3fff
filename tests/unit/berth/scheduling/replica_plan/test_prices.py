"""Prices of the objective: what a profile says, and what an AppGroup says instead."""

from __future__ import annotations

import numpy as np
import pytest

from berth.api.spread import SpreadLevel
from berth.network.groups import Group, GroupEdge, GroupKey
from berth.scheduling.replica_plan.prices import objective_prices

EDGES = tuple(GroupEdge("a", "b", 0, np.inf) for _ in range(3))


def shop(spread: SpreadLevel | None = None) -> Group:
    return Group(GroupKey("default", "shop"), edges=EDGES, spread=spread)


@pytest.mark.parametrize(("highest", "lost"), [(5.0, 100.0), (3000.0, 3000.0)])
def test_a_call_that_fails_is_never_the_cheapest(highest: float, lost: float) -> None:
    prices = objective_prices(shop(), 2.0, np.array([[1.0, highest], [highest, 1.0]]), SpreadLevel.SOFT)
    assert (prices.network, prices.lost_calls) == (2.0, lost)


@pytest.mark.parametrize(
    ("stated", "node", "zone"),
    [
        pytest.param(SpreadLevel.SOFT, 5.0, 1.0, id="soft"),
        pytest.param(SpreadLevel.NONE, 0.0, 0.0, id="none"),
        pytest.param(SpreadLevel.NODE, np.inf, 1.0, id="node"),
        pytest.param(SpreadLevel.ZONE, np.inf, np.inf, id="zone"),
    ],
)
@pytest.mark.parametrize("annotated", [False, True], ids=["profile", "annotation"])
def test_what_must_be_survived_is_worth_any_call(
    stated: SpreadLevel, node: float, zone: float, annotated: bool
) -> None:
    costs = np.array([[1.0, 3000.0], [3000.0, 1.0]])
    other = SpreadLevel.NODE if stated is SpreadLevel.NONE else SpreadLevel.NONE
    group, profile = (shop(stated), other) if annotated else (shop(), stated)
    prices = objective_prices(group, 1.0, costs, profile)
    for price, expected in ((prices.survive_node, node), (prices.survive_zone, zone)):
        if np.isinf(expected):
            assert price > 3000.0 * len(EDGES)
            assert np.isfinite(price)
        else:
            assert price == expected


@pytest.mark.parametrize("endpoints", [0, 10_000])
def test_what_must_be_survived_is_worth_all_calls_at_one_endpoint(endpoints: int) -> None:
    prices = objective_prices(shop(SpreadLevel.NODE), 1.0, np.zeros((1, 1)), SpreadLevel.SOFT, endpoints=endpoints)
    assert prices.survive_node > prices.load * endpoints
