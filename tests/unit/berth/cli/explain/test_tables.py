"""The pages of explanations."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.interference import InterferenceClass
from berth.cli.explain.pod import pod_document
from berth.cli.explain.tables import age_text, pod_page
from berth.kube.objects import Pod
from berth.scheduling.annotations import write_rejections
from berth.scheduling.cache.socket_choice import Outlook
from berth.scheduling.decision import Failure
from berth.scheduling.framework.rejection import Rejection
from tests.support.explanations import NOW, decided, event, explained, pod


def failed(pod: Pod) -> dict[str, Any]:
    """The Event of a pod that fits nowhere."""
    failure = Failure(pod, nodes=9, rejections=(Rejection("NodeResourcesFit", "Insufficient cpu", 9),))
    metadata = {"annotations": {"berth.dev/rejections": write_rejections(failure)}}
    return dict(event("FailedScheduling", failure.message, metadata=metadata))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59, "59s"), (60, "1m"), (90, "1m30s"), (600, "10m"), (655, "10m"), (3600, "1h"), (5400, "1h30m"),
     (90000, "1d1h"), (864000, "10d"), (900000, "10d")],
)  # fmt: skip
def test_ages(seconds: float, text: str) -> None:
    assert age_text(seconds) == text


def test_the_page_of_a_placed_pod() -> None:
    page = pod_page(explained(decided(pod(on="n1")), event("Scheduled", "Assigned to node n1")), width=100)
    assert page.splitlines()[0] == "Pod default/p: placed"
    for wanted in ("net/topo (Dijkstra), 5m old", "chosen   n1", "3.       n4", "lower is better", "NodeResourcesFit"):
        assert wanted in page
    assert max(map(len, page.splitlines())) <= 100


def test_the_page_of_a_pod_placed_alone_speaks_of_scores() -> None:
    page = pod_page(explained(decided(pod(on="n1"), strategy="alone", planned_with=1, runner_ups=())), width=100)
    for wanted in ("by itself (filter and score)", "SCORE", "higher is better", "no other node was feasible"):
        assert wanted in page


@pytest.mark.parametrize(
    ("socket", "text"),
    [
        pytest.param(1, "1, class D; expected slowdown 1.07, of others because of it 0.3 more, in sum", id="pinned"),
        pytest.param(None, "none of its own, class D; expected slowdown 1.07", id="nobody pins"),
    ],
)
def test_the_page_of_a_pod_with_a_class_says_what_it_may_expect_on_its_socket(socket: int | None, text: str) -> None:
    outlook = Outlook(socket, 1.07, 0.3, InterferenceClass.D)
    page = " ".join(pod_page(explained(decided(pod(on="n1"), outlook)), width=100).split())
    assert f"Socket {text}" in page


def test_the_page_of_a_pending_pod() -> None:
    page = pod_page(explained(pod(), failed(pod())), width=100)
    assert page.splitlines()[0] == "Pod default/p: pending"
    assert "REJECTED NODES" in page
    assert "CHOSEN" not in page


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(st.data())
def test_an_annotation_with_any_odd_field_is_refused_or_shown(data: st.DataObject) -> None:
    subject = decided(pod(on="n1"))
    annotation = json.loads(subject.metadata.annotations["berth.dev/decision"])
    annotation[data.draw(st.sampled_from(sorted(annotation)))] = data.draw(JSON)
    subject.metadata.annotations["berth.dev/decision"] = json.dumps(annotation)
    document = pod_document(subject, [], schedulers=["berth-scheduler"], now=NOW)
    assert document["state"] in ("placed", "unexplained")
    assert "Pod default/p" in pod_page(document, width=100)


def test_rejections_that_an_earlier_release_wrote_have_no_plugin() -> None:
    subject = pod(on="n1")
    old = {"v": 1, "node": "n1", "strategy": "berth", "cost": 3.0, "rejected": {"Insufficient cpu": 4}}
    subject.metadata.annotations["berth.dev/decision"] = json.dumps(old)
    page = pod_page(pod_document(subject, [], schedulers=["berth-scheduler"], now=NOW), width=100)
    assert re.search(r"^\s*-\s+4\s+Insufficient cpu", page, re.MULTILINE)
