"""Live pods found by what a workload selects; what counts as a replica then: test_inputs.py."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduling.simulation.live_pods import LivePods
from berth.scheduling.simulation.manifests import Document
from berth.scheduling.simulation.workloads import read_workload
from tests.support import builders, plans

LABELS = st.fixed_dictionaries({}, optional={"a": st.sampled_from("xy"), "b": st.sampled_from("xy")})


def _workload(selector: dict[str, Any] | None) -> Any:
    manifest = plans.workload("Deployment", "web")
    manifest["metadata"]["namespace"] = "default"
    manifest["spec"].pop("selector")
    if selector is not None:
        manifest["spec"]["selector"] = selector
    return read_workload(Document("m.yaml", 0, manifest))[0]


@given(pods=st.lists(st.tuples(st.sampled_from(["default", "other"]), LABELS)), wanted=LABELS.filter(bool))
def test_the_pods_found_are_those_that_looking_at_every_pod_finds(
    pods: list[tuple[str, dict[str, str]]], wanted: dict[str, str]
) -> None:
    made = [builders.pod(f"p{n}", namespace=space, labels=labels) for n, (space, labels) in enumerate(pods)]
    workload = _workload({"matchLabels": wanted})
    expected = [p for p in made if p.metadata.namespace == "default" and workload.selects.matches(p.metadata.labels)]
    assert LivePods(made).of(workload) == expected


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        (None, []),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "y"]}]}, ["p", "q"]),
        ({"matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]}, ["p"]),
        ({"matchLabels": {"a": "absent"}}, []),
    ],
    ids=["none", "in", "does-not-exist", "no such label"],
)
def test_selectors_without_a_single_value(selector: dict[str, Any] | None, found: list[str]) -> None:
    pods = [builders.pod("p", labels={"a": "x"}), builders.pod("q", labels={"a": "y", "b": "x"})]
    assert [pod.metadata.name for pod in LivePods(pods).of(_workload(selector))] == found


def test_a_pod_is_known_by_its_key() -> None:
    pods = LivePods([builders.pod("p", namespace="shop")])
    assert "shop/p" in pods
    assert "default/p" not in pods
