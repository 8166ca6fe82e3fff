"""Required pod affinity and anti-affinity, in both directions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects import Pod
from berth.scheduling.cache import ClusterState
from berth.scheduling.plugins.inter_pod_affinity import (
    REASON_AFFINITY,
    REASON_ANTI_AFFINITY,
    REASON_EXISTING,
    InterPodAffinity,
)
from tests.support.builders import namespace, node, pod, pod_term, requirement
from tests.support.filtering import cluster, cycle_of, passing, rejected

X, Y = {"app": "x"}, {"app": "y"}
NODES = [
    node("a0", labels={"zone": "a"}),
    node("a1", labels={"zone": "a"}),
    node("b0", labels={"zone": "b"}),
    node("bare"),
]
ALL = {"a0", "a1", "b0", "bare"}


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def away(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def new(affinity: dict[str, Any], labels: dict[str, str] | None = None, home: str = "default") -> Pod:
    return pod("new", namespace=home, labels=labels, spec={"affinity": affinity})


@pytest.mark.parametrize(
    ("terms", "labels", "names"),
    [
        pytest.param([pod_term("zone", X)], {}, {"a0", "a1"}, id="zone-of-the-pod"),
        pytest.param([pod_term("kubernetes.io/hostname", X)], {}, {"a0"}, id="node-of-the-pod"),
        pytest.param([pod_term("zone", {"app": "z"})], {}, set(), id="no-such-pod"),
        pytest.param([pod_term("zone", {"app": "z"})], {"app": "z"}, {"a0", "a1", "b0"}, id="first-of-its-kind"),
        pytest.param([pod_term("zone", X)], X, {"a0", "a1"}, id="not-the-first"),
        pytest.param([pod_term("zone", X), pod_term("zone", Y)], {}, set(), id="one-pod-must-match-all-terms"),
        pytest.param([pod_term("rack", X)], {}, set(), id="key-no-node-has"),
        pytest.param([pod_term("zone")], {}, set(), id="no-selector-matches-nothing"),
    ],
)
def test_affinity(terms: list[dict[str, Any]], labels: dict[str, str], names: set[str]) -> None:
    state = cluster(NODES, [pod("x", on="a0", labels=X), pod("y", on="b0", labels=Y)])
    found = new(near(*terms), labels)
    assert passing(InterPodAffinity(), found, state) == names
    assert rejected(InterPodAffinity(), found, state) == {name: [REASON_AFFINITY] for name in ALL - names}


@pytest.mark.parametrize(
    ("terms", "names"),
    [
        pytest.param([pod_term("zone", X)], {"b0", "bare"}, id="whole-zone-and-keyless-nodes-pass"),
        pytest.param([pod_term("kubernetes.io/hostname", X)], {"a1", "b0", "bare"}, id="one-node"),
        pytest.param([pod_term("zone", X), pod_term("zone", Y)], {"bare"}, id="each-term-on-its-own"),
        pytest.param([pod_term("zone", {"app": "z"})], ALL, id="nobody-to-avoid"),
    ],
)
def test_anti_affinity(terms: list[dict[str, Any]], names: set[str]) -> None:
    state = cluster(NODES, [pod("x", on="a0", labels=X), pod("y", on="b0", labels=Y)])
    found = new(away(*terms))
    assert passing(InterPodAffinity(), found, state) == names
    assert rejected(InterPodAffinity(), found, state) == {name: [REASON_ANTI_AFFINITY] for name in ALL - names}


def test_anti_affinity_of_pods_already_there() -> None:
    state = cluster(NODES, [pod("x", on="a0", labels=X, spec={"affinity": away(pod_term("zone", Y))})])
    assert rejected(InterPodAffinity(), pod("new", labels=Y), state) == {
        "a0": [REASON_EXISTING],
        "a1": [REASON_EXISTING],
    }
    assert passing(InterPodAffinity(), pod("new", labels=X), state) == ALL


def test_deleted_pods_still_count_until_they_are_gone() -> None:
    state = cluster(NODES, [pod("x", on="a0", labels=X, deleting=True)])
    assert passing(InterPodAffinity(), new(away(pod_term("zone", X))), state) == {"b0", "bare"}
    state.delete_pod("pod-default-x")
    assert passing(InterPodAffinity(), new(away(pod_term("zone", X))), state) == ALL


def test_assumed_pods_count() -> None:
    state = cluster(NODES)
    state.assume(pod("x", labels=X), "b0")
    assert passing(InterPodAffinity(), new(near(pod_term("zone", X))), state) == {"b0"}


SPACES = [namespace("red", team="r"), namespace("blue", team="b"), namespace("default")]
RED = {"matchLabels": {"team": "r"}}


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        pytest.param({}, ALL, id="own-namespace-only"),
        pytest.param({"namespaces": ["red"]}, {"b0", "bare"}, id="named"),
        pytest.param({"namespaceSelector": RED}, {"b0", "bare"}, id="by-label"),
        pytest.param({"namespaceSelector": {"matchLabels": {"team": "b"}}}, ALL, id="by-another-label"),
        pytest.param({"namespaceSelector": {}}, {"b0", "bare"}, id="everywhere"),
        pytest.param(
            {"namespaceSelector": {"matchExpressions": [requirement("team", "NotIn", ["r"])]}}, ALL, id="all-but-red"
        ),
    ],
)
@pytest.mark.parametrize("direction", ["own-term", "existing-term"])
def test_namespaces(fields: dict[str, Any], names: set[str], direction: str) -> None:
    term = pod_term("zone", X, **fields)
    if direction == "own-term":
        state = cluster(NODES, [pod("x", namespace="red", on="a0", labels=X)], SPACES)
        found = new(away(term))
    else:
        owner = pod("x", on="a0", spec={"affinity": away(term)})
        state = cluster(NODES, [owner], SPACES)
        found = pod("new", namespace="red", labels=X)
    assert passing(InterPodAffinity(), found, state) == names


def test_first_pod_exception_needs_its_own_namespace_among_the_terms() -> None:
    state = cluster(NODES, namespaces=SPACES)
    term = pod_term("zone", X, namespaces=["red"])
    assert passing(InterPodAffinity(), new(near(term), X), state) == set()
    assert passing(InterPodAffinity(), new(near(term), X, home="red"), state) == {"a0", "a1", "b0"}


def test_plain_pods_cost_nothing_while_nobody_has_anti_affinity() -> None:
    state = cluster(NODES, [pod("x", on="a0", labels=X)])
    assert InterPodAffinity().filter(cycle_of(pod("new", labels=X), state)) == ()


apps = st.sampled_from("xyz")


@given(
    mine=apps,
    theirs=apps,
    avoid=apps,
    key=st.sampled_from(["zone", "kubernetes.io/hostname", "rack"]),
    where=st.sampled_from(sorted(ALL)),
)
def test_anti_affinity_is_symmetric(mine: str, theirs: str, avoid: str, key: str, where: str) -> None:
    """If A refuses B's company, B may not join A where A could not join B."""
    term = pod_term(key, {"app": avoid})
    refusing = pod("a", labels={"app": mine}, spec={"affinity": away(term)})
    plain = pod("b", labels={"app": theirs})

    def mask(first: Pod, second: Pod) -> list[bool]:
        state: ClusterState = cluster(NODES)
        state.assume(first, where)
        found: np.ndarray[Any, Any] = InterPodAffinity().mask(cycle_of(second, state))
        return [bool(value) for value in found]

    assert mask(refusing, plain) == mask(plain, refusing)
