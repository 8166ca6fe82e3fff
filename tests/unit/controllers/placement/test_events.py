"""Every Event that users may see: object, reason, type, and a message that names the remedy."""

from __future__ import annotations

import pytest

from berth.kube.events import NOTE_LIMIT, Note
from berth.network.costs import NO_COSTS, Place
from berth.network.groups import Group, GroupKey, read_group
from berth.network.sites import Sites
from berth.scheduling import messages
from berth.scheduling.cache.services import WorkloadRouting
from berth.scheduling.decision import Decision, Failure
from berth.scheduling.framework.rejection import Rejection
from berth.scheduling.group_summary import summarize
from controllers.placement import events
from tests.support import kinds
from tests.support.placement import chain, group_object, lone, member, zoned

POD = member("a1", "a")
SHOP = read_group(group_object("shop", *chain("a", "b", "c")))
DECISION = Decision(pod=POD, node="n1", strategy="alone", value=1.0, terms={}, feasible=2, nodes=3)
FAILURE = Failure(POD, nodes=3, rejections=(Rejection("NodeResourcesFit", "Insufficient cpu", 3),))
BROKEN = read_group(group_object("shop", kinds.workload("a"), numMembers=0))


def rejected() -> Note:
    pod = lone("p", on="n1")
    pod.status.reason, pod.status.message = "OutOfcpu", "Pod was rejected"
    return events.rejected_by_node(pod, seconds=300)


CASES = [
    pytest.param(
        events.scheduled(DECISION),
        "Scheduled",
        False,
        "Assigned to node n1; 2 of 3 nodes were feasible",
        id="scheduled",
    ),
    pytest.param(
        events.about_pod(POD, messages.failed_scheduling(FAILURE)),
        "FailedScheduling",
        True,
        "0/3 nodes are available: 3 Insufficient cpu.",
        id="failed",
    ),
    pytest.param(
        events.about_pod(POD, messages.waiting_for_members(SHOP, present=1, missing=("b", "c"), seconds=30)),
        "WaitingForMembers",
        False,
        "AppGroup shop has 1 of 3 pods; workloads without a pod: b, c; waiting up to 30 s",
        id="waiting",
    ),
    pytest.param(
        events.about_pod(POD, messages.waiting_for_members(SHOP, present=2, missing=(), seconds=None)),
        "WaitingForMembers",
        False,
        "AppGroup shop has 2 of 3 pods; waiting until they appear",
        id="waiting-for-ever",
    ),
    pytest.param(
        events.about_pod(POD, messages.group_missing("default", "shop", seconds=30)),
        "AppGroupMissing",
        True,
        "AppGroup shop does not exist in namespace default; after 30 s the pod is scheduled on its own; create the "
        "AppGroup or remove the label appgroup.diktyo.x-k8s.io",
        id="group-missing",
    ),
    pytest.param(
        events.about_pod(POD, messages.workload_unknown(SHOP, "x")),
        "WorkloadUnknown",
        True,
        "label appgroup.diktyo.x-k8s.io.workload='x' is not a workload of AppGroup shop; its dependencies are "
        "ignored; use one of: a, b, c",
        id="workload-unknown",
    ),
    pytest.param(
        events.bind_failed(DECISION, "403 Forbidden: no"),
        "BindingFailed",
        True,
        "Binding to node n1 failed; the pod will be scheduled again: 403 Forbidden: no",
        id="bind-failed",
    ),
    pytest.param(
        events.volumes_failed(DECISION, "claim default/data was deleted"),
        "VolumesNotBound",
        True,
        "Volumes could not be bound for node n1; the pod will be scheduled again: claim default/data was deleted",
        id="volumes-failed",
    ),
    pytest.param(
        events.node_changed(DECISION, "the node was cordoned"),
        "NodeChanged",
        True,
        "Node n1 changed before the pod was bound; the pod will be scheduled again: the node was cordoned",
        id="node-changed",
    ),
    pytest.param(
        rejected(),
        "RejectedByNode",
        True,
        "Node n1 rejected the pod (OutOfcpu): Pod was rejected; pods of the same owner avoid this node for 300 s",
        id="rejected",
    ),
]


@pytest.mark.parametrize(("note", "reason", "warning", "message"), CASES)
def test_notes_about_pods(note: Note, reason: str, warning: bool, message: str) -> None:
    assert (note.reason, note.warning, note.message) == (reason, warning, message)
    assert note.regarding.kind == "Pod"
    assert note.regarding.uid
    assert not message.endswith(".") or reason == "FailedScheduling"  # kube-scheduler's sentence ends in a period
    assert note.action in (events.SCHEDULING, events.BINDING)


def test_a_broken_group_is_told_on_its_pods_with_the_field() -> None:
    note = events.about_pod(POD, messages.group_unusable(BROKEN))
    assert note.message.startswith("AppGroup shop cannot be used; the pod is scheduled on its own: ")
    assert "spec.numMembers" in note.message


def test_a_placed_group() -> None:
    summary = summarize(SHOP, {"a": {"n1": 1}}, Sites.of({"n1": Place()}, NO_COSTS), lambda _: WorkloadRouting())
    note = events.about_group(SHOP, messages.group_placed(pods=1, nodes=1, summary=summary))
    assert note.message == "Placed 1 pod on 1 node"
    assert (note.regarding.kind, note.regarding.name, note.regarding.uid) == ("AppGroup", "shop", "group-default-shop")


def test_a_group_that_is_not_placed() -> None:
    note = events.about_group(SHOP, messages.group_not_placed(FAILURE))
    assert note.message == "Pod a1 has no node: 0/3 nodes are available: 3 Insufficient cpu"
    assert note.warning


def test_a_bad_annotation_is_told_on_the_node() -> None:
    note = events.bad_annotation(zoned("n1"), "words")
    assert (note.regarding.kind, note.regarding.name, note.regarding.namespace) == ("Node", "n1", "")


def test_long_lists_are_cut() -> None:
    many = tuple(f"workload-{n}" for n in range(1000))
    group = Group(key=GroupKey("ns", "big"), members=1000, selectors=many)
    waiting = events.about_pod(POD, messages.waiting_for_members(group, present=0, missing=many, seconds=1))
    unknown = events.about_pod(POD, messages.workload_unknown(group, "x"))
    assert max(len(waiting.message), len(unknown.message)) < NOTE_LIMIT
