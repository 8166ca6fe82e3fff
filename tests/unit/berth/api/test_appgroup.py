"""The AppGroup: its fields, its status on the wire, the summary of its order."""

from typing import Any

import pytest

from berth.api.appgroup import (
    AppGroup,
    AppGroupStatus,
    SortingAlgorithm,
    TopologyOrderEntry,
    order_summary,
    sorted_by_selector,
)
from tests.support.kinds import app_group, ref, workload


def test_appgroup_fields() -> None:
    group = AppGroup.parse(
        app_group(workload("a", "b", minBandwidth="100Mi", maxNetworkCost=7), workload("b"), numMembers=5)
    )
    assert group.spec.num_members == 5
    assert group.spec.topology_sorting_algorithm == "KahnSort"
    edge = group.spec.workloads[0].dependencies[0]
    assert (edge.workload.selector, edge.min_bandwidth, edge.bandwidth, edge.max_network_cost) == (
        "b",
        "100Mi",
        100 * 2**20,
        7,
    )
    assert group.spec.workloads[1].dependencies == ()


def test_what_a_dependency_does_not_state_is_none_and_not_zero() -> None:
    edge = AppGroup.parse(app_group(workload("a", "b"), workload("b"))).spec.workloads[0].dependencies[0]
    assert (edge.min_bandwidth, edge.max_network_cost) == (None, None)


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [*((item.value, item) for item in SortingAlgorithm), ("QuickSort", "KahnSort"), ("", "KahnSort")],
)
def test_an_unknown_algorithm_is_read_as_kahnsort(name: str, algorithm: str) -> None:
    assert SortingAlgorithm.read(name) == algorithm


@pytest.mark.parametrize(
    ("text", "bits"),
    [("1.5k", 1500), ("0.1", 1), (7, 7), ("-5M", 0), (-1, 0), ("fast", 0), ("", 0), ("1e1.5", 0), ("0" * 30 + "5", 5)],
    ids=repr,
)
def test_a_bandwidth_that_makes_no_sense_is_no_demand(text: str | int, bits: int) -> None:
    spec = AppGroup.parse(app_group(workload("a", "b", minBandwidth=text), workload("b"))).spec
    assert spec.workloads[0].dependencies[0].bandwidth == bits


def test_contradictions_are_read_as_documented() -> None:
    twice = {**workload("a", "c"), "workload": {**ref("a"), "name": "second"}}
    entries = (workload("a", "b", "a"), workload("b", "gone"), workload("c"), twice)
    spec = AppGroup.parse(app_group(*entries, numMembers=1)).spec
    assert [(selector, item.name) for selector, item in spec.by_selector().items()] == [
        ("a", "a"),
        ("b", "b"),
        ("c", "c"),
    ]
    assert [(dependent, edge.workload.selector) for dependent, edge in spec.edges()] == [("a", "b"), ("a", "c")]
    assert spec.members == 3


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param({"index": 2}, id="no-workload"),
        pytest.param({"workload": ref("b")}, id="no-index"),
        pytest.param({"utilisation": 3}, id="neither"),
    ],
)
def test_an_entry_of_the_order_that_upstream_leaves_incomplete_gives_no_place(entry: dict[str, Any]) -> None:
    order = [{"workload": ref("a"), "index": 1}, entry]
    group = AppGroup.parse({**app_group(workload("a")), "status": {"topologyOrder": order}})
    assert [item.workload.selector for item in group.status.topology_order] == ["a"]


def test_status_is_written_in_the_wire_form() -> None:
    entry = TopologyOrderEntry.model_validate({"workload": ref("a"), "index": 1})
    status = AppGroupStatus(running_workloads=0, topology_order=(entry,), order_summary="a")
    assert status.to_api() == {
        "runningWorkloads": 0,
        "topologyOrder": [{"workload": ref("a"), "index": 1}],
        "orderSummary": "a",
        "podsScheduled": [],
        "conditions": [],
    }


@pytest.mark.parametrize(
    ("selectors", "summary"),
    [
        ([], ""),
        (["p1"], "p1"),
        (["p1", "p2", "p3"], "p1,p2,p3"),
        (["p1", "p10", "p9", "p8"], "p1,p10,p9,...(4)"),
        ([f"p{i}" for i in range(1, 12)], "p1,p2,p3,...(11)"),
        (["p" * 63, "q" * 64, "r" * 300_000], f"{'p' * 63},{'q' * 60}…,{'r' * 60}…"),
    ],
    ids=["none", "one", "just-fits", "one-left-out", "eleven", "longer-than-labels"],
)
def test_order_summary(selectors: list[str], summary: str) -> None:
    order = [TopologyOrderEntry.model_validate({"workload": ref(s), "index": i}) for i, s in enumerate(selectors, 1)]
    # The list is sorted by selector in the status; the summary stays in order of index.
    assert order_summary(order) == order_summary(sorted_by_selector(order)) == summary
