"""AppGroups compiled for placement."""

from __future__ import annotations

import gc
import math
from dataclasses import replace
from typing import Any

import pytest

from berth.kube.custom_object import encoded
from berth.network.groups import MAX_EDGE_BANDWIDTH, GroupEdge, read_group, relaxed
from tests.support import kinds
from tests.support.placement import chain, group_object


class TestReading:
    def test_edges_in_declaration_order(self) -> None:
        group = read_group(
            group_object(
                "shop",
                kinds.workload("a", "b", minBandwidth="10M", maxNetworkCost=5),
                kinds.workload("b", "c"),
                kinds.workload("c"),
            )
        )
        assert group.edges == (GroupEdge("a", "b", 10_000_000, 5.0), GroupEdge("b", "c", 0, math.inf))
        assert group.selectors == ("a", "b", "c")
        assert (group.key, group.members, group.problem) == (("default", "shop"), 3, "")
        assert (group.uid, group.created) == ("group-default-shop", "2026-01-01T00:00:00Z")

    @pytest.mark.parametrize(("stated", "counted"), [("1e30", MAX_EDGE_BANDWIDTH), ("1T", 1e12), ("10M", 1e7)])
    def test_bandwidth_is_bounded(self, stated: str, counted: float) -> None:
        group = read_group(group_object("shop", *chain("a", "b", minBandwidth=stated)))
        assert group.edges[0].bandwidth == counted

    def test_a_limit_of_zero_is_a_limit(self) -> None:
        group = read_group(group_object("shop", *chain("a", "b", maxNetworkCost=0)))
        assert group.edges[0].max_cost == 0.0

    @pytest.mark.parametrize(
        ("order", "index"),
        [
            pytest.param([], {"a": 1, "b": 2, "c": 3}, id="no-status-yet"),
            pytest.param(["c", "a", "b"], {"c": 1, "a": 2, "b": 3}, id="status"),
            pytest.param(["c", "a"], {"a": 1, "b": 2, "c": 3}, id="older-than-the-spec-shorter"),
            pytest.param(["c", "a", "x"], {"a": 1, "b": 2, "c": 3}, id="older-than-the-spec-renamed"),
        ],
    )
    def test_index_comes_from_a_fitting_order_only(self, order: list[str], index: dict[str, int]) -> None:
        assert read_group(group_object("shop", *chain("a", "b", "c"), order=order)).index == index

    def test_reading_a_large_group_leaves_the_garbage_collector_at_rest(self) -> None:
        obj = group_object("shop", *chain(*(f"w{n}" for n in range(3000))))
        runs: list[str] = []

        def note(phase: str, _: object) -> None:
            runs.append(phase)

        gc.callbacks.append(note)
        try:
            group = read_group(obj)
        finally:
            gc.callbacks.remove(note)
        assert len(group.edges) == 2999
        assert runs in ([], ["start", "stop"])  # once may be right after it

    def test_a_status_of_another_controller_leaves_the_group_usable(self) -> None:
        obj = group_object("shop", *chain("a", "b"))
        obj.status = encoded({"podsScheduled": [{"replicaID": "u-1", "hostname": "n1"}]})
        group = read_group(obj)
        assert (group.problem, group.index, len(group.edges)) == ("", {"a": 1, "b": 2}, 1)

    def test_contradictions_are_read_as_documented(self) -> None:
        entries = (kinds.workload("a", "b", "a", "gone", minBandwidth="fast"), kinds.workload("b"), kinds.workload("a"))
        group = read_group(group_object("shop", *entries, numMembers=1, topologySortingAlgorithm="Quick"))
        assert (group.problem, group.selectors, group.members) == ("", ("a", "b"), 2)
        assert group.edges == (GroupEdge("a", "b", 0, math.inf),)

    @pytest.mark.parametrize(
        ("first", "second", "edge"),
        [
            pytest.param({}, {}, GroupEdge("a", "b", 0, math.inf), id="without-demands"),
            pytest.param(
                {"minBandwidth": "10M"},
                {"minBandwidth": "20M"},
                GroupEdge("a", "b", 20_000_000, math.inf),
                id="bandwidth",
            ),
            pytest.param({"maxNetworkCost": 5}, {"maxNetworkCost": 9}, GroupEdge("a", "b", 0, 5.0), id="limits"),
            pytest.param({"maxNetworkCost": 5}, {}, GroupEdge("a", "b", 0, 5.0), id="one-limit"),
        ],
    )
    @pytest.mark.parametrize("entries", [1, 2], ids=["in-one-entry", "in-two-entries"])
    def test_a_dependency_that_is_listed_twice_counts_once_with_the_stricter_demands(
        self, first: dict[str, Any], second: dict[str, Any], edge: GroupEdge, entries: int
    ) -> None:
        workloads = [kinds.workload("a", "b", **first), kinds.workload("a", "b", **second)]
        if entries == 1:
            workloads[0]["dependencies"] += workloads.pop()["dependencies"]
        group = read_group(group_object("shop", *workloads, kinds.workload("b", "c"), kinds.workload("c")))
        assert group.edges == (edge, GroupEdge("b", "c", 0, math.inf))

    @pytest.mark.parametrize(
        ("spec", "named"),
        [
            pytest.param({"numMembers": 0}, "spec.numMembers", id="no-members"),
            pytest.param({"workloads": "many"}, "spec.workloads", id="workloads-of-a-wrong-type"),
            pytest.param({"numMembers": None}, "spec.numMembers", id="null"),
        ],
    )
    def test_a_broken_one_says_what_to_mend(self, spec: dict[str, Any], named: str) -> None:
        group = read_group(group_object("shop", kinds.workload("a"), **spec))
        assert named in group.problem
        assert "AppGroup default/shop" in group.problem
        assert group.edges == ()
        assert group.key == ("default", "shop")


class TestRelaxed:
    OLD = group_object("shop", kinds.workload("a", "b", minBandwidth="10M", maxNetworkCost=5), kinds.workload("b"))

    @pytest.mark.parametrize(
        ("workloads", "spec", "helps"),
        [
            pytest.param([("a", "b", "10M", 5), ("b",)], {}, False, id="the-same"),
            pytest.param([("a", "b", "20M", 5), ("b",)], {}, False, id="more-bandwidth"),
            pytest.param([("a", "b", "5M", 5), ("b",)], {}, True, id="less-bandwidth"),
            pytest.param([("a", "b", "10M", 4), ("b",)], {}, False, id="a-lower-limit"),
            pytest.param([("a", "b", "10M", 6), ("b",)], {}, True, id="a-higher-limit"),
            pytest.param([("a",), ("b",)], {}, True, id="no-dependency"),
            pytest.param([("b",)], {"numMembers": 2}, True, id="a-workload-less"),
            pytest.param([("a", "b", "10M", 5), ("b",), ("c",)], {"numMembers": 2}, False, id="a-workload-more"),
            pytest.param([("a", "b", "10M", 5), ("b",)], {"numMembers": 1}, False, id="fewer-members-than-workloads"),
            pytest.param([("a", "b", "10M", 5), ("b",)], {"numMembers": 0}, True, id="broken"),
        ],
    )
    def test_an_edit_helps_when_it_demands_less(
        self, workloads: list[tuple[Any, ...]], spec: dict[str, Any], helps: bool
    ) -> None:
        new = [
            kinds.workload(item[0], item[1], minBandwidth=item[2], maxNetworkCost=item[3])
            if len(item) > 1
            else kinds.workload(item[0])
            for item in workloads
        ]
        assert relaxed(read_group(self.OLD), read_group(group_object("shop", *new, **spec))) is helps

    @pytest.mark.parametrize(
        ("before", "after", "helps"),
        [
            pytest.param(2, "two", True, id="it becomes unusable, so that its pods are placed on their own"),
            pytest.param("two", 2, True, id="it becomes usable"),
            pytest.param("two", "two", False, id="it stays as it is"),
            pytest.param("two", "three", False, id="it is broken in another way"),
        ],
    )
    def test_of_one_that_cannot_be_used(self, before: Any, after: Any, helps: bool) -> None:
        old, new = (read_group(group_object("shop", *chain("a", "b"), numMembers=many)) for many in (before, after))
        assert relaxed(old, new) is helps


def test_dependencies_by_their_ends() -> None:
    group = read_group(
        group_object("shop", kinds.workload("a", "b", "c"), kinds.workload("b"), kinds.workload("c", "b"))
    )
    first, second, third = group.edges
    assert dict(group.edges_of) == {"a": [first, second], "b": [first, third], "c": [second, third]}
    assert replace(group, edges=()).edges_of == {}
