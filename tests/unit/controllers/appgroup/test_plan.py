"""From a raw AppGroup to its plan: the order, or every reason why there is none."""

from __future__ import annotations

import bisect
import copy
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.appgroup import SortingAlgorithm, TopologyOrderEntry
from controllers.appgroup import plan as plan_module
from controllers.appgroup.plan import REASON_INVALID, REASON_TOO_LARGE, plan_spec
from hack.harness.boutique import ORDERS_10, ORDERS_11, appgroup, boutique, names, workload_ref


@pytest.mark.parametrize("size", [10, 11])
@pytest.mark.parametrize("algorithm", list(SortingAlgorithm))
def test_online_boutique(algorithm: SortingAlgorithm, size: int) -> None:
    plan = plan_spec(boutique(size=size, algorithm=algorithm))
    assert plan.valid
    order = (ORDERS_10 if size == 10 else ORDERS_11)[algorithm].split()
    assert {entry.workload.selector: entry.index for entry in plan.order} == {
        selector: index for index, selector in enumerate(order, start=1)
    }
    assert plan.algorithm is algorithm
    assert plan.num_members == size
    assert list(plan.workloads) == order


def searched(order: Sequence[TopologyOrderEntry], selector: str) -> int:
    """Index of a workload as upstream's TopologicalSort plugin looks it up; -1 when it is not found."""
    place = bisect.bisect_left(order, selector, key=lambda entry: entry.workload.selector)
    found = place < len(order) and order[place].workload.selector == selector
    return order[place].index if found else -1


@pytest.mark.parametrize("algorithm", list(SortingAlgorithm))
def test_upstreams_binary_search_finds_every_workload(algorithm: SortingAlgorithm) -> None:
    order = plan_spec(boutique(algorithm=algorithm)).order
    selectors = ORDERS_11[algorithm].split()
    assert [searched(order, selector) for selector in selectors] == list(range(1, 12))
    assert searched(order, "p99") == -1


@given(st.sets(st.text(min_size=1, max_size=63), min_size=1, max_size=40))
def test_any_selectors_are_found_by_binary_search(selectors: set[str]) -> None:
    order = plan_spec(appgroup({}, sorted(selectors))).order
    assert {searched(order, selector) for selector in selectors} == set(range(1, len(selectors) + 1))
    # Go compares strings by their bytes.
    listed = [entry.workload.selector.encode() for entry in order]
    assert listed == sorted(listed)


def test_order_repeats_the_whole_reference() -> None:
    plan = plan_spec(appgroup({}, ["web"]))
    assert plan.order[0].workload.to_api() == workload_ref("web")


def test_cycles_are_named_by_selector() -> None:
    plan = plan_spec(appgroup({"cart": ["checkout"], "checkout": ["cart"]}, ["web", "cart", "checkout"]))
    assert plan.valid
    assert plan.cycles == (("cart", "checkout", "cart"),)


def test_generation_is_kept() -> None:
    assert plan_spec(boutique(generation=7)).generation == 7


def test_a_broken_status_does_not_make_the_spec_unreadable() -> None:
    document = {**boutique(), "status": {"topologyOrder": "nonsense"}}
    assert plan_spec(document).valid


def _set(path: list[str | int], value: Any) -> dict[str, Any]:
    """Online Boutique with one field of the spec replaced, or removed by a value of None."""
    document = copy.deepcopy(boutique())
    target: Any = document["spec"]
    for part in path[:-1]:
        target = target[part]
    if value is None:
        del target[path[-1]]
    else:
        target[path[-1]] = value
    return document


DEPENDENCY: list[str | int] = ["workloads", 0, "dependencies", 0]

ODD = [
    pytest.param(_set(["workloads", 2, "workload", "selector"], "p2"), "spec.workloads: 2 workloads", id="duplicate"),
    pytest.param(
        _set([*DEPENDENCY, "workload", "selector"], "p1"),
        'spec.workloads[0].dependencies[0]: workload "p1" depends on itself',
        id="self-dependency",
    ),
    pytest.param(
        _set([*DEPENDENCY, "workload", "selector"], "nowhere"),
        'spec.workloads[0].dependencies[0]: workload "p1" depends on "nowhere", which is not a workload of this group',
        id="unknown dependency",
    ),
    pytest.param(
        _set([*DEPENDENCY, "minBandwidth"], "-5M"),
        'spec.workloads[0].dependencies[0].minBandwidth: "-5M" is not a bandwidth',
        id="negative bandwidth",
    ),
    pytest.param(_set([*DEPENDENCY, "minBandwidth"], "fast"), '"fast" is not a bandwidth', id="no quantity"),
    pytest.param(_set(["topologySortingAlgorithm"], "QuickSort"), "spec.topologySortingAlgorithm", id="algorithm"),
    pytest.param(_set(["numMembers"], 3), "spec.numMembers: numMembers is 3", id="too few members"),
]


@pytest.mark.parametrize(("document", "remark"), ODD)
def test_what_makes_no_sense_is_said_and_ordered_nevertheless(document: dict[str, Any], remark: str) -> None:
    plan = plan_spec(document)
    assert plan.valid
    assert any(remark in text for text in plan.remarks)
    selectors = {entry["workload"]["selector"] for entry in document["spec"]["workloads"]}
    assert {entry.workload.selector for entry in plan.order} == selectors
    assert sorted(entry.index for entry in plan.order) == list(range(1, len(selectors) + 1))
    assert plan.algorithm is SortingAlgorithm.KAHN_SORT
    assert plan.num_members >= len(selectors)


@pytest.mark.parametrize(("text", "said"), [("zone", False), ("region", True)])
def test_an_annotation_that_cannot_be_read_is_said(text: str, said: bool) -> None:
    document = boutique()
    document["metadata"]["annotations"] = {"berth.dev/spread": text}
    plan = plan_spec(document)
    assert plan.valid
    told = [remark for remark in plan.remarks if remark.startswith("metadata.annotations.berth.dev/spread: ")]
    assert bool(told) is said
    assert "write one of soft, none, node, zone" in "".join(told) or not said


UNREADABLE = [
    pytest.param(_set(["numMembers"], None), "spec.numMembers", id="missing field"),
    pytest.param(_set(["workloads"], "p1"), "spec.workloads", id="not a list"),
    pytest.param(_set([*DEPENDENCY, "maxNetworkCost"], 20_000), "maxNetworkCost", id="cost out of range"),
    pytest.param(_set(["workloads", 3, "workload", "selector"], None), "spec.workloads[3].workload", id="selector"),
    pytest.param({k: v for k, v in boutique().items() if k != "spec"}, "spec", id="no spec"),
]


@pytest.mark.parametrize(("document", "field"), UNREADABLE)
def test_unreadable_specs(document: dict[str, Any], field: str) -> None:
    plan = plan_spec(document)
    assert plan.reason == REASON_INVALID
    assert any(field in problem for problem in plan.problems)
    # The condition stands on the object itself: its name would only be noise.
    assert not any("default/boutique" in problem for problem in plan.problems)


# The sentences themselves are berth.api.checks' and are tested there.
def test_every_problem_is_reported() -> None:
    document = _set(["numMembers"], 1)
    document["spec"]["workloads"][1]["workload"]["selector"] = "p1"
    assert len(plan_spec(document).remarks) >= 3


@pytest.mark.parametrize(
    ("length", "with_namespace", "valid"),
    [
        pytest.param(5, True, True, id="short names fit whole"),
        pytest.param(53, False, True, id="names of middle length fit without apiVersion and namespace"),
        pytest.param(250, False, False, id="long names do not fit"),
    ],
)
def test_orders_near_the_limit_of_an_object(length: int, with_namespace: bool, valid: bool) -> None:
    document = appgroup({}, names(4000))
    for entry in document["spec"]["workloads"]:
        entry["workload"]["name"] = entry["workload"]["name"].ljust(length, "x")
    plan = plan_spec(document)
    assert plan.valid is valid
    if valid:
        assert all((entry.workload.namespace is not None) is with_namespace for entry in plan.order)
    else:
        assert plan.reason == REASON_TOO_LARGE
        assert "split the group" in plan.problems[0]


def test_size_is_never_underestimated() -> None:
    plan = plan_spec(boutique())
    encoded = msgspec.json.encode([entry.to_api() for entry in plan.order])
    assert plan_module._size([entry.workload for entry in plan.order]) >= len(encoded) - len("[]")
