"""Placed pods that have a term: all of them, but of preferred affinity those that no other placed pod meets."""

from __future__ import annotations

from typing import Any

import pytest

from berth.kube.objects import LabelSelector, Pod
from berth.scheduling.cache.pod_templates import TermKind
from berth.scheduling.cache.selectors import NOTHING, compile_selector
from berth.scheduling.cache.terms import AffinityTerm
from berth.scheduling.replica_plan.placed_pods import PlacedPods
from tests.support import builders
from tests.support.placement import Lab, lone, zoned

ZONE = "topology.kubernetes.io/zone"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def lab() -> Lab:
    """Three nodes in two zones and one without a zone."""
    nodes = [zoned(name, zone) for name, zone in {"n0": "z1", "n1": "z1", "n2": "z2"}.items()]
    return Lab([*nodes, builders.node("n3")])


def stating(kind: str, times: int = 1) -> dict[str, Any]:
    term = {"weight": 7, "podAffinityTerm": builders.pod_term(ZONE, {"app": "a"})}
    return {"affinity": {kind: {PREFERRED: [term] * times}}}


def owner(name: str, on: str, **labels: str) -> Pod:
    """A pod that would be near others with the label app=a."""
    return lone(name, labels=labels, on=on, spec=stating("podAffinity"))


def other(on: str) -> Pod:
    return lone("a", labels={"app": "a"}, on=on)


def owners(pods: list[Pod], gone: str = "", kind: TermKind = "preferred_affinity") -> list[int]:
    """Those of the first pod's term."""
    small = lab()
    small.see(*pods)
    state = small.cache.state
    (term,) = set(state.info(pods[0]).template.terms_of(kind))
    entry = state.pods.term(kind, term)
    assert entry is not None
    records = [record for pod in pods if pod.metadata.name == gone and (record := state.record(pod.metadata.uid))]
    found: list[int] = PlacedPods(state, records).owners(kind, entry).tolist()
    return found


@pytest.mark.parametrize(
    ("pods", "unmet"),
    [
        pytest.param([owner("c", "n0")], [1, 0, 0, 0], id="nobody is there"),
        pytest.param([owner("c", "n0"), other("n0")], [0, 0, 0, 0], id="one is on its node"),
        pytest.param([owner("c", "n0"), other("n1")], [0, 0, 0, 0], id="one is in its zone"),
        pytest.param([owner("c", "n0"), other("n2")], [1, 0, 0, 0], id="one is in another zone"),
        pytest.param([owner("c", "n3"), other("n3")], [0, 0, 0, 1], id="one is on its node, which has no zone"),
        pytest.param([owner("c", "n0", app="a")], [1, 0, 0, 0], id="it is one itself"),
        pytest.param([owner("c", "n0", app="a"), owner("d", "n0", app="a")], [0, 0, 0, 0], id="two meet each other"),
        pytest.param([owner("c", "n0", app="a"), owner("d", "n0")], [1, 0, 0, 0], id="it meets the other, not itself"),
        pytest.param([owner("c", "n0", app="a"), owner("d", "n1")], [1, 0, 0, 0], id="and one on another node"),
    ],
)
def test_of_preferred_affinity_those_that_no_placed_pod_meets(pods: list[Pod], unmet: list[int]) -> None:
    assert owners(pods) == unmet


@pytest.mark.parametrize(
    ("pods", "unmet"),
    [
        pytest.param([owner("c", "n0"), other("n1")], [1, 0, 0, 0], id="no more"),
        pytest.param(
            [owner("c", "n0", app="a"), other("n0"), owner("d", "n1")], [1, 0, 0, 0], id="but for one that stays"
        ),
        pytest.param([owner("c", "n0"), owner("a", "n0", app="a")], [1, 0, 0, 0], id="and states the same"),
        pytest.param([owner("c", "n0", app="a"), owner("a", "n0", app="a")], [1, 0, 0, 0], id="as one that stays does"),
    ],
)
def test_a_pod_that_is_replaced_meets_nobody(pods: list[Pod], unmet: list[int]) -> None:
    assert owners(pods, gone="a") == unmet


@pytest.mark.parametrize(
    ("kind", "stated"), [("preferred_affinity", "podAffinity"), ("preferred_anti_affinity", "podAntiAffinity")]
)
@pytest.mark.parametrize("labels", [{}, {"app": "a"}], ids=["others", "and itself"])
def test_what_a_pod_states_twice_counts_twice(kind: TermKind, stated: str, labels: dict[str, str]) -> None:
    pods = [lone("c", labels=labels, on="n1", spec=stating(stated, times=2))]
    assert owners(pods, kind=kind) == [0, 2, 0, 0]
    assert owners(pods, gone="c", kind=kind) == [0, 0, 0, 0]


def test_a_pod_that_is_replaced_on_a_node_that_is_gone_takes_nothing_off_others() -> None:
    small, old = lab(), owner("c", "n2")
    small.see(old, owner("d", "n0"))
    state = small.cache.state
    record = state.record(old.metadata.uid)
    assert record is not None
    small.cache.delete_node(zoned("n2"))
    (term,) = state.info(old).template.terms_of("preferred_affinity")
    entry = state.pods.term("preferred_affinity", term)
    assert entry is not None
    assert PlacedPods(state, [record]).owners("preferred_affinity", entry).tolist() == [1, 0, 0, 0]


def test_a_required_term_counts_of_those_that_are_replaced_too() -> None:
    term = {"requiredDuringSchedulingIgnoredDuringExecution": [builders.pod_term(ZONE, {"app": "a"})]}
    pods = [lone("c", on="n1", spec={"affinity": {"podAntiAffinity": term}}), other("n1")]
    assert owners(pods, gone="c", kind="anti_affinity") == [0, 1, 0, 0]


@pytest.mark.parametrize(("weight", "counted"), [(0, 1), (7, 0)], ids=["required", "preferred"])
def test_hard_rules_alone_count_a_pod_that_is_replaced(weight: int, counted: int) -> None:
    small, old = lab(), other("n1")
    small.see(old, lone("b", labels={"app": "b"}, on="n1"))
    record = small.cache.state.record(old.metadata.uid)
    assert record is not None
    selector = compile_selector(LabelSelector(match_labels={"app": "a"}), where=())
    term = AffinityTerm(ZONE, frozenset({"default"}), NOTHING, selector, weight)
    assert PlacedPods(small.cache.state, [record]).selected((term,)).tolist() == [0, counted, 0, 0]
