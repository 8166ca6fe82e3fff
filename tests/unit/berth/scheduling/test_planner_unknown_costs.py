"""A zone whose costs are not known, cut off perhaps, beside a region that is far and known to be."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from berth.network.costs import NetworkCosts
from berth.scheduling.configuration import Profile
from tests.support.placement import Lab, both_ways, chain, group_object, member, where, zoned

FAR = NetworkCosts(source="default/net", regions=both_ways({("r1", "r2"): 800.0, ("r1", "r3"): 800.0}))
"""Tenths of a millisecond; nothing is known between zones of one region, nor between r2 and r3."""
SITES = {"near": ("z1", "r1"), "cut": ("z2", "r1"), "far": ("z3", "r2")}


def lab(order: tuple[str, ...] = ("near", "cut", "far"), **gang: Any) -> Lab:
    """A node for one pod in each place; equals go to the first node."""
    return Lab([zoned(name, *SITES[name], cpu=1) for name in order], Profile.model_validate({"gang": gang}), FAR)


@pytest.mark.parametrize("strategy", ["replicas", "berth"])
@pytest.mark.parametrize("order", [*permutations(SITES)], ids="-".join)
def test_a_joint_plan_crosses_the_dearest_link_before_one_that_nobody_knows(
    strategy: str, order: tuple[str, ...]
) -> None:
    stage = lab(order, strategy=strategy)
    shop = stage.group(group_object("shop", *chain("a", "b")))
    outcome = stage.place(shop, member("a1", "a", cpu="1"), member("b1", "b", cpu="1"))
    assert "far" in where(outcome).values()
    assert [decision.edge_cost for decision in outcome.decisions] == [800.0, 800.0]


@pytest.mark.parametrize(
    ("alone", "node"),
    [pytest.param("cost", "far", id="by-cost"), pytest.param("score", "cut", id="by-score-as-upstream")],
)
def test_a_pod_placed_alone(alone: str, node: str) -> None:
    stage = lab(alone=alone)
    shop = stage.group(group_object("shop", *chain("a", "b")))
    stage.see(member("b1", "b", on="near", cpu="1"))
    outcome = stage.place_alone(member("a1", "a", cpu="1"), shop)
    assert where(outcome) == {"a1": node}
    assert outcome.decisions[0].edge_cost == (800.0 if node == "far" else 801.0)


@pytest.mark.parametrize("strategy", ["replicas", "berth"])
@pytest.mark.parametrize(("limit", "placed"), [(300, False), (799, False), (800, True)])
def test_a_cut_pair_is_within_no_limit_that_a_known_one_exceeds(strategy: str, limit: int, placed: bool) -> None:
    stage = lab(strategy=strategy)
    shop = stage.group(group_object("shop", *chain("a", "b", maxNetworkCost=limit)))
    outcome = stage.place(shop, member("a1", "a", cpu="1"), member("b1", "b", cpu="1"))
    assert outcome.complete is placed
    assert ("far" in where(outcome).values()) is placed
