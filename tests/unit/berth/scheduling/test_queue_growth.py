"""What large entries cost: visits of pods are counted, not seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects import Pod
from berth.network.groups import GroupKey
from berth.scheduling import heaps as heaps_module
from berth.scheduling.heaps import STALE
from berth.scheduling.queue import SchedulingQueue
from berth.scheduling.queue_entry import EntryKey, QueueEntry
from tests.support import builders
from tests.support.placement import Clock

PODS = 500
GROUP = EntryKey.of_group(GroupKey("ns", "g"), "s")


class Visited(dict[str, Pod]):
    """Pods by uid, with how many have been looked at one by one."""

    visits = 0

    def values(self) -> Any:
        self.visits += len(self)
        return super().values()

    def __iter__(self) -> object:  # type: ignore[override]
        for uid in super().__iter__():
            self.visits += 1
            yield uid


def pod(number: int, *, priority: int = 0) -> Pod:
    made = builders.pod(f"p{number}", spec={"priority": priority})
    made.metadata.creation_timestamp = f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z"
    return made


def large(queue: SchedulingQueue, pods: list[Pod]) -> tuple[QueueEntry, Visited]:
    """An active entry of these pods."""
    for made in pods:
        queue.add(made, GROUP)
    (entry,) = queue.entries()
    entry.pods = visited = Visited(entry.pods)
    return entry, visited


@pytest.fixture
def queue() -> SchedulingQueue:
    return SchedulingQueue(clock=Clock(), groups={})


@pytest.mark.parametrize("order", [1, -1], ids=["the oldest first", "the newest first"])
@pytest.mark.parametrize("spread", [0, 1], ids=["one priority", "a priority each"])
def test_pods_of_an_active_entry_are_deleted_in_linear_time(queue: SchedulingQueue, order: int, spread: int) -> None:
    pods = [pod(number, priority=spread * (PODS - number)) for number in range(PODS)]
    _, visited = large(queue, pods)
    for made in pods[::order][: PODS - 1]:
        queue.delete(made.metadata.uid)
    entry = queue.pop()
    assert entry is not None
    assert list(entry.pods.items()) == [(made.metadata.uid, made) for made in pods[::order][-1:]]
    assert visited.visits <= 4 * PODS


def test_ever_older_and_more_urgent_pods_are_added_in_linear_time(queue: SchedulingQueue) -> None:
    newest = pod(PODS)
    entry, visited = large(queue, [newest])
    for number in reversed(range(PODS)):
        queue.add(pod(number, priority=PODS - number), GROUP)
    assert visited.visits <= 4 * PODS
    assert entry.rank == (-PODS, 0, pod(0).metadata.creation_timestamp, 0, GROUP)


def test_pods_come_to_an_entry_with_left_over_pods_in_linear_time(queue: SchedulingQueue) -> None:
    entry, visited = large(queue, [pod(number) for number in range(PODS)])
    entry.left_over.update(entry.pods)
    visited.visits = 0
    for number in range(PODS, 2 * PODS):
        queue.add(pod(number), GROUP)
    assert visited.visits <= 4 * PODS


@pytest.mark.parametrize(
    "live",
    [
        pytest.param(lambda queue: queue.pop(held=lambda _: True), id="a namespace that is held"),
        pytest.param(lambda queue: queue.pop(), id="one that has its turns"),
        pytest.param(lambda queue: None, id="nobody schedules"),
    ],
)
@pytest.mark.parametrize("failed", [False, True], ids=["active", "failed"])
def test_entries_that_are_gone_leave_nothing_in_the_heaps(
    queue: SchedulingQueue, live: Callable[[SchedulingQueue], object], failed: bool
) -> None:
    stays = pod(1, priority=9)
    queue.add(stays, EntryKey.of(stays, None))
    for number in range(2, PODS):
        brief = pod(number)
        key = EntryKey.of(brief, None)
        queue.add(brief, key)
        if failed:
            (entry,) = (entry for entry in queue.entries() if entry.key == key)
            queue.back_off(entry)
        live(queue)
        queue.delete(brief.metadata.uid)
    heaps: list[Any] = [*queue._active._items.values(), *queue._oldest._items.values(), queue._timers]
    assert max(len(heap._items) for heap in heaps) <= 2 * 2 + STALE + 1
    assert [entry.pods for entry in queue.entries()] == [{stays.metadata.uid: stays}]


@given(steps=st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["add", "urgent", "delete", "fail", "pop"]))))
def test_heaps_are_bounded_and_lose_nobody(steps: list[tuple[int, str]]) -> None:
    clock = Clock()
    queue = SchedulingQueue(clock=clock, groups={})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heaps_module, "STALE", 1)
        for number, what in steps:
            clock.advance(1.0)
            made = pod(number, priority=number if what == "urgent" else 0)
            key = EntryKey.of(made, None)
            found = next((entry for entry in queue.entries() if entry.key == key), None)
            if what in ("add", "urgent"):
                queue.add(made, key)
            elif what == "delete":
                queue.delete(made.metadata.uid)
            elif what == "fail" and found is not None:
                queue.back_off(found)
            elif what == "pop" and (entry := queue.pop()) is not None:
                queue.back_off(entry)
            for entry in queue.entries():
                if entry.rank is None:
                    assert (entry.due, entry.key) in queue._timers._items
                else:
                    assert entry.rank in queue._active._items["default"]._items
                    assert (entry.active_since, entry.key) in queue._oldest._items["default"]._items


def test_an_entry_that_lost_its_most_urgent_pod_comes_after_those_more_urgent_now(queue: SchedulingQueue) -> None:
    large(queue, [pod(0, priority=9), pod(1, priority=1)])
    other = pod(2, priority=5)
    queue.add(other, EntryKey.of(other, None))
    queue.delete(pod(0).metadata.uid)
    order = []
    while (entry := queue.pop()) is not None:
        order.append(entry.key.kind)
    assert order == ["pod", "group"]


def test_an_entry_that_lost_its_oldest_pod_comes_after_those_older_now(queue: SchedulingQueue) -> None:
    large(queue, [pod(0), pod(9)])
    other = pod(5)
    other.metadata.namespace = "ns"
    queue.add(other, EntryKey.of(other, None))
    queue.delete(pod(0).metadata.uid)
    order = []
    while (entry := queue.pop()) is not None:
        order.append(entry.key.kind)
    assert order == ["pod", "group"]
