"""What a SocketStatus says of what was found and done."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agents.node.pinning.reconciler import Finding
from agents.node.pinning.report import (
    MAX_SHOWN,
    REASON_KUBELET_PINS,
    Found,
    by_the_clock,
    kept_caches,
    shown,
    status_of,
)
from agents.node.pinning.rounds import PodState, Round
from agents.node.pinning.wanted import PodWish, Problem
from berth.api.conditions import Condition, ConditionStatus, find_condition
from berth.api.interference import InterferenceClass
from berth.api.socketstatus import MAX_SOCKETS, SocketStatusStatus
from tests.support.sysfs import uniform

MACHINE = uniform(sockets=2, cores=2)
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
IN_EFFECT = {"c": (Finding.IN_EFFECT, "")}


def state(
    name: str, stated: str | None, socket: int | None, findings: Any = None, *, has: int | None = None
) -> PodState:
    cpus = MACHINE.sockets[socket].cpus if socket is not None else frozenset[int]()
    wish = PodWish(
        uid=f"u-{name}",
        runtime_uid=f"u-{name}",
        namespace="shop",
        name=name,
        interference_class=InterferenceClass(stated) if stated else None,
        socket=socket,
        cpus=cpus,
        socket_cpus=cpus,
    )
    effective = MACHINE.online if has is None else MACHINE.sockets[has].cpus
    findings = {"c": (Finding.NONE, "")} if findings is None else findings
    return PodState(wish=wish, cpus=cpus, effective_cpus=effective, findings=findings)


def pinned(name: str, stated: str, socket: int) -> PodState:
    return state(name, stated, socket, IN_EFFECT, has=socket)


def observed(name: str, socket: int, has: int) -> PodState:
    found = state(name, "B", socket, {"c": (Finding.OBSERVED, f"it has CPUs {'0-1' if has == 0 else '2-3'}")}, has=has)
    return replace(found, cpus=frozenset())


def running(found: PodState) -> PodState:
    return replace(found, wish=replace(found.wish, running=True))


def status(*pods: PodState, previous: SocketStatusStatus | None = None, now: datetime = NOW, **found: Any) -> Any:
    given: dict[str, Any] = {"generation": 3, "machine": MACHINE} | found
    round_found = given.pop("round", Round(pods=pods))
    return status_of(Found(round=round_found, **given), previous or SocketStatusStatus(), now)


def condition(found: SocketStatusStatus, kind: str) -> Condition:
    item = find_condition(found.conditions, kind)
    assert item is not None
    return item


def test_pods_with_what_they_have() -> None:
    found = status(pinned("web", "B", 1), state("new", "A", None), state("plain", None, None))
    web, new, plain = (pod.to_api() for pod in found.pods)
    assert web == {
        "uid": "u-web",
        "namespace": "shop",
        "name": "web",
        "interferenceClass": "B",
        "socket": 1,
        "cpus": "2-3",
        "effectiveCpus": "2-3",
        "since": "2026-01-31T12:00:00Z",
    }
    assert new == {"uid": "u-new", "namespace": "shop", "name": "new", "interferenceClass": "A", "effectiveCpus": "0-3"}
    assert "interferenceClass" not in plain
    assert (found.pinned, found.socket_count, found.observed_generation) == ("1/2", 2, 3)


@pytest.mark.parametrize(
    ("pods", "violations"),
    [
        pytest.param([pinned("a", "D", 0), pinned("b", "D", 0)], 1, id="two that suffer from each other"),
        pytest.param([pinned("a", "D", 0), pinned("b", "D", 1)], 0, id="apart"),
        pytest.param([pinned("a", "D", 0), pinned("b", "C", 0), pinned("c", "B", 0)], 3, id="every pair counts"),
        pytest.param([pinned("a", "A", 0), pinned("b", "D", 0)], 0, id="a pair that fits"),
        pytest.param([state("a", "D", None), state("b", "D", None)], 0, id="on no socket"),
    ],
)
def test_violations(pods: list[PodState], violations: int) -> None:
    assert status(*pods).violations == violations


def in_cache(found: PodState, cache: int, cpus: set[int], has: set[int]) -> PodState:
    wish = replace(found.wish, cache=cache, cpus=frozenset(cpus), socket_cpus=MACHINE.sockets[0].cpus)
    return replace(found, wish=wish, cpus=frozenset(has), effective_cpus=frozenset(has))


def test_a_pod_says_which_cache_it_is_kept_to() -> None:
    kept = in_cache(pinned("web", "B", 0), 1, {1}, {1})
    elsewhere = in_cache(pinned("big", "B", 0), 1, {1}, {0, 1})
    found = status(kept, elsewhere)
    assert [(pod.socket, pod.cache) for pod in found.pods] == [(0, 1), (0, None)]
    assert kept_caches(found) == {"u-web": {1}}
    assert kept_caches(SocketStatusStatus()) == {}


def test_times_stay_while_nothing_changes() -> None:
    first = status(pinned("web", "B", 1))
    again = status(pinned("web", "B", 1), previous=first, now=LATER)
    assert again.pods == first.pods
    assert again.conditions == first.conditions
    assert again.time == LATER
    moved = status(pinned("web", "B", 0), previous=first, now=LATER)
    assert moved.pods[0].since == LATER
    lost = status(state("web", "B", 1, {"c": (Finding.DRIFTED, "it has CPUs 0-3, not 2-3")}), previous=first, now=LATER)
    assert lost.pods[0].since is None
    assert condition(lost, "Pinned").last_transition_time == LATER


@pytest.mark.parametrize(
    ("step", "now", "expected"),
    [
        pytest.param(timedelta(), LATER, NOW, id="not set"),
        pytest.param(-timedelta(days=1), LATER, NOW - timedelta(days=1), id="set back"),
        pytest.param(timedelta(minutes=5), LATER, NOW + timedelta(minutes=5), id="set ahead"),
        pytest.param(
            timedelta(), NOW - timedelta(days=1), NOW - timedelta(days=1), id="ahead, and nobody knows since when"
        ),
        pytest.param(timedelta.max, LATER, NOW, id="out of all bounds"),
    ],
)
def test_times_are_those_of_a_clock_that_was_set(step: timedelta, now: datetime, expected: datetime) -> None:
    found = by_the_clock(status(pinned("web", "B", 1), state("new", "A", None, {})), step, now)
    assert {found.time, found.pods[0].since, *(each.last_transition_time for each in found.conditions)} == {expected}
    assert found.pods[1].since is None


@pytest.mark.parametrize(
    ("pods", "found", "expected", "reason", "text"),
    [
        pytest.param([], {}, True, "NothingAssigned", "0 pods assigned", id="nothing assigned"),
        pytest.param([pinned("a", "A", 0)], {}, True, "InEffect", "1 pod assigned, each with the CPUs", id="pinned"),
        pytest.param(
            [pinned("a", "A", 0), in_cache(pinned("b", "B", 0), 1, {1}, {1})],
            {},
            True,
            "InEffect",
            "2 pods assigned, each with the CPUs of its socket, or its part of them",
            id="pinned to a part",
        ),
        pytest.param(
            [pinned("a", "A", 0)],
            {"problems": (Problem("Pod shop/b", "no class"),)},
            True,
            "BadInput",
            "1 pod assigned, each with the CPUs of its socket; Pod shop/b: no class",
            id="bad input beside it",
        ),
        pytest.param(
            [pinned("a", "A", 0), state("b", "A", 1, {"w": (Finding.IMPOSSIBLE, "its pod has others")})],
            {},
            False,
            "NotInEffect",
            "Pod shop/b: container w: its pod has others",
            id="one is not",
        ),
        pytest.param(
            [state("b", "A", 1, {})], {}, True, "NothingAssigned", "0 pods", id="a pod whose containers are to come"
        ),
        pytest.param(
            [pinned("a", "A", 0), running(state("b", "A", 1, {}))],
            {},
            False,
            "NotInEffect",
            "Pod shop/b: it runs, and no container of it is found; see whether --pinning-runtime is the socket",
            id="a pod that runs and of which no container is found",
        ),
        pytest.param(
            [state("a", "A", 1, {"w": (Finding.UNREADABLE, "not switched on")})],
            {},
            False,
            "NotInEffect",
            "Pod shop/a: container w: not switched on",
            id="a cpuset that cannot be read",
        ),
        pytest.param(
            [state("a", "A", 1, {"w": (Finding.PENDING, "it has CPUs 0-3")})],
            {"observe": "theirs", "observe_reason": "AnotherAgent"},
            False,
            "ObserveOnly",
            "theirs; Pod shop/a: container w: it has CPUs 0-3",
            id="another agent pins",
        ),
        pytest.param(
            [observed("a", 1, 1)],
            {"observe": "the kubelet pins", "observe_reason": REASON_KUBELET_PINS},
            False,
            "ObserveOnly",
            "the kubelet pins; Pod shop/a: container c: it has CPUs 2-3",
            id="the kubelet pins, as it happens there",
        ),
        pytest.param(
            [],
            {"machine": None, "topology_problem": "no CPUs"},
            False,
            "TopologyUnknown",
            "no CPUs",
            id="unknown sockets",
        ),
        pytest.param([], {"unable": "no cgroups"}, False, "Unable", "no cgroups", id="no cgroups"),
        pytest.param(
            [running(state("a", "A", 1, {}))], {"unable": "no cgroups"}, False, "Unable", "no cgroups", id="and a pod"
        ),
        pytest.param(
            [],
            {"round": Round(pods=(state("a", "A", 1, {"w": (Finding.PENDING, "x")}),), problem="disk full")},
            False,
            "NotInEffect",
            "disk full; Pod shop/a: container w: x",
            id="a full disk",
        ),
    ],
)
def test_pinned(pods: list[PodState], found: dict[str, Any], expected: bool, reason: str, text: str) -> None:
    item = condition(status(*pods, **found), "Pinned")
    assert (item.status is ConditionStatus.TRUE, item.reason) == (expected, reason)
    assert text in item.message
    assert "no container of it is found" not in item.message or "unable" not in found


@pytest.mark.parametrize(
    ("finding", "drifted"), [(finding, finding in (Finding.DRIFTED, Finding.GIVEN_UP)) for finding in Finding]
)
def test_drifted(finding: Finding, drifted: bool) -> None:
    item = condition(status(state("a", "A", 1, {"w": (finding, "it has CPUs 0-3")})), "Drifted")
    assert item.status is (ConditionStatus.TRUE if drifted else ConditionStatus.FALSE)
    assert ("Pod shop/a: container w: it has CPUs 0-3; find out who writes" in item.message) is drifted


def test_who_pins_instead() -> None:
    found = status(observed("a", 1, 1), observe="the kubelet pins", observe_reason=REASON_KUBELET_PINS)
    item = condition(found, "ObserveOnly")
    assert (item.status, item.reason, item.message) == (ConditionStatus.TRUE, "KubeletPins", "the kubelet pins")
    (pod,) = found.pods
    assert (pod.socket, pod.cpus, pod.since) == (1, None, None), "nothing is asked for while nothing is written"
    assert found.pinned == "0/1"
    item = condition(found, "Drifted")
    assert (item.status, item.reason) == (ConditionStatus.FALSE, "ObserveOnly")
    assert item.message == "the agent sets no CPUs that others could change; see the condition ObserveOnly"


def test_what_was_pinned_before_another_agent_came_is_asked_for() -> None:
    states = (pinned("a", "A", 1), state("b", "A", 1, {"c": (Finding.PENDING, "it has CPUs 0-3")}))
    found = status(observe="theirs", observe_reason="AnotherAgent", round=Round(pods=states, foreign="theirs"))
    assert [pod.cpus for pod in found.pods] == [MACHINE.sockets[1].cpus, None]


@pytest.mark.parametrize("count", [MAX_SOCKETS, MAX_SOCKETS + 8])
def test_a_machine_with_many_sockets(count: int) -> None:
    machine = uniform(sockets=count, cores=1)
    found = status(machine=machine)
    assert (found.socket_count, len(found.sockets)) == (count, MAX_SOCKETS)
    item = condition(found, "TopologyUnknown")
    assert item.status is ConditionStatus.FALSE
    assert (f"the first {MAX_SOCKETS} of {count} are listed" in item.message) is (count > MAX_SOCKETS)


def test_long_lists_are_cut() -> None:
    texts = [str(number) for number in range(MAX_SHOWN + 5)]
    assert shown(texts[:2]) == "0; 1"
    assert shown(texts) == "; ".join([*texts[:MAX_SHOWN], "and 5 more"])
