"""Pods whose binding was refused: when they are tried again, and that one plan is one failure."""

from __future__ import annotations

import pytest

from berth.kube.objects import Pod
from berth.network.groups import GroupKey
from berth.scheduling.queue import SchedulingQueue
from berth.scheduling.queue_entry import EntryKey, QueueEntry
from tests.support import builders
from tests.support.placement import Clock

GROUP = EntryKey.of_group(GroupKey("ns", "g"), "s")


class Bench:
    """A queue with its clock."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.queue = SchedulingQueue(clock=self.clock, groups={})

    def pop(self) -> QueueEntry:
        entry = self.queue.pop()
        assert entry is not None
        return entry


@pytest.fixture
def bench() -> Bench:
    return Bench()


def pod(name: str) -> Pod:
    return builders.pod(name)


def test_waits_longer_each_time(bench: Bench) -> None:
    made = pod("a")
    bench.queue.add(made, EntryKey.of(made, None))
    waits = []
    for _ in range(5):
        bench.pop()
        bench.queue.delete(made.metadata.uid)  # decided
        bench.queue.requeue(made, EntryKey.of(made, None))  # refused
        assert bench.queue.pop() is None
        due = bench.queue.next_due()
        assert due is not None
        waits.append(due - bench.clock.now)
        bench.clock.now = due
    assert waits == [1, 2, 4, 8, 10]


def test_one_plan_is_one_failure_however_many_of_its_pods_are_refused(bench: Bench) -> None:
    pods = [pod(f"p{number}") for number in range(50)]
    waits = []
    for made in pods:
        bench.queue.add(made, GROUP)
    for _ in range(3):
        assert bench.pop().pods.keys() == {made.metadata.uid for made in pods}
        for made in pods:
            bench.queue.delete(made.metadata.uid)  # decided
        begun = bench.clock.now
        for made in pods:
            bench.queue.requeue(made, GROUP)  # refused
            bench.clock.advance(0.001)
        due = bench.queue.next_due()
        assert due is not None
        waits.append(round(due - begun, 3))
        bench.clock.now = due
    assert waits == [1, 2, 4]


@pytest.mark.parametrize("what", ["another pod", "change of the group"])
def test_refusals_do_not_undo_that_the_entry_became_active(bench: Bench, what: str) -> None:
    first, second = pod("a"), pod("b")
    bench.queue.requeue(first, GROUP)
    assert bench.queue.pop() is None
    if what == "another pod":
        bench.queue.add(pod("c"), GROUP)
    else:
        bench.queue.activate(GROUP)
    bench.queue.requeue(second, GROUP)
    assert {first.metadata.uid, second.metadata.uid} <= bench.pop().pods.keys()


def test_the_pod_refused_most_often_decides_how_long_its_plan_waits(bench: Bench) -> None:
    often, once = pod("often"), pod("once")
    for _ in range(3):
        bench.queue.requeue(often, GROUP)
        bench.queue.delete(often.metadata.uid)
    bench.queue.requeue(once, GROUP)
    assert bench.queue.next_due() == bench.clock.now + 1
    bench.queue.requeue(often, GROUP)
    assert bench.queue.next_due() == bench.clock.now + 8


def test_a_refused_pod_joins_what_of_its_group_waits_for_a_change(bench: Bench) -> None:
    rest, refused = pod("rest"), pod("refused")
    bench.queue.add(rest, GROUP)
    bench.queue.back_off(bench.pop())
    bench.queue.requeue(refused, GROUP)
    assert bench.queue.next_due() == bench.clock.now + 1
    bench.clock.advance(1)
    assert len(bench.pop().pods) == 2


def test_a_long_quiet_time_forgives(bench: Bench) -> None:
    made = pod("a")
    bench.queue.requeue(made, EntryKey.of(made, None))
    bench.clock.advance(1000)
    bench.pop()
    bench.queue.delete(made.metadata.uid)
    bench.queue.requeue(made, EntryKey.of(made, None))
    assert bench.queue.next_due() == bench.clock.now + 1
