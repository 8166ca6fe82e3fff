"""Waiting pods as the gang engine's Application: edges, placed peers, masks, port conflicts, selectors; edge costs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pytest

from berth.api.labels import ANNOTATION_ADMITTED_BANDWIDTH
from berth.kube.objects import Pod
from berth.network.groups import Group
from berth.scheduling.cache.pod_templates import PodInfo
from berth.scheduling.framework.cycle_state import names_nodes
from berth.scheduling.framework.framework import FilterResult
from berth.scheduling.gang.application import Candidate, build_application
from berth.scheduling.gang.problem import Application
from tests.support import builders, kinds
from tests.support.placement import Lab, chain, group_object, member, zoned


@pytest.fixture
def lab() -> Lab:
    return Lab([zoned("n1"), zoned("n2"), zoned("n3")])


@pytest.fixture
def shop(lab: Lab) -> Group:
    return lab.group(group_object("shop", *chain("a", "b", "c", minBandwidth="10M", maxNetworkCost=7)))


def candidate(info: PodInfo, mask: np.ndarray[Any, Any]) -> Candidate:
    """A candidate whose filters said no more than this mask."""
    return Candidate(info, FilterResult(mask=mask, nodes=len(mask)), {})


def build(lab: Lab, group: Group, *pods: Pod, unlimited: Collection[str] = ()) -> Application:
    lab.see(*pods)
    mask = np.ones(lab.cache.state.size, dtype=np.bool_)
    candidates = [candidate(lab.cache.state.info(pod), mask) for pod in pods]
    members = lab.cache.members.of(group.key)
    return build_application(group, candidates, members, lab.cache.state, unlimited=unlimited)


class TestEdges:
    def test_between_candidates(self, lab: Lab, shop: Group) -> None:
        made = build(lab, shop, member("p", "a"), member("q", "b"), member("r", "c"))
        assert made.edges.tolist() == [[0, 1], [1, 2]]
        assert made.bandwidth.tolist() == [10e6, 10e6]
        assert made.max_cost.tolist() == [7, 7]
        assert made.placed_peers.component.size == 0
        assert made.names == ("p", "q", "r")

    def test_towards_placed_members_in_both_directions(self, lab: Lab, shop: Group) -> None:
        lab.see(member("p", "a", on="n2"), member("r", "c", on="n3"))
        made = build(lab, shop, member("q", "b"))
        assert made.edges.size == 0
        placed_peers = zip(
            made.placed_peers.component.tolist(),
            made.placed_peers.node.tolist(),
            made.placed_peers.incoming.tolist(),
            strict=True,
        )
        assert sorted(placed_peers) == [(0, 1, True), (0, 2, False)]
        assert made.placed_peers.max_cost.tolist() == [7, 7]

    def test_a_waiting_member_that_is_no_candidate_is_no_end(self, lab: Lab, shop: Group) -> None:
        lab.see(member("q", "b"))
        made = build(lab, shop, member("p", "a"), member("r", "c"))
        assert (made.edges.size, made.placed_peers.component.size) == (0, 0)

    def test_a_placed_peer_on_an_unknown_node_is_left_out(self, lab: Lab, shop: Group) -> None:
        lab.see(member("q", "b", on="not-seen"))
        assert build(lab, shop, member("p", "a")).placed_peers.component.size == 0

    def test_edges_between_placed_pods_are_not_ours(self, lab: Lab, shop: Group) -> None:
        lab.see(member("p", "a", on="n1"), member("q", "b", on="n2"))
        made = build(lab, shop, member("other", "x"))
        assert (made.edges.size, made.placed_peers.component.size) == (0, 0)

    def test_bandwidth_is_shared_by_placed_and_waiting_replicas(self, lab: Lab, shop: Group) -> None:
        lab.see(member("q1", "b", on="n1"))
        made = build(lab, shop, member("p", "a"), member("q2", "b"))
        assert made.bandwidth.tolist() == [5e6]
        assert made.placed_peers.bandwidth.tolist() == [5e6]

    @pytest.mark.parametrize(
        ("admitted", "edge"),
        [
            pytest.param('{"b": 4000000}', (2e6, 1.0), id="less-than-stated-now"),
            pytest.param('{"b": 40000000}', (20e6, 1.0), id="more-than-stated-now"),
            pytest.param("{}", (0.0, 1.0), id="nothing"),
            pytest.param("", (5e6, 1.0), id="bound-by-another-scheduler"),
        ],
    )
    def test_placed_callers_take_what_they_were_admitted_with(
        self, lab: Lab, shop: Group, admitted: str, edge: tuple[float, float]
    ) -> None:
        caller = member("p", "a", on="n1")
        caller.metadata.annotations = {ANNOTATION_ADMITTED_BANDWIDTH: admitted}
        lab.see(caller)
        peers = build(lab, shop, member("q1", "b"), member("q2", "b")).placed_peers
        assert list(zip(peers.bandwidth.tolist(), peers.weight.tolist(), strict=True)) == [edge, edge]

    def test_an_edge_that_the_group_no_longer_has_is_bandwidth_and_no_cost(self, lab: Lab, shop: Group) -> None:
        caller = member("r", "c", on="n1")
        caller.metadata.annotations = {ANNOTATION_ADMITTED_BANDWIDTH: '{"a": 7, "z": 8}'}
        lab.see(caller)
        peers = build(lab, shop, member("p", "a")).placed_peers
        assert (peers.bandwidth.tolist(), peers.weight.tolist(), peers.max_cost.tolist()) == ([7], [0], [np.inf])

    @pytest.mark.parametrize(
        ("unlimited", "among", "towards"),
        [((), 7, 7), ("bc", np.inf, np.inf), ("b", np.inf, 7), ("c", 7, np.inf)],
        ids=["all", "none", "those among candidates are left", "those to placed pods are left"],
    )
    def test_limits_of_calls_that_are_left_to_filters(
        self, lab: Lab, shop: Group, unlimited: Collection[str], among: float, towards: float
    ) -> None:
        lab.see(member("r", "c", on="n1"))
        made = build(lab, shop, member("p", "a"), member("q", "b"), unlimited=unlimited)
        assert (made.max_cost.tolist(), made.placed_peers.max_cost.tolist()) == ([among], [towards])

    def test_no_group_no_edges(self, lab: Lab) -> None:
        pod = builders.pod("p", cpu="500m", memory="1Gi")
        mask = np.ones(3, dtype=np.bool_)
        made = build_application(None, [candidate(lab.cache.state.info(pod), mask)], [], lab.cache.state)
        assert made.edges.size == 0
        assert made.requests.tolist() == [[500.0, 2.0**30, 0.0, 1.0]]


class TestPorts:
    @pytest.mark.parametrize(
        ("one", "other", "separate"),
        [
            pytest.param(80, 80, True, id="same-port"),
            pytest.param(80, 81, False, id="other-port"),
            pytest.param(("", "TCP", 53), ("", "UDP", 53), False, id="other-protocol"),
            pytest.param(("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), False, id="other-address"),
            pytest.param(("10.0.0.1", "TCP", 80), ("", "TCP", 80), True, id="any-address-clashes"),
        ],
    )
    def test_pairs_that_may_not_share_a_node(self, lab: Lab, shop: Group, one: Any, other: Any, separate: bool) -> None:
        made = build(lab, shop, member("p", "a", host_ports=[one]), member("q", "b", host_ports=[other]))
        assert made.separate.tolist() == ([[0, 1]] if separate else [])


class TestSelectors:
    @pytest.mark.parametrize(
        ("spec", "named"),
        [
            pytest.param({}, False, id="none"),
            pytest.param({"nodeSelector": {"kubernetes.io/hostname": "n1"}}, True, id="node-selector"),
            pytest.param(
                {"affinity": builders.required_affinity(("zone", "In", ["z1"]))}, True, id="required-affinity"
            ),
            pytest.param({"tolerations": [{"operator": "Exists"}]}, False, id="tolerations"),
        ],
    )
    def test_who_names_nodes(self, lab: Lab, spec: dict[str, Any], named: bool) -> None:
        assert names_nodes(lab.cache.state.info(builders.pod("p", spec=spec)).template) is named

    def test_masks_of_those_that_do(self, lab: Lab, shop: Group) -> None:
        state = lab.cache.state
        chosen = np.array([True, False, False])
        candidates = [
            candidate(state.info(member("p", "a")), np.ones(3, dtype=np.bool_)),
            candidate(state.info(member("q", "b", spec={"nodeSelector": {"x": "y"}})), chosen),
        ]
        made = build_application(shop, candidates, [], state)
        assert made.named is not None
        assert [made.named.row(number).tolist() for number in (0, 1)] == [[False] * 3, chosen.tolist()]
        assert made.has_selector.tolist() == [False, True]
        assert made.allowed is not None
        assert made.allowed.row(1).tolist() == chosen.tolist()

    def test_nobody_names_anything(self, lab: Lab, shop: Group) -> None:
        assert build(lab, shop, member("p", "a"), member("q", "b")).named is None

    def test_identical_pods_share_a_row(self, lab: Lab, shop: Group) -> None:
        made = build(lab, shop, member("p", "a"), member("q", "b"))
        assert made.allowed is not None
        assert made.allowed.masks.shape == (1, 3)


class TestMasks:
    @pytest.mark.parametrize(
        ("masks", "groups"),
        [
            pytest.param([[1, 1, 1], [1, 1, 1], [1, 1, 1]], [0, 0, 0], id="equal"),
            pytest.param([[1, 1, 1], [1, 1, 0], [1, 1, 1]], [0, 1, 0], id="one-differs"),
            pytest.param([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [0, 1, 2], id="all-differ"),
        ],
    )
    def test_templates_with_the_same_nodes_share_a_row(
        self, lab: Lab, shop: Group, masks: list[list[int]], groups: list[int]
    ) -> None:
        pods = [member("p", "a"), member("q", "b"), member("r", "c")]
        lab.see(*pods)
        rows = [np.array(mask, dtype=np.bool_) for mask in masks]
        candidates = [candidate(lab.cache.state.info(pod), row) for pod, row in zip(pods, rows, strict=True)]
        made = build_application(shop, candidates, lab.cache.members.of(shop.key), lab.cache.state)
        assert made.allowed is not None
        assert made.allowed.group.tolist() == groups
        assert made.allowed.masks.shape[0] == len(set(groups))
        for number, row in enumerate(rows):
            assert made.allowed.row(number).tolist() == row.tolist()


def test_workloads_with_several_dependencies() -> None:
    lab = Lab([zoned("n1")])
    shop = lab.group(group_object("shop", kinds.workload("a", "b", "c"), kinds.workload("b", "c"), kinds.workload("c")))
    made = build(lab, shop, member("c1", "c"), member("a1", "a"), member("b1", "b"))
    assert sorted(map(tuple, made.edges.tolist())) == [(1, 0), (1, 2), (2, 0)]
