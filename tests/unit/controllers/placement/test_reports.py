"""What the scheduling cycle finds, passed on: to whom, and as what."""

from __future__ import annotations

import pytest
from prometheus_client import REGISTRY

from berth.kube.objects import PodCondition
from controllers.placement.pod_conditions import CONDITION
from tests.support.desk import Desk
from tests.support.placement import chain, group_object, lone, member


def counted(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


@pytest.mark.parametrize(
    ("cpu", "result", "reasons"), [("1", "placed", []), ("100", "unschedulable", ["FailedScheduling"])]
)
def test_attempts_are_counted_by_kind_and_result(desk: Desk, cpu: str, result: str, reasons: list[str]) -> None:
    labels = {"entry": "pod", "result": result}
    before = counted("berth_placement_attempts_total", **labels)
    durations = counted("berth_placement_decision_duration_seconds_count", entry="pod")
    desk.pods(lone("p", cpu=cpu))
    desk.decide()
    assert counted("berth_placement_attempts_total", **labels) == before + 1
    assert counted("berth_placement_decision_duration_seconds_count", entry="pod") == durations + 1
    assert desk.said.reasons == reasons


def test_a_failure_is_a_condition_until_the_pod_is_placed(desk: Desk) -> None:
    written = desk.controller._conditions._waiting
    desk.fail(lone("p", cpu="100"))
    assert [why.message for _, why in filter(None, written.values())] == [desk.said.notes[0].message]
    desk.pods(lone("p", cpu="1"))
    assert len(desk.decide()) == 1
    assert not any(written.values())


def test_a_group_is_told_on_its_appgroup(desk: Desk) -> None:
    before = counted("berth_placement_edge_cost_count")
    desk.see("appgroups", group_object("shop", *chain("a", "b")))
    desk.pods(member("a1", "a"), member("b1", "b"))
    assert len(desk.decide()) == 2
    (told,) = desk.said.notes
    assert (told.reason, told.regarding.kind, told.regarding.name) == ("Placed", "AppGroup", "shop")
    assert counted("berth_placement_edge_cost_count") == before + 2


def test_waiting_is_told_on_the_group_and_in_lasting_words_on_the_pod(desk: Desk) -> None:
    desk.see("appgroups", group_object("shop", *chain("a", "b")))
    desk.pods(member("a1", "a"))
    desk.decide()
    lasting = "AppGroup shop is not complete; waiting up to 30 s; its Events say what is missing"
    assert [(told.reason, told.regarding.kind, told.regarding.name, told.message) for told in desk.said.notes] == [
        (
            "WaitingForMembers",
            "AppGroup",
            "shop",
            "AppGroup shop has 1 of 2 pods; workloads without a pod: b; waiting up to 30 s",
        ),
        ("WaitingForMembers", "Pod", "a1", lasting),
    ]
    # Not Unschedulable: a cluster autoscaler would add nodes for it.
    assert [why for _, why in filter(None, desk.controller._conditions._waiting.values())] == [
        ("WaitingForMembers", lasting)
    ]


def test_a_missing_group_is_told_on_the_pod(desk: Desk) -> None:
    desk.pods(member("a1", "a"))
    desk.decide()
    (told,) = desk.said.notes
    assert (told.reason, told.regarding.kind) == ("AppGroupMissing", "Pod")
    assert [why for _, why in filter(None, desk.controller._conditions._waiting.values())] == [
        (told.reason, told.message)
    ]


def test_plans_that_were_cut_short_are_counted(desk: Desk) -> None:
    before = counted("berth_placement_plans_cut_short_total", entry="group")
    desk.controller.cycle._listener.cut_short("group")
    assert counted("berth_placement_plans_cut_short_total", entry="group") == before + 1


def test_a_condition_that_a_restore_of_etcd_lost_is_written_again(desk: Desk) -> None:
    conditions, pod = desk.controller._conditions, lone("p", cpu="100")
    entry = desk.fail(pod)
    ((_, why),) = filter(None, conditions._waiting.values())
    conditions._waiting.clear()
    conditions._written[pod.metadata.uid] = why
    shown = lone("p", cpu="100")
    shown.status.conditions = [PodCondition(type=CONDITION, status="False", reason=why.reason, message=why.message)]
    desk.pods(shown)
    desk.pods(lone("p", cpu="100"))
    desk.queue.activate(entry.key)
    assert desk.tried() == ["p"]
    assert [told for _, told in filter(None, conditions._waiting.values())] == [why]
