"""Costs of a group's dependency edges, pair by pair and by workload."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.network.costs import NO_COSTS, NetworkCosts, Place
from berth.network.edge_costs import EdgeTotals, edge_summary, edge_totals, group_edges, node_places, workload_edges
from berth.network.groups import Group, GroupEdge
from berth.network.members import Member
from berth.network.workload_places import WorkloadPlaces
from tests.support import builders
from tests.support.pairs import pairwise_totals

PLACES = {
    "a1": Place("r1", "a"),
    "a2": Place("r1", "a"),
    "b1": Place("r1", "b"),
    "x1": Place("r2", "x"),
    "bare": Place(),
}
COSTS = NetworkCosts(
    source="default/net", zones={("a", "b"): 5.0, ("b", "a"): 7.0}, regions={("r1", "r2"): 40.0, ("r2", "r1"): 40.0}
)


def group(*edges: tuple[str, str], limit: float = math.inf, bandwidth: float = 0.0) -> Group:
    selectors = tuple(dict.fromkeys(name for edge in edges for name in edge))
    return Group(
        key=("default", "shop"),
        selectors=selectors,
        edges=tuple(GroupEdge(caller, called, bandwidth, limit) for caller, called in edges),
    )


def member(workload: str, node: str, number: int = 1) -> Member:
    return Member(f"{workload}-{number}", f"default/{workload}-{number}", workload, node)


FRONT_BACK = group(("front", "back"))


@pytest.mark.parametrize(
    ("caller", "called", "cost", "known"),
    [
        pytest.param("a1", "a1", 0.0, True, id="same node"),
        pytest.param("a1", "a2", 1.0, True, id="same zone"),
        pytest.param("a1", "b1", 5.0, True, id="to the other zone"),
        pytest.param("b1", "a1", 7.0, True, id="and back: directions differ"),
        pytest.param("a1", "x1", 40.0, True, id="another region"),
        pytest.param("a1", "bare", 100.0, False, id="a node without labels"),
        pytest.param("bare", "bare", 0.0, True, id="the same node without labels"),
    ],
)
def test_cost_of_a_pair(caller: str, called: str, cost: float, known: bool) -> None:
    [edge] = group_edges(FRONT_BACK, [member("front", caller), member("back", called)], PLACES, COSTS)
    assert (edge.cost, edge.known) == (cost, known)


def test_without_costs_only_equal_places_are_known() -> None:
    members = [member("front", "a1"), member("back", "a2"), member("back", "b1", 2)]
    found = group_edges(FRONT_BACK, members, PLACES, NO_COSTS)
    assert [(edge.cost, edge.known) for edge in found] == [(1.0, True), (100.0, False)]


@pytest.mark.parametrize("node", ["", "gone"], ids=["waiting", "on a node that is not there"])
def test_a_pod_without_a_known_node_has_no_cost(node: str) -> None:
    assert group_edges(FRONT_BACK, [member("front", "a1"), member("back", node)], PLACES, COSTS) == []


@pytest.mark.parametrize(
    ("limit", "node", "over"),
    [(math.inf, "x1", False), (5, "b1", False), (4, "b1", True), (0, "a2", False), (0, "b1", True), (50, "bare", True)],
    ids=["no limit", "just met", "exceeded", "0 is met in the zone", "0 is not met beyond", "unknown counts as 100"],
)
def test_limits(limit: float, node: str, over: bool) -> None:
    shop = group(("front", "back"), limit=limit)
    [edge] = group_edges(shop, [member("front", "a1"), member("back", node)], PLACES, COSTS)
    assert edge.over is over
    assert ("maxNetworkCost" in edge.document()) is (limit != math.inf)


def test_bandwidth_is_shared_by_the_replicas_that_are_called() -> None:
    shop = group(("front", "back"), bandwidth=10e6)
    found = group_edges(shop, [member("front", "a1"), member("back", "b1"), member("back", "", 2)], PLACES, COSTS)
    assert [edge.bandwidth for edge in found] == [5e6]
    assert found[0].document()["bandwidth"] == 5e6


def test_the_document_of_an_edge() -> None:
    shop = group(("front", "back"), limit=4)
    [edge] = group_edges(shop, [member("front", "a1"), member("back", "b1")], PLACES, COSTS)
    assert edge.document() == {
        "from": {"pod": "front-1", "workload": "front", "node": "a1"},
        "to": {"pod": "back-1", "workload": "back", "node": "b1"},
        "cost": 5.0,
        "known": True,
        "overLimit": True,
        "maxNetworkCost": 4,
    }


def test_no_edges_have_no_mean() -> None:
    assert edge_summary(EdgeTotals()) == {"edges": 0}


def test_a_summary_counts_what_is_over_and_what_is_unknown() -> None:
    shop = group(("front", "back"), limit=4)
    members = [member("front", "a1"), member("back", "a1"), member("back", "b1", 2), member("back", "bare", 3)]
    assert edge_summary(edge_totals(shop, WorkloadPlaces(members), PLACES, COSTS)[0]) == {
        "edges": 3, "meanEdgeCost": 35.0, "edgesOverLimit": 2, "edgesOfUnknownCost": 1,
    }  # fmt: skip


def test_dependencies_begin_with_those_above_their_limit() -> None:
    shop = Group(
        key=("default", "shop"),
        selectors=("a", "b", "c", "d"),
        edges=(
            GroupEdge("a", "b", 0.0, math.inf),
            GroupEdge("a", "c", 0.0, 2.0),
            GroupEdge("a", "d", 0.0, math.inf),
        ),
    )
    members = [member("a", "a1"), member("b", "x1"), member("c", "b1")]
    rows = workload_edges(shop, group_edges(shop, members, PLACES, COSTS))
    assert [(row["to"], row["pairs"], row.get("pairsOverLimit")) for row in rows] == [
        ("c", 1, 1),
        ("b", 1, 0),
        ("d", 0, None),
    ]


def test_places_of_nodes() -> None:
    labels = {"topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": "z"}
    assert node_places([builders.node("n", labels=labels), builders.node("m")]) == {"n": Place("r", "z"), "m": Place()}


@settings(deadline=None)
@given(
    fronts=st.lists(st.sampled_from(sorted(PLACES)), max_size=4),
    backs=st.lists(st.sampled_from([*sorted(PLACES), ""]), max_size=4),
)
def test_pairs_and_dependencies_agree(fronts: Sequence[str], backs: Sequence[str]) -> None:
    members = [member("front", node, number) for number, node in enumerate(fronts)]
    members += [member("back", node, number) for number, node in enumerate(backs)]
    edges = group_edges(FRONT_BACK, members, PLACES, COSTS)
    [row] = workload_edges(FRONT_BACK, edges)
    summary = edge_summary(edge_totals(FRONT_BACK, WorkloadPlaces(members), PLACES, COSTS)[0])
    assert row["pairs"] == summary["edges"] == len(fronts) * sum(bool(node) for node in backs)
    assert row.get("meanCost") == summary.get("meanEdgeCost")


CHAIN = group(("a", "b"), ("b", "c"))


class TestTotals:
    def totals(self, **nodes: str) -> dict[str, tuple[int, float]]:
        members = [member(workload, node) for workload, node in nodes.items()]
        _, found = edge_totals(CHAIN, WorkloadPlaces(members), PLACES, COSTS)
        return {workload: (each.edges, each.cost) for (workload, _), each in found.items() if each.edges}

    def test_both_ends_count_in_the_direction_of_the_call(self) -> None:
        assert self.totals(a="a1", b="b1") == {"a": (1, 5.0), "b": (1, 5.0)}
        assert self.totals(a="b1", b="a1") == {"a": (1, 7.0), "b": (1, 7.0)}

    def test_one_node_is_free_and_one_place_is_not(self) -> None:
        assert self.totals(a="a1", b="a1", c="a2") == {"a": (1, 0.0), "b": (2, 1.0), "c": (1, 1.0)}

    def test_waiting_or_unknown_ends_do_not_count(self) -> None:
        assert self.totals(a="a1", b="elsewhere", c="") == {}


NODES = st.lists(st.sampled_from([*sorted(PLACES), "", "elsewhere"]), max_size=5)


@settings(deadline=None)
@given(nodes=st.tuples(NODES, NODES, NODES), limit=st.sampled_from([0.0, 5.0, 50.0, math.inf]))
def test_counted_sums_are_those_of_all_pairs(nodes: tuple[list[str], ...], limit: float) -> None:
    members = [member(one, node, k) for one, where in zip("abc", nodes, strict=True) for k, node in enumerate(where)]
    shop = group(("a", "b"), ("b", "c"), limit=limit)
    edges = group_edges(shop, members, PLACES, COSTS)
    total, by_pod = edge_totals(shop, WorkloadPlaces(members), PLACES, COSTS)
    pairwise = pairwise_totals(edges)
    assert sum(pairwise.values(), EdgeTotals()) == total.times(2)
    for one in members:
        assert by_pod.get((one.workload, one.node), EdgeTotals()) == pairwise.get(one.uid, EdgeTotals())
