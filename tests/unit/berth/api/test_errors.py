"""What users read when an object does not fit: object, field, problem, remedy."""

from typing import Any

import pytest

from berth.api.appgroup import AppGroup
from berth.api.errors import InvalidObjectError, field_path, object_name
from berth.api.networktopology import NetworkTopology
from tests.support.kinds import app_group, network_topology, weight_set, workload


def in_namespace(raw: dict[str, Any]) -> dict[str, Any]:
    raw["metadata"]["namespace"] = "web"
    return raw


def without_name() -> dict[str, Any]:
    raw = app_group(workload("a"))
    del raw["spec"]["workloads"][0]["workload"]["name"]
    return raw


CASES = [
    pytest.param(
        app_group(workload("a"), numMembers=0),
        "spec.numMembers",
        ["greater than or equal to 1", "found 0", "raise"],
        id="too-few",
    ),
    pytest.param(
        app_group(workload("a"), numMembers="many"),
        "spec.numMembers",
        ["valid integer", "'many'", "whole number"],
        id="no-number",
    ),
    pytest.param(
        app_group(workload("a", "a", maxNetworkCost=10001)),
        "spec.workloads[0].dependencies[0].maxNetworkCost",
        ["less than or equal to 10000", "found 10001", "lower"],
        id="cost-too-high",
    ),
    pytest.param(without_name(), "spec.workloads[0].workload.name", ["required", "add the field"], id="missing-field"),
    pytest.param(
        app_group(workload("a"), workloads="a"),
        "spec.workloads",
        ["must be a list", "found 'a'", "write a list"],
        id="no-list",
    ),
    pytest.param(
        network_topology(weight_set(a={"b": -1})),
        "spec.weights[0].topologyList[0].originList[0].costList[0].networkCost",
        ["greater than or equal to 0", "found -1"],
        id="negative-cost",
    ),
]


@pytest.mark.parametrize(("raw", "path", "words"), CASES)
def test_message_names_object_field_problem_and_remedy(raw: dict[str, Any], path: str, words: list[str]) -> None:
    model = {"AppGroup": AppGroup, "NetworkTopology": NetworkTopology}[raw["kind"]]
    with pytest.raises(InvalidObjectError) as caught:
        model.parse(in_namespace(raw))
    [problem] = caught.value.problems
    assert str(problem).startswith(f"{path}: ")
    assert str(caught.value) == f"{raw['kind']} web/{raw['metadata']['name']}: {problem}"
    assert [word for word in words if word not in problem.text] == []
    assert "pydantic" not in problem.text


def test_every_problem_is_listed() -> None:
    raw = app_group(workload("a"), numMembers=0, topologySortingAlgorithm=5)
    with pytest.raises(InvalidObjectError) as caught:
        AppGroup.parse(raw)
    assert len(caught.value.problems) == 2
    assert str(caught.value) == "; ".join(f"AppGroup shop: {problem}" for problem in caught.value.problems)


@pytest.mark.parametrize(
    "raw", [{}, None, "text", [], {"metadata": None}, {"metadata": {"name": "x"}, "spec": None}], ids=repr
)
def test_no_object_breaks_the_explanation(raw: object) -> None:
    with pytest.raises(InvalidObjectError) as caught:
        AppGroup.parse(raw)
    assert all(problem.text for problem in caught.value.problems)
    assert str(caught.value)


@pytest.mark.parametrize("value", ["soon", "2026-01-31T12:00:00", 5], ids=["words", "no-zone", "number"])
def test_a_bad_timestamp_is_explained(value: object) -> None:
    raw = app_group(workload("a"))
    raw["metadata"]["creationTimestamp"] = value
    with pytest.raises(InvalidObjectError, match=r"metadata\.creationTimestamp: .*write RFC 3339 text"):
        AppGroup.parse(raw)


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ({"kind": "AppGroup", "metadata": {"name": "a", "namespace": "b"}}, "AppGroup b/a"),
        ({"kind": "AppGroup", "metadata": {"name": "a"}}, "AppGroup a"),
        ({"metadata": {}}, "object ?"),
        (7, "object ?"),
    ],
    ids=["namespaced", "cluster", "nameless", "no-object"],
)
def test_object_name(raw: object, name: str) -> None:
    assert object_name(raw) == name


def test_field_path() -> None:
    assert field_path(("spec", "workloads", 3, "workload", "name")) == "spec.workloads[3].workload.name"
    assert field_path(()) == "(object)"
