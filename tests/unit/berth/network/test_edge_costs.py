"""Sums over a group's dependency edges."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from berth.network.costs import Place
from berth.network.edge_costs import EdgeTotals, edge_totals, node_places, pair_summary
from berth.network.workload_places import WorkloadPlaces
from tests.support import builders
from tests.support.edges import COSTS, PLACES, group, member
from tests.support.pairs import pair_costs, pairwise_totals


def test_no_pairs() -> None:
    assert pair_summary(EdgeTotals(), 0) == {"pairs": 0, "pairsOverLimit": 0}


def test_a_summary_counts_what_is_over_and_what_is_unknown() -> None:
    shop = group(("front", "back"))
    members = [member("front", "a1"), member("back", "a1"), member("back", "b1", 2), member("back", "bare", 3)]
    assert pair_summary(edge_totals(shop, WorkloadPlaces(members), PLACES, COSTS)[0], 2) == {
        "pairs": 3, "pairsOverLimit": 2, "pairsOfUnknownCost": 1,
    }  # fmt: skip


def test_places_of_nodes() -> None:
    labels = {"topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": "z"}
    assert node_places([builders.node("n", labels=labels), builders.node("m")]) == {"n": Place("r", "z"), "m": Place()}


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
@given(nodes=st.tuples(NODES, NODES, NODES))
def test_counted_sums_are_those_of_all_pairs(nodes: tuple[list[str], ...]) -> None:
    members = [member(one, node, k) for one, where in zip("abc", nodes, strict=True) for k, node in enumerate(where)]
    shop = group(("a", "b"), ("b", "c"))
    edges = pair_costs(shop, members, PLACES, COSTS)
    total, by_pod = edge_totals(shop, WorkloadPlaces(members), PLACES, COSTS)
    pairwise = pairwise_totals(edges)
    ends = pairwise.values()
    assert sum(each.edges for each in ends) == 2 * total.edges
    assert sum(each.cost for each in ends) == 2 * total.cost
    assert sum(each.unknown for each in ends) == 2 * total.unknown
    for one in members:
        assert by_pod.get((one.workload, one.node), EdgeTotals()) == pairwise.get(one.uid, EdgeTotals())
