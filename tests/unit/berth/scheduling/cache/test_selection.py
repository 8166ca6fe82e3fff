"""nodeSelector, node affinity and tolerations over node columns."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from berth.kube.objects import LabelSelector, NodeSelectorTerm
from berth.scheduling.cache import ClusterState
from berth.scheduling.cache.columns import parse_int64
from berth.scheduling.cache.selection import tolerates
from berth.scheduling.cache.selectors import compile_selector
from tests.support.builders import node, pod, required_affinity, requirement, taint, toleration

NODES = {
    "bare": {},
    "ssd": {"disk": "ssd", "gen": "3"},
    "hdd": {"disk": "hdd", "gen": "10"},
    "odd": {"disk": "", "gen": "new"},
}


@pytest.fixture
def state() -> ClusterState:
    state = ClusterState()
    for name, labels in NODES.items():
        state.update_node(node(name, labels=labels))
    return state


def chosen(state: ClusterState, mask: np.ndarray[Any, Any]) -> set[str]:
    return {state.node_name(int(slot)) for slot in np.flatnonzero(mask)}


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        pytest.param(("disk", "In", ["ssd", "nvme"]), {"ssd"}, id="in"),
        pytest.param(("disk", "In", ["nvme"]), set(), id="in-unknown-value"),
        pytest.param(("disk", "In", [""]), {"odd"}, id="in-empty-value"),
        pytest.param(("disk", "NotIn", ["ssd"]), {"bare", "hdd", "odd"}, id="not-in-takes-nodes-without-key"),
        pytest.param(("disk", "Exists", []), {"ssd", "hdd", "odd"}, id="exists"),
        pytest.param(("disk", "DoesNotExist", []), {"bare"}, id="does-not-exist"),
        pytest.param(("gen", "Gt", ["3"]), {"hdd"}, id="gt-compares-numbers"),
        pytest.param(("gen", "Lt", ["10"]), {"ssd"}, id="lt-is-strict"),
        pytest.param(("gen", "Gt", ["three"]), set(), id="gt-bound-is-no-number"),
        pytest.param(("gen", "Gt", ["1", "2"]), set(), id="gt-with-two-values"),
        pytest.param(("disk", "Near", ["ssd"]), set(), id="unknown-operator-matches-nothing"),
    ],
)
def test_expressions(state: ClusterState, expression: tuple[str, str, list[str]], names: set[str]) -> None:
    info = state.info(pod("p", spec={"affinity": required_affinity(expression)}))
    assert chosen(state, state.selection.affinity(info.template)) == names


@pytest.mark.parametrize(
    ("term", "names"),
    [
        pytest.param({}, set(), id="empty-term-matches-nothing"),
        pytest.param({"matchFields": [requirement("metadata.name", "In", ["ssd"])]}, {"ssd"}, id="field-in"),
        pytest.param(
            {"matchFields": [requirement("metadata.name", "NotIn", ["ssd"])]}, {"bare", "hdd", "odd"}, id="field-not-in"
        ),
        pytest.param({"matchFields": [requirement("metadata.name", "In", ["gone"])]}, set(), id="field-unknown-node"),
        pytest.param({"matchFields": [requirement("metadata.uid", "In", ["ssd"])]}, set(), id="unknown-field"),
        pytest.param(
            {
                "matchFields": [requirement("metadata.name", "NotIn", ["ssd"])],
                "matchExpressions": [requirement("gen", "Exists")],
            },
            {"hdd", "odd"},
            id="fields-and-expressions",
        ),
    ],
)
def test_terms(state: ClusterState, term: dict[str, Any], names: set[str]) -> None:
    assert chosen(state, state.selection.term(msgspec.convert(term, NodeSelectorTerm))) == names


def test_terms_are_alternatives_and_node_selector_comes_on_top(state: ClusterState) -> None:
    affinity = required_affinity(("disk", "In", ["ssd"]))
    terms = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    terms.append({"matchExpressions": [requirement("disk", "In", ["hdd"])]})
    both = state.info(pod("p", spec={"affinity": affinity}))
    assert chosen(state, state.selection.affinity(both.template)) == {"ssd", "hdd"}
    narrowed = state.info(pod("p", spec={"affinity": affinity, "nodeSelector": {"gen": "10"}}))
    assert chosen(state, state.selection.affinity(narrowed.template)) == {"hdd"}


def test_masks_follow_changes_of_labels_and_nodes(state: ClusterState) -> None:
    template = state.info(pod("p", spec={"nodeSelector": {"disk": "ssd"}})).template
    assert chosen(state, state.selection.affinity(template)) == {"ssd"}
    state.update_node(node("bare", labels={"disk": "ssd"}))
    assert chosen(state, state.selection.affinity(template)) == {"bare", "ssd"}
    state.delete_node("ssd")
    assert chosen(state, state.selection.affinity(template)) == {"bare"}


@pytest.mark.parametrize(
    ("raw", "names"),
    [
        pytest.param({"matchLabels": {"disk": "ssd"}}, {"ssd"}, id="labels"),
        pytest.param(
            {"matchExpressions": [requirement("disk", "NotIn", ["ssd"])]}, {"bare", "hdd", "odd"}, id="not-in"
        ),
        pytest.param({"matchExpressions": [requirement("disk", "Exists")]}, {"ssd", "hdd", "odd"}, id="exists"),
        pytest.param({"matchExpressions": [requirement("disk", "DoesNotExist")]}, {"bare"}, id="does-not-exist"),
        pytest.param({}, set(NODES), id="empty"),
        pytest.param(None, set(), id="absent"),
    ],
)
def test_label_selector_over_nodes(state: ClusterState, raw: dict[str, Any] | None, names: set[str]) -> None:
    selector = compile_selector(None if raw is None else msgspec.convert(raw, LabelSelector))
    assert chosen(state, state.selection.label_selector(selector)) == names


@pytest.mark.parametrize(
    ("tolerant", "against", "covers"),
    [
        pytest.param(toleration("k", "Exists"), "k=v:NoSchedule", True, id="exists"),
        pytest.param(toleration("k", "Exists"), "j=v:NoSchedule", False, id="exists-other-key"),
        pytest.param(toleration("", "Exists"), "k=v:NoExecute", True, id="exists-any-key"),
        pytest.param(toleration("k", "Equal", "v"), "k=v:NoSchedule", True, id="equal"),
        pytest.param(toleration("k", "Equal", "w"), "k=v:NoSchedule", False, id="equal-other-value"),
        pytest.param(toleration("k", "", "v"), "k=v:NoSchedule", True, id="no-operator-means-equal"),
        pytest.param(toleration("k", "", ""), "k:NoSchedule", True, id="empty-value"),
        pytest.param(toleration("k", "Exists", effect="NoExecute"), "k=v:NoSchedule", False, id="other-effect"),
        pytest.param(toleration("k", "Exists", effect="NoSchedule"), "k=v:NoSchedule", True, id="same-effect"),
        pytest.param(toleration("k", "Gt", "1"), "k=2:NoSchedule", False, id="gt-is-off-by-default"),
        pytest.param(toleration("k", "Lt", "3"), "k=2:NoSchedule", False, id="lt-is-off-by-default"),
    ],
)
def test_tolerations(tolerant: Any, against: str, covers: bool) -> None:
    assert tolerates(tolerant, taint(against)) is covers


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *[("7", 7), ("-3", -3), ("+4", 4), ("", None), ("1.5", None), ("1_0", None), (" 1", None), (str(2**63), None)],
        pytest.param("9" * 5000, None, id="more digits than Python converts"),
        pytest.param("-" + "0" * 5000 + "7", -7, id="zeros before it"),
        pytest.param("0" * 5000, 0, id="zeros alone"),
    ],
)
def test_numbers_are_read_as_go_reads_them(text: str, number: int | None) -> None:
    assert parse_int64(text) == number
