"""Whose turn it is after a pod was assumed."""

from __future__ import annotations

from typing import Any

import pytest

from berth.scheduling.cache import pod_templates
from berth.scheduling.cache.state import ClusterState
from berth.scheduling.turns import Turns
from tests.support import builders

HOST = "kubernetes.io/hostname"


def affinity(kind: str, app: str) -> dict[str, Any]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"affinity": {kind: {required: [builders.pod_term(HOST, {"app": app})]}}}


def spread(app: str) -> dict[str, Any]:
    return {"topologySpreadConstraints": [builders.spread(HOST, {"app": app})]}


def test_pods_without_rules_are_asked_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    state = ClusterState()
    infos = [state.info(builders.pod(f"p{number}", labels={"app": str(number)})) for number in range(3)]
    turns = Turns(state, infos)
    asked: list[str] = []
    monkeypatch.setattr(state, "namespace_labels", asked.append)
    for info in infos:
        turns.assumed(info)
    assert asked == []


@pytest.mark.parametrize(
    ("rules", "namespace", "due"),
    [
        pytest.param(affinity("podAffinity", "db"), "default", True, id="affinity-that-selects-it"),
        pytest.param(affinity("podAffinity", "web"), "default", False, id="affinity-that-does-not"),
        pytest.param(affinity("podAffinity", "db"), "other", False, id="affinity-in-another-namespace"),
        pytest.param(affinity("podAntiAffinity", "db"), "default", False, id="anti-affinity-only-gets-stricter"),
        pytest.param(spread("db"), "default", True, id="spread-that-counts-it"),
        pytest.param(spread("web"), "default", False, id="spread-that-does-not"),
        pytest.param(spread("db"), "other", False, id="spread-in-another-namespace"),
        pytest.param({}, "default", False, id="no-rules"),
    ],
)
def test_due_when_a_pod_came_that_the_rules_select(rules: dict[str, Any], namespace: str, due: bool) -> None:
    state = ClusterState()
    waiting = state.info(builders.pod("waiting", spec=rules))
    arrived = state.info(builders.pod("arrived", namespace=namespace, labels={"app": "db"}))
    turns = Turns(state, [waiting])
    turns.judged(waiting)
    assert not turns.due(waiting)
    turns.assumed(arrived)
    assert turns.due(waiting) is due
    turns.judged(waiting)
    assert not turns.due(waiting)


def test_a_template_that_is_compiled_anew_for_every_pod_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of a megabyte leaves the memory of templates before the next pod is looked at."""
    monkeypatch.setattr(pod_templates, "TEMPLATE_BYTES", 1)
    state = ClusterState()
    waiting = builders.pod("waiting", spec=affinity("podAffinity", "db"))
    turns = Turns(state, [state.info(waiting)])
    turns.judged(state.info(waiting))
    turns.assumed(state.info(builders.pod("arrived", labels={"app": "db"})))
    assert turns.due(state.info(waiting))
