"""Pods whose LatencyPolicy is to be read first are not placed before: an older one may not say where to."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from berth.network.groups import GroupKey
from berth.scheduling.queue import FLUSH_AFTER
from berth.scheduling.queue_entry import EntryKey
from tests.support.placement import lone, member
from tests.support.stage import Stage, shop


def unheard(stage: Stage, *names: str) -> None:
    """Have the policies of these pods, and of no others, be still to be read."""
    came = {f"pod-default-{name}" for name in names}
    stage.cache.state.user_latency.unheard = came
    for entry in list(stage.queue.entries()):
        stage.queue.activate(entry.key)


def grouped(*, there: bool = False) -> Stage:
    stage = Stage(cpu=8)
    stage.group(shop())
    if there:
        stage.add(member("a0", "a"), member("b0", "b"))
        stage.schedule()
    return stage


def test_a_pod_waits_for_that_and_others_do_not_wait_for_it() -> None:
    stage = Stage(cpu=8)
    stage.add(lone("slow"), lone("other"))
    unheard(stage, "slow")
    stage.schedule()
    assert stage.placed() == {"other"}
    unheard(stage)
    stage.schedule()
    assert stage.placed() == {"other", "slow"}


def test_it_is_as_old_as_before_then() -> None:
    stage = Stage(cpu=8)
    stage.add(lone("slow"))
    unheard(stage, "slow")
    stage.schedule()
    [entry] = stage.queue.entries()
    since = entry.active_since
    stage.clock.advance(5.0)
    unheard(stage)
    assert entry.active_since == since


def test_nobody_has_to_wake_it() -> None:
    stage = Stage(cpu=8)
    stage.add(lone("slow"))
    unheard(stage, "slow")
    stage.schedule()
    stage.cache.state.user_latency.unheard.clear()
    stage.clock.advance(FLUSH_AFTER)
    stage.schedule()
    assert stage.placed() == {"slow"}


def test_an_application_is_planned_together_once_all_are_heard_of() -> None:
    stage = grouped()
    stage.add(member("a1", "a"), member("b1", "b"))
    unheard(stage, "a1")
    stage.schedule()
    assert stage.placed() == set()
    unheard(stage)
    stage.schedule()
    assert stage.placed() == {"a1", "b1"}


@pytest.mark.parametrize(
    ("rounds", "placed"),
    [
        pytest.param([("a1",), ("a2",)], {"a0", "b0", "a1"}, id="each that comes is heard of by the next round"),
        pytest.param([("a1",), ("a1", "a2"), ("a2",)], {"a0", "b0", "a1"}, id="the first one takes longer"),
        pytest.param([("a1",), ("a1", "a2")], {"a0", "b0"}, id="the first is not heard of"),
        pytest.param([("a1", "a2"), ("a2",)], {"a0", "b0"}, id="those that came together are waited for together"),
        pytest.param([("a1", "a2"), ("a2",), ()], {"a0", "b0", "a1", "a2"}, id="and planned together"),
    ],
)
def test_those_that_go_on_coming_are_not_waited_for(rounds: Sequence[Sequence[str]], placed: set[str]) -> None:
    stage = grouped(there=True)
    for names in rounds:
        stage.add(*(member(name, name[0]) for name in names if name not in stage.placed()))
        unheard(stage, *names)
        stage.schedule()
    assert stage.placed() == placed


def test_who_came_meanwhile_is_placed_as_soon_as_it_is_heard_of() -> None:
    stage = grouped(there=True)
    stage.add(member("a1", "a"))
    unheard(stage, "a1")
    stage.schedule()
    stage.add(member("a2", "a"))
    unheard(stage, "a2")
    stage.schedule()
    assert stage.placed() == {"a0", "b0", "a1"}
    unheard(stage)
    stage.schedule()
    assert stage.placed() == {"a0", "b0", "a1", "a2"}


def test_where_those_that_were_waited_for_are_gone_others_are_not_placed_unheard() -> None:
    stage = grouped(there=True)
    gone = member("a1", "a")
    stage.add(gone)
    unheard(stage, "a1")
    stage.schedule()
    stage.add(member("a2", "a"))
    stage.cache.delete_pod(gone)
    stage.queue.delete(gone.metadata.uid)
    unheard(stage, "a2")
    stage.schedule()
    assert stage.placed() == {"a0", "b0"}
    unheard(stage)
    stage.schedule()
    assert stage.placed() == {"a0", "b0", "a2"}


def left_waiting(stage: Stage) -> None:
    """One of an application waits for nothing itself, beside another whose policy is not read yet."""
    stage.add(member("a1", "a"), member("b1", "b"))
    unheard(stage, "a1")
    stage.schedule()
    assert stage.placed() == {"a0", "b0"}


def test_nobody_waits_for_one_that_is_gone() -> None:
    """Who reads its policy does not know any more whose it was."""
    stage = grouped(there=True)
    left_waiting(stage)
    stage.cache.delete_pod(member("a1", "a"))
    stage.queue.delete("pod-default-a1")
    stage.schedule()
    assert stage.placed() == {"a0", "b0", "b1"}


def test_nobody_waits_for_one_that_is_of_another_application_by_now() -> None:
    stage = grouped(there=True)
    left_waiting(stage)
    other = EntryKey.of_group(GroupKey("default", "other"), "berth-scheduler")
    stage.queue.add(member("a1", "a", group="other"), other)
    stage.schedule()
    assert stage.placed() == {"a0", "b0", "b1"}


@pytest.mark.parametrize("over", [False, True], ids=["within its wait", "after its wait"])
def test_the_first_pods_of_an_application_are_placed_with_those_that_come_meanwhile(*, over: bool) -> None:
    """All of its members are there by then, and it is all or nothing."""
    stage = grouped()
    stage.add(member("a1", "a"))
    unheard(stage, "a1")
    stage.schedule()
    stage.clock.advance(31.0 if over else 1.0)
    stage.add(member("b1", "b"))
    unheard(stage, "b1")
    stage.schedule()
    assert stage.placed() == ({"a1"} if over else set())
    unheard(stage)
    stage.schedule()
    assert stage.placed() == {"a1", "b1"}
