"""What users read in the conditions and Events, and when an Event is worth writing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from berth.api.appgroup import AppGroupStatus
from berth.kube.events import Reference
from controllers.appgroup import events
from controllers.appgroup.conditions import describe_cycles, ordered, placed
from controllers.appgroup.plan import plan_spec
from controllers.appgroup.pods import PodFacts, group_by_workload
from controllers.appgroup.status import desired_status
from hack.harness.boutique import appgroup, boutique, names
from tests.unit.controllers.appgroup.test_status import facts

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TWELVE = "p1 -> p2 -> p3 -> p4 -> p5 -> p6 -> p7 -> p8 -> p9 -> p10 -> p11 -> p12"
PAIR = appgroup({"cart": ["checkout"], "checkout": ["cart"]}, ["web", "cart", "checkout"])

ORDERED = [
    pytest.param(boutique(), "11 workloads ordered by KahnSort", id="ordered"),
    pytest.param(appgroup({}, ["web"]), "1 workload ordered by KahnSort", id="one workload"),
    pytest.param(
        PAIR,
        "3 workloads ordered by KahnSort; dependency cycle cart -> checkout -> cart; workloads that depend on each "
        "other stand together in declaration order; remove a dependency of each cycle if their order matters",
        id="cycle",
    ),
    pytest.param(
        appgroup({"web": ["nowhere"]}, ["web"]),
        '1 workload ordered by KahnSort; spec.workloads[0].dependencies[0]: workload "web" depends on "nowhere", which '
        "is not a workload of this group; that dependency is ignored; add it to spec.workloads or correct the selector",
        id="problem",
    ),
    pytest.param(
        boutique(generation=1) | {"spec": {**boutique()["spec"], "numMembers": 0}},
        "spec.numMembers: input should be greater than or equal to 1, found 0; raise the value to the minimum",
        id="invalid",
    ),
]


@pytest.mark.parametrize(("document", "message"), ORDERED)
def test_ordered_message(document: dict[str, Any], message: str) -> None:
    assert ordered(plan_spec(document)).message == message


def test_many_problems_are_cut() -> None:
    message = ordered(plan_spec(appgroup({"p1": [f"x{number}" for number in range(40)]}, names(2)))).message
    assert message.count("is not a workload") == 5
    assert message.endswith(" and 35 more")


@pytest.mark.parametrize(
    ("cycles", "text"),
    [
        pytest.param([["a", "b", "a"]], "dependency cycle a -> b -> a", id="one"),
        pytest.param([["a", "b", "a"], ["c", "d", "c"]], "2 dependency cycles: a -> b -> a, c -> d -> c", id="two"),
        pytest.param(
            [[*names(20), "p1"]],
            f"dependency cycle {TWELVE} -> (8 more) -> p1",
            id="long",
        ),
        pytest.param(
            [[*names(13), "p1"]],
            f"dependency cycle {TWELVE} -> (1 more) -> p1",
            id="one too long",
        ),
        pytest.param(
            [[*names(12), "p1"]],
            f"dependency cycle {TWELVE} -> p1",
            id="just short enough",
        ),
    ],
)
def test_cycles_in_words(cycles: list[list[str]], text: str) -> None:
    assert describe_cycles(cycles) == text


STRANGER = (
    "; 1 pod with a workload label that names no workload of this group: x-1; correct the label "
    "appgroup.diktyo.x-k8s.io.workload"
)
PLACED = [
    pytest.param([], "No pod carries the labels of this group", id="none"),
    pytest.param([facts("x-1", "")], "No pod carries the labels of this group" + STRANGER, id="stranger only"),
    pytest.param(
        [facts("web-1", "web"), facts("web-2", "web", node="")],
        "1 of 3 members on a node; 1 pod without a node: web-2",
        id="waiting",
    ),
    pytest.param(
        [facts("web-1", "web")],
        "1 of 3 members on a node; 2 workloads without a pod: cart, checkout",
        id="missing",
    ),
    pytest.param(
        [facts("web-1", "web"), facts("cart-1", "cart"), facts("co-1", "checkout"), facts("x-1", "nowhere")],
        "3 of 3 members on a node; no pod waits" + STRANGER,
        id="all",
    ),
    pytest.param(
        [facts("web-1", "web"), facts("web-2", "web"), facts("cart-1", "cart"), facts("co-1", "checkout")],
        "4 of 4 members on a node; no pod waits",
        id="more than numMembers",
    ),
]


@pytest.mark.parametrize(("pods", "message"), PLACED)
def test_placed_message(pods: list[PodFacts], message: str) -> None:
    assert placed(plan_spec(PAIR), group_by_workload(pods)).message == message


REGARDING = Reference.to(boutique())


def _status(document: dict[str, Any], before: AppGroupStatus) -> AppGroupStatus:
    return desired_status(plan_spec(document), [], before, now=NOW)


UNREADABLE = {**boutique(), "spec": {"numMembers": 0}}
STEPS = [
    pytest.param([boutique()], ["Ordered"], id="first order"),
    pytest.param([boutique(), boutique(generation=2)], [], id="same order again"),
    pytest.param([boutique(), boutique(algorithm="ReverseKahn")], ["Ordered"], id="other order"),
    pytest.param([PAIR], ["Ordered", "CycleDetected"], id="cycle"),
    pytest.param([PAIR, PAIR], [], id="same cycle again"),
    pytest.param([appgroup({"web": ["no"]}, ["web"])], ["Ordered", "SpecProblems"], id="problem"),
    pytest.param([UNREADABLE], ["InvalidSpec"], id="unreadable"),
    pytest.param([UNREADABLE, appgroup({}, ["web"])], ["Ordered"], id="readable again"),
    pytest.param([appgroup({"web": ["no"]}, ["web"])] * 2, [], id="same problem again"),
    pytest.param(
        [appgroup({"web": ["no"]}, ["web"]), appgroup({"web": ["nay"]}, ["web"])], ["SpecProblems"], id="other problem"
    ),
    pytest.param([appgroup({"web": ["no"]}, ["web"]), appgroup({}, ["web"])], [], id="mended"),
]


@pytest.mark.parametrize(("documents", "reasons"), STEPS)
def test_events_of_the_last_step(documents: list[dict[str, Any]], reasons: list[str]) -> None:
    before = AppGroupStatus()
    for document in documents[:-1]:
        before = _status(document, before)
    after = _status(documents[-1], before)
    notes = events.notes(REGARDING, plan_spec(documents[-1]), before=before, after=after)
    assert [note.reason for note in notes] == reasons


def test_event_texts() -> None:
    after = _status(PAIR, AppGroupStatus())
    order, cycle = events.notes(REGARDING, plan_spec(PAIR), before=AppGroupStatus(), after=after)
    assert order.message == "3 workloads ordered by KahnSort: cart,checkout,web"
    assert cycle.message.startswith("3 workloads ordered by KahnSort; dependency cycle cart -> checkout -> cart; ")
    assert cycle.message.endswith("; remove a dependency of each cycle if their order matters")
    assert (order.warning, cycle.warning) == (False, True)
    assert (cycle.regarding.kind, cycle.regarding.name, cycle.regarding.uid) == ("AppGroup", "boutique", "uid-boutique")
