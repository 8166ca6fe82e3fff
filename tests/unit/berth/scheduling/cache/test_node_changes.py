"""What differs between two states of a node."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.labels import LABEL_REGION, LABEL_SEGMENT, LABEL_ZONE, RESOURCE_BANDWIDTH
from berth.kube.objects import Node
from berth.scheduling.cache.node_changes import NOTHING, UNCHANGED, NodeChange, NodePart, node_settings
from tests.support.builders import node
from tests.support.placement import zoned


def noted(**annotations: str) -> Node:
    made = node("n")
    made.metadata.annotations = {name.replace("__", "/").replace("_", "-"): text for name, text in annotations.items()}
    return made


def featured(*features: str) -> Node:
    made = node("n")
    made.status.declared_features = list(features)
    return made


def heard() -> Node:
    made = node("n")
    made.metadata.resource_version = "7"
    made.status.conditions = []
    return made


@pytest.mark.parametrize(
    ("before", "after", "parts", "labels"),
    [
        pytest.param(node("n"), heard(), NOTHING, set(), id="a-heartbeat"),
        pytest.param(node("n"), node("n", taints=["a:NoSchedule"]), NOTHING, set(), id="a-taint"),
        pytest.param(node("n"), node("n", labels={"a": "1"}), NOTHING, {"a"}, id="a-label-comes"),
        pytest.param(node("n", labels={"a": "1"}), node("n"), NOTHING, {"a"}, id="a-label-goes"),
        pytest.param(
            node("n", labels={"a": "1", "b": "1"}), node("n", labels={"a": "2", "b": "1"}), NOTHING, {"a"}, id="a-value"
        ),
        pytest.param(zoned("n", "z1"), zoned("n", "z2"), NodePart.PLACE, {LABEL_ZONE}, id="zone"),
        pytest.param(zoned("n", "z", "r1"), zoned("n", "z", "r2"), NodePart.PLACE, {LABEL_REGION}, id="region"),
        pytest.param(node("n", labels={LABEL_SEGMENT: "s1"}), node("n"), NodePart.PLACE, {LABEL_SEGMENT}, id="segment"),
        pytest.param(node("n", cpu=4), node("n", cpu=8), NodePart.AMOUNTS, set(), id="amounts"),
        pytest.param(
            node("n"),
            node("n", extra={RESOURCE_BANDWIDTH: "1G"}),
            NodePart.AMOUNTS | NodePart.LINK,
            set(),
            id="a-link-comes",
        ),
        pytest.param(noted(), noted(berth_dev="1"), NOTHING, set(), id="an-annotation-of-others"),
        pytest.param(featured(), featured("A"), NodePart.FEATURES, set(), id="features"),
    ],
)
def test_what_differs(before: Node, after: Node, parts: NodePart, labels: set[str]) -> None:
    change = NodeChange.between(before, after)
    assert change == NodeChange(parts, frozenset(labels))
    assert bool(change) is bool(parts or labels)


def test_our_settings_are_told_from_annotations_of_others() -> None:
    before, after = node("n"), node("n")
    after.metadata.annotations = {"berth.dev/usage-threshold": "0.5", "example.com/seen": "now"}
    assert node_settings(after) == {"berth.dev/usage-threshold": "0.5"}
    assert NodeChange.between(before, after).parts == NodePart.SETTINGS


LABELS = st.dictionaries(st.sampled_from(["a", "b", LABEL_ZONE]), st.sampled_from("12"))


@given(LABELS, LABELS)
def test_either_way_the_same_differs(one: dict[str, str], other: dict[str, str]) -> None:
    before, after = node("n", labels=one), node("n", labels=other)
    change = NodeChange.between(before, after)
    assert change == NodeChange.between(after, before)
    assert bool(change) is (one != other)
    assert NodeChange.between(before, before) is UNCHANGED
