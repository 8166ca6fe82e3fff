"""Limits of the CNI bandwidth plugin that cannot be read are told on their pods, which are placed all the same."""

from __future__ import annotations

import pytest

from berth.kube.objects import Pod
from berth.scheduling.cache.bandwidth_annotations import EGRESS, INGRESS
from tests.support.desk import Desk
from tests.support.placement import lone

OTHERS = {"schedulerName": "default-scheduler"}


def limited(text: str, **arguments: object) -> Pod:
    pod = lone("p", **arguments)
    pod.metadata.annotations = {INGRESS: text, EGRESS: "10M"}
    return pod


def test_a_bad_limit_is_told_once_and_the_pod_is_placed(desk: Desk) -> None:
    for _ in range(2):
        desk.pods(limited("fast"))
    assert desk.said.reasons == ["BadAnnotation"]
    note = desk.said.notes[0]
    assert (note.regarding.kind, note.regarding.name, note.warning) == ("Pod", "p", True)
    assert "default/p" in note.message
    assert INGRESS in note.message
    assert "write a quantity of bit/s from 1k to 1P" in note.message
    (found,) = desk.decide()
    assert found.decision.pod.metadata.annotations == {INGRESS: "fast", EGRESS: "10M"}


def test_an_edit_is_told_again(desk: Desk) -> None:
    for text in ("fast", "faster", "5M"):
        desk.pods(limited(text))
    assert desk.said.reasons == ["BadAnnotation", "BadAnnotation"]


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(limited("5M"), id="sound"),
        pytest.param(limited("fast", on="n1"), id="has-a-node"),
        pytest.param(limited("fast", spec=OTHERS), id="of-another-scheduler"),
    ],
)
def test_nothing_is_said_of(desk: Desk, pod: Pod) -> None:
    desk.pods(pod)
    assert desk.said.reasons == []


def test_a_class_that_cannot_be_read_is_told_once_and_again_when_the_labels_change(sockets_desk: Desk) -> None:
    pod = lone("p", labels={"berth.dev/interference-class": "E"})
    sockets_desk.pods(pod)
    assert sockets_desk.said.reasons == ["BadInterferenceClass"]
    assert "write one of A, B, C, D" in sockets_desk.said.notes[0].message
    sockets_desk.pods(lone("p", labels={"berth.dev/interference-class": "E"}, cpu="1"))
    assert sockets_desk.said.reasons == ["BadInterferenceClass"]
    sockets_desk.pods(lone("p", labels={"berth.dev/interference-class": "A", "category": "catB"}))
    assert sockets_desk.said.reasons == ["BadInterferenceClass"] * 2
    sockets_desk.pods(lone("p", labels={"berth.dev/interference-class": "A"}))
    assert sockets_desk.said.reasons == ["BadInterferenceClass"] * 2
