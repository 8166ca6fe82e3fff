"""What is said about a pod, from its annotation, its Events and its conditions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from berth.cli.explain.pod import event_rows, read_annotation
from berth.cli.explain.tables import pod_page
from berth.kube.objects import Pod, PodCondition
from berth.scheduling.annotations import write_rejections
from berth.scheduling.decision import Failure
from berth.scheduling.framework.rejection import Rejection
from tests.support.explanations import NOW, decided, event, explained, pod


def test_a_placed_pod_is_explained_by_its_annotation_alone() -> None:
    document = explained(decided(pod(on="n1")))
    assert (document["state"], document["message"]) == ("placed", "placed on node n1, planned together with 2 others")
    assert document["decision"]["runnerUps"][2] == {"node": "n4", "cost": 7, "terms": {"network": 7}}
    assert document["rejected"] == [{"plugin": "NodeResourcesFit", "reason": "Insufficient cpu", "nodes": 5}]
    assert document["network"]["ageSeconds"] == 300


def test_a_placed_pod_that_is_being_deleted_is_said_to_be() -> None:
    document = explained(decided(deleted(pod(on="n1"))))
    assert document["state"] == "placed"
    assert document["message"].endswith("others; it is being deleted")


FAILED = "0/9 nodes are available: 9 Insufficient cpu."


@pytest.mark.parametrize(
    ("subject", "state", "said"),
    [
        pytest.param(pod(), "pending", f"FailedScheduling: {FAILED}", id="waiting"),
        pytest.param(pod(on="n7"), "unexplained", "bound to node n7 without a decision of Berth", id="elsewhere"),
    ],
)
def test_a_decision_that_came_with_a_copied_manifest_is_not_the_pods_own(subject: Pod, state: str, said: str) -> None:
    document = explained(decided(subject), event("FailedScheduling", FAILED))
    assert document["state"] == state
    assert said in document["message"]
    assert "decision" not in document


def failed(pod: Pod) -> dict[str, Any]:
    """The Event of a pod that fits nowhere."""
    failure = Failure(pod, nodes=9, rejections=(Rejection("NodeResourcesFit", "Insufficient cpu", 9),))
    metadata = {"annotations": {"berth.dev/rejections": write_rejections(failure)}}
    return dict(event("FailedScheduling", failure.message, metadata=metadata))


def deleted(pod: Pod) -> Pod:
    pod.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    return pod


@pytest.mark.parametrize(
    ("subject", "events", "state", "said"),
    [
        pytest.param(
            pod(), [event("FailedScheduling", FAILED)], "pending", f"FailedScheduling: {FAILED}", id="does not fit"
        ),
        pytest.param(
            pod(),
            [event("WaitingForMembers", "old", minutes=9), event("FailedScheduling", "new", minutes=1)],
            "pending",
            "FailedScheduling: new",
            id="the latest Event counts",
        ),
        pytest.param(
            pod(),
            [event("Pulled", "x", reporter="kubelet")],
            "pending",
            "Berth has not said anything",
            id="others' Events",
        ),
        pytest.param(
            pod(spec={"schedulingGates": [{"name": "hold"}]}),
            [],
            "pending",
            "scheduling gates are removed: hold",
            id="gate",
        ),
        pytest.param(
            pod(scheduler="default-scheduler"),
            [],
            "foreign",
            "belongs to scheduler default-scheduler, not",
            id="foreign",
        ),
        pytest.param(
            pod(on="n7", scheduler="other"),
            [],
            "foreign",
            "scheduler other on node n7, not to Berth",
            id="foreign, placed",
        ),
        pytest.param(
            pod(scheduler="mine"),
            [event("FailedScheduling", "x")],
            "pending",
            "FailedScheduling: x",
            id="other profile",
        ),
        pytest.param(
            pod(on="n1"),
            [],
            "unexplained",
            "bound to node n1 without a decision of Berth: it was created with",
            id="bound",
        ),
        pytest.param(pod(phase="Failed"), [], "unexplained", "ended without ever having had a node", id="ended"),
        pytest.param(
            deleted(pod()),
            [event("FailedScheduling", FAILED)],
            "unexplained",
            "is being deleted, and gets no node",
            id="deleted",
        ),
    ],
)
def test_a_pod_without_a_decision(subject: Pod, events: list[Any], state: str, said: str) -> None:
    document = explained(subject, *events)
    assert document["state"] == state
    assert said in document["message"]
    assert "decision" not in document


@pytest.mark.parametrize(
    ("reporter", "annotation", "rows"),
    [
        pytest.param("berth.dev/placement", '{"v":2,"rejected":[{"plugin":"P","reason":"R","nodes":1}]}', 1, id="ours"),
        pytest.param("somebody/else", '{"v":2,"rejected":[{"plugin":"P","reason":"R","nodes":1}]}', 0, id="foreign"),
        pytest.param("berth.dev/placement", '{"v":2,"rejected":null}', 0, id="null"),
        pytest.param("berth.dev/placement", '{"v":2,"rejected":[{}]}', 0, id="without fields"),
        pytest.param("somebody/else", "5", 0, id="foreign number"),
    ],
)
def test_rejections_come_from_our_own_events(reporter: str, annotation: str, rows: int) -> None:
    told = event("FailedScheduling", FAILED, reporter=reporter)
    told["metadata"] = {"annotations": {"berth.dev/rejections": annotation}}
    subject = pod()
    subject.spec.scheduler_name = "berth-scheduler"
    document = explained(subject, told)
    assert len(document["rejected"]) == rows


@pytest.mark.parametrize(
    "events", [[], [event("WaitingForMembers", "old", minutes=9)]], ids=["the Events are gone", "they are older"]
)
def test_the_condition_speaks_before_the_events(events: list[dict[str, Any]]) -> None:
    subject = pod()
    subject.status.conditions = [PodCondition("PodScheduled", "False", "Unschedulable", FAILED)]
    document = explained(subject, *events)
    assert document["message"] == f"Unschedulable: {FAILED}"
    assert document["podScheduled"]["status"] == "False"


def test_a_pending_pod_shows_what_rejected_the_nodes() -> None:
    document = explained(pod(), failed(pod()))
    assert document["rejected"] == [{"plugin": "NodeResourcesFit", "reason": "Insufficient cpu", "nodes": 9}]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not a decision of Berth"),
        ("[1]", "is not a decision of Berth"),
        (json.dumps({"v": 3, "node": "n1"}), "has version 3, this command reads 1 to 2"),
        (json.dumps({"node": "n1"}), "has version None"),
    ],
    ids=["cut off", "a list", "newer", "no version"],
)
def test_an_annotation_that_cannot_be_read_is_said(text: str, said: str) -> None:
    subject = pod(on="n1")
    subject.metadata.annotations["berth.dev/decision"] = text
    document = explained(subject)
    assert document["state"] == "unexplained"
    assert said in document["message"]


def test_no_annotation_is_no_problem_of_the_annotation() -> None:
    assert read_annotation(pod()) == (None, "")


def test_events_of_an_earlier_pod_of_the_same_name_are_left_out() -> None:
    earlier = event("FailedScheduling", "x")
    earlier["regarding"]["uid"] = "another"
    assert explained(pod(), earlier)["events"] == []


@pytest.mark.parametrize(
    ("fields", "age", "count"),
    [
        ({}, 60, 1),
        ({"series": {"count": 7, "lastObservedTime": "2026-05-01T11:59:50Z"}}, 10, 7),
        ({"eventTime": None, "deprecatedLastTimestamp": "2026-05-01T11:00:00Z", "deprecatedCount": 3}, 3600, 3),
        ({"eventTime": None, "metadata": {"creationTimestamp": "2026-05-01T11:59:00Z"}}, 60, 1),
        ({"eventTime": None}, 0, 1),
    ],
    ids=["new", "series", "of the old API", "creation", "no time at all"],
)
def test_age_and_count_of_an_event(fields: dict[str, Any], age: int, count: int) -> None:
    [row] = event_rows([event("R", "m", **fields)], uid="", now=NOW)
    assert (row["ageSeconds"], row["count"]) == (age, count)


@pytest.mark.parametrize(
    ("subject", "state", "said"),
    [
        pytest.param(pod(), "pending", "in its Events, which you may not list", id="waiting"),
        pytest.param(decided(pod(on="n1")), "placed", "placed on node n1, planned together", id="placed"),
    ],
)
def test_without_events_the_rest_is_told(subject: Pod, state: str, said: str) -> None:
    document = explained(subject, unread=["events"])
    assert document["state"] == state
    assert said in document["message"]
    assert document["unread"] == [{"resource": "events", "effect": "what was said of late is left out"}]
    assert "events: you may not list them; what was said of late is left out" in pod_page(document, width=200)
    assert "Not read" not in pod_page(explained(subject), width=200)
