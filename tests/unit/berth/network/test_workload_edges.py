"""Each dependency of a group in one row, whatever the number of its pairs."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.network.costs import NO_COSTS, NetworkCosts
from berth.network.groups import Group, GroupEdge, GroupKey
from berth.network.members import Member
from berth.network.routing import Routing
from berth.network.workload_edges import workload_edges
from berth.network.workload_places import WorkloadPlaces
from tests.support.edges import COSTS, PLACES, group, member
from tests.support.pairs import pair_costs


def rows(shop: Group, *members: Member, costs: NetworkCosts = COSTS) -> list[dict[str, Any]]:
    return workload_edges(shop, WorkloadPlaces(members), PLACES, costs, to_all)


def to_all(_: str) -> Routing:
    return Routing.ALL


FRONT_BACK = group(("front", "back"))


@pytest.mark.parametrize(
    ("caller", "called", "cost", "known", "near"),
    [
        pytest.param("a1", "a1", 0.0, True, "sameNode", id="same node"),
        pytest.param("a1", "a2", 1.0, True, "sameZone", id="same zone"),
        pytest.param("a1", "b1", 5.0, True, "elsewhere", id="to the other zone"),
        pytest.param("b1", "a1", 7.0, True, "elsewhere", id="and back: directions differ"),
        pytest.param("a1", "x1", 40.0, True, "elsewhere", id="another region"),
        pytest.param("a1", "bare", 100.0, False, "elsewhere", id="a node without labels"),
        pytest.param("bare", "bare", 0.0, True, "sameNode", id="the same node without labels"),
    ],
)
def test_cost_of_one_pair(caller: str, called: str, cost: float, known: bool, near: str) -> None:
    [row] = rows(FRONT_BACK, member("front", caller), member("back", called))
    assert (row["meanCost"], row["lowestCost"], row["highestCost"]) == (cost, cost, cost)
    assert (row["known"], row[near], row["pairs"]) == (known, 1, 1)
    assert row["worst"] == {"fromNode": caller, "toNode": called}


def test_without_costs_only_equal_places_are_known() -> None:
    [row] = rows(FRONT_BACK, member("front", "a1"), member("back", "a2"), member("back", "b1", 2), costs=NO_COSTS)
    assert (row["lowestCost"], row["highestCost"], row["known"]) == (1, 100, False)


@pytest.mark.parametrize("node", ["", "gone"], ids=["waiting", "on a node that is not there"])
def test_pods_without_a_known_node_have_no_pairs(node: str) -> None:
    [row] = rows(FRONT_BACK, member("front", "a1"), member("back", node))
    assert row == {"from": "front", "to": "back", "callers": 1, "called": 0, "pairs": 0}


@pytest.mark.parametrize(
    ("limit", "node", "over"),
    [(math.inf, "x1", 0), (5, "b1", 0), (4, "b1", 1), (0, "a2", 0), (0, "b1", 1), (50, "bare", 1)],
    ids=["no limit", "just met", "exceeded", "0 is met in the zone", "0 is not met beyond", "unknown counts as 100"],
)
def test_limits(limit: float, node: str, over: int) -> None:
    [row] = rows(group(("front", "back"), limit=limit), member("front", "a1"), member("back", node))
    assert row["pairsOverLimit"] == over
    assert ("maxNetworkCost" in row) is (limit != math.inf)


def test_replicas_are_one_row_with_what_they_share() -> None:
    fronts = [member("front", node, number) for number, node in enumerate(("a1", "a2", "b1"))]
    backs = [member("back", node, number) for number, node in enumerate(("a1", "a1", "x1", ""))]
    [row] = rows(group(("front", "back"), bandwidth=10_000_000, limit=6), *fronts, *backs)
    assert (row["callers"], row["called"], row["pairs"]) == (3, 3, 9)
    assert (row["sameNode"], row["sameZone"], row["elsewhere"]) == (2, 2, 5)
    assert (row["lowestCost"], row["highestCost"], row["pairsOverLimit"]) == (0, 40, 5)
    assert row["meanCost"] == pytest.approx((2 * 1 + 2 * 7 + 3 * 40) / 9)
    assert row["worst"]["toNode"] == "x1"
    assert row["bandwidth"] == 2.5e6


def test_dependencies_begin_with_those_above_their_limit() -> None:
    shop = Group(
        key=GroupKey("default", "shop"),
        selectors=("a", "b", "c", "d"),
        edges=(
            GroupEdge("a", "b", 0, math.inf),
            GroupEdge("a", "c", 0, 2.0),
            GroupEdge("a", "d", 0, math.inf),
        ),
    )
    found = rows(shop, member("a", "a1"), member("b", "x1"), member("c", "b1"))
    assert [(row["to"], row["pairs"], row.get("pairsOverLimit")) for row in found] == [
        ("c", 1, 1), ("b", 1, 0), ("d", 0, None),
    ]  # fmt: skip


def test_a_hundred_million_pairs_are_summed_up_at_once() -> None:
    pods = [member(workload, f"{zone}1", n) for workload in ("front", "back") for zone in "ab" for n in range(5000)]
    placed = WorkloadPlaces(pods)
    begun = time.process_time()
    [row] = workload_edges(FRONT_BACK, placed, PLACES, COSTS, to_all)
    assert time.process_time() - begun < 0.5
    assert (row["pairs"], row["sameNode"], row["meanCost"]) == (10**8, 5 * 10**7, 3)


NODES = st.lists(st.sampled_from([*sorted(PLACES), "", "gone"]), max_size=5)


@settings(deadline=None)
@given(fronts=NODES, backs=NODES, limit=st.sampled_from([0.0, 5.0, 50.0, math.inf]))
def test_a_row_sums_up_its_pairs(fronts: Sequence[str], backs: Sequence[str], limit: float) -> None:
    shop = group(("front", "back"), limit=limit)
    members = [
        member(one, node, number)
        for one, nodes in (("front", fronts), ("back", backs))
        for number, node in enumerate(nodes)
    ]
    pairs = pair_costs(shop, members, PLACES, COSTS)
    [row] = rows(shop, *members)
    assert row["pairs"] == len(pairs)
    if not pairs:
        assert "meanCost" not in row
        return
    assert row["meanCost"] == pytest.approx(fmean(pair.cost for pair in pairs), abs=1e-6)
    assert (row["lowestCost"], row["highestCost"]) == (min(p.cost for p in pairs), max(p.cost for p in pairs))
    assert row["pairsOverLimit"] == sum(pair.over for pair in pairs)
    assert row["known"] is all(pair.known for pair in pairs)
    for near in ("sameNode", "sameZone", "elsewhere"):
        assert row[near] == sum(pair.near == near for pair in pairs)
    worst = (row["worst"]["fromNode"], row["worst"]["toNode"])
    assert worst in {(pair.caller.node, pair.called.node) for pair in pairs if pair.cost == row["highestCost"]}
