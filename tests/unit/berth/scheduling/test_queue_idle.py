"""While nothing else waits, what a change may help is tried before its backoff is over, for a share of the time."""

from __future__ import annotations

import pytest

from berth.kube.objects import Pod
from berth.scheduling.queue import AGEING_SECONDS, AGEING_TURNS, INITIAL_BACKOFF, SchedulingQueue
from berth.scheduling.queue_entry import EntryKey, QueueEntry
from berth.scheduling.unschedulable import Change
from tests.support import builders
from tests.support.placement import Clock

SHARE = 0.1


class Bench:
    """A queue whose clock stands still, and pods that fail."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.queue = SchedulingQueue(clock=self.clock, groups={}, idle_share=SHARE)

    def add(self, *names: str) -> None:
        for name in names:
            made = builders.pod(name)
            self.queue.add(made, EntryKey.of(made, None))

    def pop(self) -> QueueEntry:
        entry = self.queue.pop()
        assert entry is not None
        return entry

    def fail(self, *, seconds: float = 0.0) -> str:
        """Name of the next pod, which finds no node in so many seconds."""
        entry = self.pop()
        (pod,) = entry.pods.values()
        self.queue.back_off(entry)
        self.queue.charge(entry, seconds)
        return pod.metadata.name

    def pod_of(self, entry: QueueEntry) -> Pod:
        (pod,) = entry.pods.values()
        return pod


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_change_is_acted_on_at_once(bench: Bench) -> None:
    bench.add("a")
    bench.fail()
    assert bench.queue.pop() is None, "nothing has changed"
    bench.queue.move_all_to_active()
    assert bench.fail() == "a"
    assert bench.queue.pop() is None, "nothing has changed since"


def test_whose_backoff_ends_first_is_first(bench: Bench) -> None:
    bench.add("a", "b")
    for _ in range(2):
        bench.fail()
    bench.clock.advance(INITIAL_BACKOFF)
    bench.queue.move_all_to_active()
    assert [bench.fail(), bench.fail()] == ["a", "b"]
    bench.add("c")
    assert bench.fail() == "c"
    bench.queue.move_all_to_active()
    assert [bench.fail() for _ in range(3)] == ["c", "a", "b"]


def test_what_waits_goes_first(bench: Bench) -> None:
    bench.add("a")
    bench.fail()
    bench.queue.move_all_to_active()
    bench.add("b", "c")
    assert [bench.fail() for _ in range(3)] == ["b", "c", "a"]


def test_what_no_change_can_help_waits(bench: Bench) -> None:
    bench.add("a")
    bench.fail()
    bench.queue.move_all_to_active(Change.PODS)
    assert bench.queue.pop() is None


def test_a_plan_under_way_is_what_waits(bench: Bench) -> None:
    bench.add("a", "b")
    bench.fail()
    entry = bench.pop()
    bench.queue.move_all_to_active()
    bench.queue.put_back(entry)
    assert bench.pop() is entry


def test_who_failed_all_the_time_is_as_old_as_the_attempt(bench: Bench) -> None:
    """One that has not been active for a minute gets no turn for its age among urgent ones."""
    bench.add("a")
    bench.fail()
    for _ in range(int(4 * AGEING_SECONDS)):
        bench.clock.advance(INITIAL_BACKOFF / 2)
        bench.queue.move_all_to_active()
        bench.fail()
    bench.queue.move_all_to_active()
    bench.queue.put_back(bench.pop())
    for number in range(AGEING_TURNS):
        urgent = builders.pod(f"urgent-{number}", spec={"priority": 10})
        bench.queue.add(urgent, EntryKey.of(urgent, None))
    assert "a" not in {bench.fail() for _ in range(AGEING_TURNS)}
    assert bench.fail() == "a"


@pytest.mark.parametrize("turns", [1, 3])
def test_the_time_that_it_takes_is_bounded(bench: Bench, turns: int) -> None:
    """A plan of two seconds is made anew after eighteen more, or at the end of its backoff."""
    bench.add("a", "b")
    for _ in range(2):
        bench.fail(seconds=2.0)
    bench.queue.move_all_to_active()
    entry = bench.pop()
    for _ in range(turns - 1):
        bench.queue.put_back(entry)
        bench.queue.charge(entry, 0.3 / turns)
        assert bench.pop() is entry
    bench.queue.back_off(entry)
    bench.queue.charge(entry, 0.3 / turns)
    again = bench.clock.now + 0.3 / turns * turns * (1 / SHARE - 1)
    assert again < bench.clock.now + 10
    bench.queue.move_all_to_active()
    assert bench.queue.pop() is None
    due = bench.queue.next_due()
    assert due is not None
    assert due == pytest.approx(min(again, bench.clock.now + INITIAL_BACKOFF))
    bench.clock.now = due
    assert bench.fail() == "b"


def test_a_refused_binding_waits_however_idle_the_queue(bench: Bench) -> None:
    """A webhook that refuses it would be asked again at every change."""
    bench.add("a")
    pod = bench.pod_of(bench.pop())
    bench.queue.delete(pod.metadata.uid)
    bench.queue.requeue(pod, EntryKey.of(pod, None))
    bench.queue.move_all_to_active()
    assert bench.queue.pop() is None
    bench.clock.advance(INITIAL_BACKOFF)
    assert bench.fail() == "a"
    bench.queue.move_all_to_active()
    assert bench.fail() == "a"


def test_an_unforeseen_error_waits_too(bench: Bench) -> None:
    bench.add("a")
    bench.queue.back_off(bench.pop(), early=False)
    bench.queue.move_all_to_active()
    assert bench.queue.pop() is None


def test_a_namespace_that_is_held_has_no_turn(bench: Bench) -> None:
    bench.add("a")
    bench.fail()
    bench.queue.move_all_to_active()
    assert bench.queue.pop(held="default".__eq__) is None
    assert bench.queue.next_due() == bench.clock.now + INITIAL_BACKOFF, "no time at which nothing happens"


def test_one_that_goes_is_not_tried(bench: Bench) -> None:
    bench.add("a")
    bench.fail()
    bench.queue.move_all_to_active()
    bench.queue.delete("pod-default-a")
    assert bench.queue.pop() is None
