"""The work queue: DueKeys against a clock of the test's own, WorkQueue against its workers.

Left out: how long a backoff is, which is berth.kube.client.backoff's matter.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.runtime import workqueue
from berth.runtime.workqueue import DueKeys, WorkQueue


def add(base: float, failures: int) -> float:
    return base + failures


def at(when: float, _failures: int) -> float:
    return when


def test_keys_come_in_the_order_of_their_times() -> None:
    keys: DueKeys[str] = DueKeys(str)
    for key, when in [("c", 3.0), ("a", 1.0), ("b", 2.0)]:
        keys.add(key, when)
    assert [keys.pop(10.0) for _ in range(4)] == ["a", "b", "c", None]


def test_equal_times_come_in_the_order_of_addition() -> None:
    keys: DueKeys[str] = DueKeys(str)
    for key in "cab":
        keys.add(key, 1.0)
    assert [keys.pop(1.0) for _ in range(3)] == ["c", "a", "b"]


def test_nothing_before_its_time() -> None:
    keys: DueKeys[str] = DueKeys(str)
    keys.add("a", 5.0)
    assert keys.pop(4.9) is None
    assert keys.next_due() == 5.0
    assert keys.pop(5.0) == "a"
    assert keys.next_due() is None


@pytest.mark.parametrize(
    ("times", "due"),
    [
        pytest.param([5.0, 7.0], 5.0, id="a later change does not extend the window"),
        pytest.param([5.0, 2.0], 2.0, id="an urgent change closes it"),
        pytest.param([5.0, 2.0, 9.0, 3.0], 2.0, id="the earliest of many"),
        pytest.param([5.0, 5.0], 5.0, id="the same time twice"),
    ],
)
def test_a_key_waits_once_for_its_earliest_time(times: list[float], due: float) -> None:
    keys: DueKeys[str] = DueKeys(str)
    for when in times:
        keys.add("a", when)
    assert len(keys) == 1
    assert keys.next_due() == due
    assert keys.pop(due) == "a"
    assert keys.pop(100.0) is None


def test_an_active_key_is_not_given_out_again() -> None:
    keys: DueKeys[str] = DueKeys(str)
    keys.add("a", 0.0)
    assert keys.pop(0.0) == "a"
    keys.add("a", 0.0)
    assert keys.pop(100.0) is None
    keys.done("a")
    assert keys.pop(100.0) == "a"
    keys.done("a")
    assert len(keys) == 0


def test_additions_to_an_active_key_are_one() -> None:
    keys: DueKeys[str] = DueKeys(str)
    keys.add("a", 0.0)
    keys.pop(0.0)
    keys.add("a", 9.0)
    keys.add("a", 4.0)
    keys.add("a", 6.0)
    keys.done("a")
    assert len(keys) == 1
    assert keys.next_due() == 4.0


def test_failures_wait_and_are_counted_until_a_success() -> None:
    keys: DueKeys[str] = DueKeys(str)
    keys.add("a", 0.0)
    counts = []
    for round_ in range(3):
        assert keys.pop(10.0 * round_) == "a"
        counts.append(keys.failed("a", partial(add, 10.0 * round_)))
    assert counts == [1, 2, 3]
    assert keys.next_due() == 22.0
    assert keys.pop(22.0) == "a"
    keys.done("a")
    keys.add("a", 30.0)
    keys.pop(30.0)
    assert keys.failed("a", lambda count: 40.0 + count) == 1
    assert keys.next_due() == 40.0


def test_a_change_during_a_failure_waits_with_it_and_one_after_it_does_not() -> None:
    keys: DueKeys[str] = DueKeys(str)
    keys.add("a", 0.0)
    keys.pop(0.0)
    keys.add("a", 0.0)
    keys.failed("a", lambda _: 50.0)
    assert keys.next_due() == 50.0
    keys.add("a", 1.0)
    assert keys.next_due() == 1.0
    assert keys.pop(100.0) == "a"
    assert keys.pop(100.0) is None


def initial(key: str) -> str:
    """The namespace of a key."""
    return key[0]


_steps = st.lists(
    st.tuples(st.sampled_from(["add", "pop", "done", "fail"]), st.sampled_from("abc"), st.integers(0, 5)), max_size=60
)


@pytest.mark.parametrize("namespace_of", [str, lambda _key: "all"], ids=["a namespace each", "one namespace"])
@given(steps=_steps)
def test_no_addition_is_ever_lost(namespace_of: Callable[[str], str], steps: list[tuple[str, str, int]]) -> None:
    keys: DueKeys[str] = DueKeys(namespace_of)
    owed: set[str] = set()
    active: set[str] = set()
    now = 0.0
    for action, key, number in steps:
        now += 1.0
        if action == "add":
            keys.add(key, now + number)
            owed.add(key)
        elif action == "pop":
            popped = keys.pop(now)
            if popped is not None:
                assert popped not in active
                assert popped in owed
                active.add(popped)
                owed.discard(popped)
        elif key in active:
            active.discard(key)
            if action == "done":
                keys.done(key)
            else:
                keys.failed(key, partial(at, now + number))
                owed.add(key)
        assert len(keys) == len(owed)
    for key in active:
        keys.done(key)
    drained = []
    while (popped := keys.pop(now + 100.0)) is not None:
        drained.append(popped)
        keys.done(popped)
    assert sorted(drained) == sorted(owed)
    assert len(keys) == 0


Work = Callable[[str], Awaitable[bool]]


@contextlib.asynccontextmanager
async def running(queue: WorkQueue[str], work: Work, *, workers: int = 2) -> AsyncIterator[None]:
    task = asyncio.create_task(queue.run(work, workers=workers))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


class Recorder:
    """Work that notes its keys and can be held up."""

    def __init__(self) -> None:
        self.gone: set[str] = set()
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.changed = asyncio.Condition()

    async def __call__(self, key: str) -> bool:
        exists = key not in self.gone
        await self._note(self.begun, key)
        await self.gate.wait()
        await self._note(self.ended, key)
        return exists

    async def _note(self, where: list[str], key: str) -> None:
        async with self.changed:
            where.append(key)
            self.changed.notify_all()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(60), self.changed:
            await self.changed.wait_for(condition)


async def test_every_key_is_worked_on() -> None:
    queue: WorkQueue[str] = WorkQueue(str)
    work = Recorder()
    for key in "abc":
        queue.add(key)
    async with running(queue, work):
        queue.add("d")
        await work.until(lambda: len(work.ended) == 4)
    assert sorted(work.ended) == ["a", "b", "c", "d"]
    assert len(queue) == 0


async def test_additions_before_its_turn_are_one() -> None:
    queue: WorkQueue[str] = WorkQueue(str)
    work = Recorder()
    for _ in range(1000):
        queue.add("a", delay=0.01)
    assert len(queue) == 1
    async with running(queue, work):
        queue.add("end", delay=0.05)
        await work.until(lambda: "end" in work.ended)
    assert work.ended == ["a", "end"]


async def test_an_urgent_addition_overtakes_a_delay() -> None:
    queue: WorkQueue[str] = WorkQueue(str)
    work = Recorder()
    async with running(queue, work):
        queue.add("a", delay=3600.0)
        queue.add("a")
        await work.until(lambda: work.ended == ["a"])
    assert len(queue) == 0


async def test_keys_run_side_by_side_but_never_one_key() -> None:
    queue: WorkQueue[str] = WorkQueue(str)
    work = Recorder()
    work.gate.clear()
    async with running(queue, work, workers=3):
        queue.add("a")
        queue.add("b")
        await work.until(lambda: len(work.begun) == 2)
        queue.add("a")
        queue.add("c")
        await work.until(lambda: len(work.begun) == 3)
        assert sorted(work.begun) == ["a", "b", "c"]
        work.gate.set()
        await work.until(lambda: len(work.ended) == 4)
    assert sorted(work.ended) == ["a", "a", "b", "c"]


@pytest.mark.parametrize(("workers", "begun"), [(8, ["a0", "a1", "b0"]), (4, ["a0", "b0"]), (2, ["a0", "b0"])], ids=str)
async def test_one_namespace_does_not_have_all_workers(workers: int, begun: list[str]) -> None:
    queue: WorkQueue[str] = WorkQueue(initial)
    work = Recorder()
    work.gate.clear()
    async with running(queue, work, workers=workers):
        for number in range(10):
            queue.add(f"a{number}")
        await work.until(lambda: len(work.begun) == len(begun) - 1)
        queue.add("b0")
        await work.until(lambda: len(work.begun) == len(begun))
        assert work.begun == begun
        work.gate.set()
        await work.until(lambda: len(work.ended) == 11)


async def test_workers_bound_what_runs_at_once() -> None:
    queue: WorkQueue[str] = WorkQueue(str)
    work = Recorder()
    work.gate.clear()
    async with running(queue, work, workers=2):
        for key in "abcd":
            queue.add(key)
        await work.until(lambda: len(work.begun) == 2)
        assert len(queue) == 2
        work.gate.set()
        await work.until(lambda: len(work.ended) == 4)


async def test_a_failing_key_is_tried_again_and_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workqueue, "FIRST_RETRY", 0.01)
    queue: WorkQueue[str] = WorkQueue(str)
    done = asyncio.Event()
    calls: list[str] = []

    async def work(key: str) -> bool:
        calls.append(key)
        if key == "bad" and calls.count("bad") < 4:
            raise OSError("no route to host")
        if key == "bad":
            done.set()
        return True

    async with running(queue, work, workers=1):
        queue.add("bad")
        queue.add("good")
        async with asyncio.timeout(60):
            await done.wait()
    assert calls.count("bad") == 4
    assert calls.count("good") == 1


async def test_cancellation_ends_the_workers() -> None:
    queue: WorkQueue[str] = WorkQueue(str)
    work = Recorder()
    work.gate.clear()
    before = asyncio.all_tasks()
    async with running(queue, work, workers=4):
        queue.add("a")
        await work.until(lambda: work.begun == ["a"])
    assert asyncio.all_tasks() == before
    assert work.ended == []


async def test_another_run_goes_on_with_what_waits() -> None:
    queue: WorkQueue[str] = WorkQueue(str)
    work: Any = Recorder()
    async with running(queue, work):
        queue.add("a")
        await work.until(lambda: work.ended == ["a"])
    queue.add("b")
    async with running(queue, work):
        await work.until(lambda: work.ended == ["a", "b"])


async def test_known_keys_are_those_whose_objects_exist() -> None:
    queue: WorkQueue[str] = WorkQueue(str)
    work = Recorder()
    work.gone = {"b"}
    async with running(queue, work):
        queue.add("a")
        queue.add("b")
        await work.until(lambda: len(work.ended) == 2)
        queue.add("c", delay=3600.0)
        queue.add_known()
        await work.until(lambda: len(work.ended) == 4)
    assert sorted(work.ended) == ["a", "a", "b", "c"]
    assert queue.known == {"a", "c"}


async def test_a_key_that_is_gone_and_comes_back_is_known_again() -> None:
    queue: WorkQueue[str] = WorkQueue(str)
    work = Recorder()
    work.gone = {"a"}
    work.gate.clear()
    async with running(queue, work):
        queue.add("a")
        await work.until(lambda: work.begun == ["a"])
        work.gone.clear()
        queue.add("a")
        work.gate.set()
        await work.until(lambda: len(work.ended) == 2)
    assert queue.known == {"a"}
