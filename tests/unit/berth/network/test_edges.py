"""Edges between pods, and the book of the bandwidth that they take."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.network.admitted import Admitted
from berth.network.edges import TO_ALL, BandwidthAllocations, node_bandwidth, pod_edges
from berth.network.groups import MAX_EDGE_BANDWIDTH, Group, GroupEdge, read_group
from berth.network.members import GroupMembers, Member
from tests.support import kinds
from tests.support.pairs import group_bandwidth
from tests.support.placement import chain, group_object, member


def at(workload: str, node: str = "", number: int = 1) -> Member:
    return Member(uid=f"{workload}{number}", key=f"default/{workload}{number}", workload=workload, node=node)


def group(**demand: Any) -> Group:
    return read_group(group_object("shop", *chain("a", "b"), numMembers=2, **demand))


@pytest.mark.parametrize(
    ("callees", "bandwidth", "share"),
    [
        pytest.param(1, "10M", 10e6, id="one-replica"),
        pytest.param(4, "10M", 2.5e6, id="shared-by-four"),
        pytest.param(3, "10", 4, id="whole-bits-rounded-up"),
        pytest.param(2, None, 0, id="no-demand"),
    ],
)
def test_share_of_the_bandwidth(callees: int, bandwidth: str | None, share: float) -> None:
    demand = {"minBandwidth": bandwidth} if bandwidth else {}
    shop = read_group(group_object("shop", *chain("a", "b", **demand)))
    edges = list(pod_edges(shop, [at("a"), *(at("b", number=n) for n in range(callees))]))
    assert [edge.bandwidth for edge in edges] == [share] * callees


def test_every_pair_of_replicas_is_an_edge() -> None:
    shop = group()
    edges = pod_edges(shop, [at("a", number=1), at("a", number=2), at("b", number=1), at("b", number=2)])
    assert {(edge.dependent.uid, edge.dependency.uid) for edge in edges} == {
        ("a1", "b1"), ("a1", "b2"), ("a2", "b1"), ("a2", "b2"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("limit", "effective"),
    [
        pytest.param(None, math.inf, id="none"),
        pytest.param(0, 1.0, id="same-zone-satisfies-any"),
        pytest.param(7, 7.0, id="given"),
    ],
)
def test_limit_of_an_edge(limit: int | None, effective: float) -> None:
    demand = {} if limit is None else {"maxNetworkCost": limit}
    shop = read_group(group_object("shop", *chain("a", "b", **demand)))
    assert [edge.max_cost for edge in pod_edges(shop, [at("a"), at("b")])] == [effective]


@pytest.mark.parametrize(
    "members",
    [
        pytest.param([at("a")], id="no-callee"),
        pytest.param([at("b")], id="no-caller"),
        pytest.param([at("x"), at("b")], id="unknown-workload"),
        pytest.param([], id="nobody"),
    ],
)
def test_no_edge_without_both_ends(members: list[Member]) -> None:
    assert list(pod_edges(group(), members)) == []


def test_usage_counts_placed_pairs_on_different_nodes_only() -> None:
    shop = read_group(group_object("shop", *chain("a", "b", minBandwidth="9")))
    members = [at("a", "n2"), at("b", "n1", 1), at("b", "n2", 2), at("b", "", 3)]
    assert group_bandwidth(pod_edges(shop, members)) == {("n1", "n2"): 3}


class CountedEdges(tuple[GroupEdge, ...]):
    """Dependencies that count how often they are gone through."""

    looks = 0

    def __iter__(self) -> Iterator[GroupEdge]:
        CountedEdges.looks += 1
        return super().__iter__()


def test_dependencies_are_gone_through_once_however_many_workloads_call() -> None:
    names = [f"w{number}" for number in range(50)]
    shop = read_group(group_object("shop", *chain(*names, minBandwidth="10")))
    members = GroupMembers()
    for number, name in enumerate(names):
        members.update(member(name, name), node=f"n{number}")
    CountedEdges.looks = 0
    taken = node_bandwidth(
        shop.key,
        replace(shop, edges=CountedEdges(shop.edges)),
        members.callers(shop.key),
        members.places(shop.key),
        TO_ALL,
    )
    assert CountedEdges.looks == 1
    assert taken == {"n0": 10, "n49": 10, **{f"n{number}": 20 for number in range(1, 49)}}


class TestLedger:
    def setup_method(self) -> None:
        self.members = GroupMembers()
        self.bandwidth_allocations = BandwidthAllocations(self.members)
        self.shop = read_group(group_object("shop", *chain("a", "b", minBandwidth="10M")))

    def place(self, name: str, workload: str, node: str) -> None:
        self.members.update(member(name, workload), node=node)
        self.bandwidth_allocations.mark(self.shop.key)

    def refreshed(self, *groups: Group) -> tuple[dict[str, float], dict[tuple[str, str], float]]:
        self.bandwidth_allocations.refresh({one.key: one for one in groups})
        return dict(self.bandwidth_allocations.nodes), dict(self.bandwidth_allocations.pairs)

    def test_both_ends_pay(self) -> None:
        self.place("one", "a", "n2")
        self.place("two", "b", "n1")
        assert self.refreshed(self.shop) == ({"n1": 10e6, "n2": 10e6}, {("n1", "n2"): 10e6})

    def test_nothing_is_left_when_the_pods_go(self) -> None:
        self.place("one", "a", "n2")
        for number in range(3):
            self.place(f"b{number}", "b", "n1")
            self.refreshed(self.shop)
        for number in range(3):
            self.bandwidth_allocations.mark(self.members.delete(f"pod-default-b{number}"))
            self.refreshed(self.shop)
        assert self.refreshed(self.shop) == ({}, {})

    def test_nothing_is_noted_of_groups_that_are_gone_though_nobody_asks_for_pairs(self) -> None:
        for number in range(20):
            name = f"shop-{number}"
            shop = read_group(group_object(name, *chain("a", "b", minBandwidth="10M")))
            for workload, node in (("a", "n1"), ("b", "n2")):
                self.members.update(member(f"{name}{workload}", workload, group=name), node=node)
            self.bandwidth_allocations.mark(shop.key)
            self.bandwidth_allocations.refresh({shop.key: shop})
            assert self.bandwidth_allocations._dirty_pairs == {shop.key}
            for workload in "ab":
                self.bandwidth_allocations.mark(self.members.delete(f"pod-default-{name}{workload}"))
            self.bandwidth_allocations.refresh({})
        assert self.bandwidth_allocations._dirty_pairs == set()

    def test_a_deleted_group_gives_back(self) -> None:
        self.place("one", "a", "n2")
        self.place("two", "b", "n1")
        self.refreshed(self.shop)
        self.bandwidth_allocations.mark(self.shop.key)
        assert self.refreshed() == ({}, {})

    @pytest.mark.parametrize("amount", ["1e30", "1T", "999999999999"])
    def test_an_absurd_group_leaves_no_trace_in_the_budgets_of_others(self, amount: str) -> None:
        self.place("one", "a", "n2")
        self.place("two", "b", "n1")
        before = self.refreshed(self.shop)
        odd = read_group(group_object("odd", *chain("x", "y", minBandwidth=amount)))
        for number in range(40):
            self.members.update(member(f"x{number}", "x", group="odd"), node="n1")
            self.members.update(member(f"y{number}", "y", group="odd"), node="n2")
        self.bandwidth_allocations.mark(odd.key)
        nodes, _ = self.refreshed(self.shop, odd)
        assert nodes["n1"] <= 10e6 + 40 * 40 * MAX_EDGE_BANDWIDTH
        self.bandwidth_allocations.mark(odd.key)
        assert self.refreshed(self.shop) == before

    def test_marking_nothing_is_fine(self) -> None:
        self.bandwidth_allocations.mark(None)
        assert self.refreshed(self.shop) == ({}, {})


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a1", "a2", "b1", "b2", "b3", "c1"]),
            st.sampled_from(["", "n1", "n2", "n3", "gone"]),
            st.booleans(),
            st.sampled_from([None, (), (("b", 5), ("c", 10**12)), (("a", 3), ("gone", 9))]),
        ),
        max_size=30,
    )
)
def test_ledger_equals_recomputation(steps: list[tuple[str, str, bool, Admitted | None]]) -> None:
    members = GroupMembers()
    bandwidth_allocations = BandwidthAllocations(members)
    shop = read_group(
        group_object(
            "shop",
            kinds.workload("a", "b", "c", minBandwidth="10"),
            kinds.workload("b", "c", minBandwidth="7"),
            kinds.workload("c"),
        )
    )
    groups = {shop.key: shop}
    for name, node, refresh, admitted in steps:
        if node == "gone":
            bandwidth_allocations.mark(members.delete(f"pod-default-{name}"))
        else:
            bandwidth_allocations.mark(members.update(member(name, name[0]), node=node)[0])
            if node:
                members.move(f"pod-default-{name}", node=node, admitted=admitted)
        if refresh:
            bandwidth_allocations.refresh(groups)
    bandwidth_allocations.refresh(groups)
    # What somebody was admitted with counts where the AppGroup has no such edge too.
    others = (GroupEdge(*names, 0, math.inf) for names in (("b", "a"), ("c", "a"), ("c", "b")))
    all_edges = replace(shop, edges=(*shop.edges, *others))
    pairs = group_bandwidth(pod_edges(all_edges, members.of(shop.key)))
    nodes: dict[str, float] = {}
    for pair, amount in pairs.items():
        for node in pair:
            nodes[node] = nodes.get(node, 0.0) + amount
    assert dict(bandwidth_allocations.pairs) == pairs
    assert dict(bandwidth_allocations.nodes) == nodes
