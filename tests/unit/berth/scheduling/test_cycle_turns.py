"""Entries whose planning takes longer than its time budget: every pod is looked at within a few attempts."""

from __future__ import annotations

import pytest

from berth.kube.objects import Pod
from berth.scheduling.gang.budget import Budget
from berth.scheduling.queue_entry import QueueEntry
from tests.support.placement import lone, member
from tests.support.stage import Stage, shop


@pytest.fixture(autouse=True)
def _at_a_stretch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others have no turn in between: looking for one would take time here, where every look at the clock does."""
    monkeypatch.setattr(Budget, "pause", lambda *_: iter(()))


def misfit(number: int) -> Pod:
    """A member that no node takes, in a way of its own."""
    return member(f"a{number}", "a", cpu="1", spec={"nodeSelector": {"disk": f"none-{number}"}})


def slow() -> Stage:
    """A stage on which the time of a plan is over as soon as the first pod was looked at."""
    stage = Stage(wait=0, planning=1.0)
    stage.clock.tick = 4.0
    return stage


def attempt(stage: Stage) -> QueueEntry:
    """Have the one entry that waits planned; the notes of earlier attempts are forgotten."""
    stage.notes.clear()
    stage.clock.advance(60)
    entry = stage.queue.pop()
    assert entry is not None
    stage.cycle.schedule_one(entry)
    return entry


def looked_at(stage: Stage) -> set[str]:
    """Pods that the last attempt has looked at and found no node for."""
    return {name for name, message in stage.conditions.items() if "ran out of time" not in message}


@pytest.mark.parametrize("usable", [True, False], ids=["planned together", "placed one by one"])
def test_pods_that_fit_nowhere_do_not_use_up_the_time_of_those_behind_them(usable: bool) -> None:
    stage = slow()
    if usable:
        stage.group(shop(numMembers=1))
    stage.add(*(misfit(number) for number in range(4)), member("z", "a", cpu="1"))
    for _ in range(5):
        assert stage.placed() == set()
        entry = attempt(stage)
        if stage.placed():
            break
    assert stage.placed() == {"z"}
    assert len(entry.pods) == 4


@pytest.mark.parametrize("usable", [True, False], ids=["planned together", "placed one by one"])
def test_each_pod_has_its_turn_before_any_has_a_second(usable: bool) -> None:
    stage = slow()
    if usable:
        stage.group(shop(numMembers=1))
    stage.add(*(misfit(number) for number in range(6)))
    for _ in range(2):
        seen: list[str] = []
        while len(seen) < 6:
            attempt(stage)
            seen += looked_at(stage)
        assert sorted(seen) == [f"a{number}" for number in range(6)]


def test_those_more_urgent_are_first_again_once_the_time_suffices() -> None:
    stage = slow()
    stage.add(*(misfit(number) for number in range(3)))
    entry = attempt(stage)
    assert entry.looked_at
    stage.clock.tick = 0.0
    attempt(stage)
    assert entry.looked_at == {}


def test_pods_that_are_gone_are_forgotten() -> None:
    stage = slow()
    pods = [misfit(number) for number in range(3)]
    stage.add(*pods)
    entry = attempt(stage)
    for pod in pods[:2]:
        stage.queue.delete(pod.metadata.uid)
    assert entry.looked_at.keys() <= entry.pods.keys()


def test_a_single_pod_has_the_time_to_itself() -> None:
    stage = slow()
    stage.add(lone("p", cpu="1"))
    attempt(stage)
    assert stage.placed() == {"p"}
