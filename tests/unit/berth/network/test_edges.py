"""Edges between pods."""

from __future__ import annotations

import math
from typing import Any

import pytest

from berth.network.edges import pod_edges
from berth.network.groups import Group, read_group
from berth.network.members import Member
from tests.support.pairs import group_bandwidth
from tests.support.placement import chain, group_object


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
