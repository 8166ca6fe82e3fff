"""Large statuses one after another, with pauses, namespaces in turns."""

from __future__ import annotations

import asyncio
import time

import pytest

from berth.network.groups import GroupKey
from controllers.appgroup.large_statuses import LAST_PAUSE, PAUSE, LargeStatuses

A, B, OTHER = GroupKey("shop", "a"), GroupKey("shop", "b"), GroupKey("other", "c")


class Turns:
    """Work that takes a time, and the pauses after it; ends when nothing is left to do."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, seconds: float = 1.0, exists: bool = True) -> None:
        self.now, self.seconds, self.exists = 100.0, seconds, exists
        self.worked: list[tuple[float, GroupKey]] = []
        self.elsewhere: list[GroupKey] = []
        self.failing = 0
        self.large = LargeStatuses(elsewhere=self.elsewhere.append, sleep=self.sleep)
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)

    async def work(self, key: GroupKey) -> bool:
        self.worked.append((self.now - 100.0, key))
        self.now += self.seconds
        if self.failing:
            self.failing -= 1
            raise OSError
        return self.exists

    async def run(self, *keys: GroupKey, until: int) -> None:
        for key in keys:
            self.large.add(key)
        task = asyncio.create_task(self.large.run(self.work))
        async with asyncio.timeout(60):
            while len(self.worked) < until or len(self.large):
                await asyncio.sleep(0)
            for _ in range(10):
                await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@pytest.fixture(name="loop_time", autouse=True)
def _loop_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue's clock is the loop's, which the tests leave alone."""
    real = time.monotonic
    monkeypatch.setattr(asyncio.BaseEventLoop, "time", lambda _: real())


@pytest.mark.parametrize(
    ("seconds", "second"),
    [
        pytest.param(0.01, 0.01 * (1 + PAUSE), id="quick"),
        pytest.param(1.0, 1.0 + PAUSE, id="slow"),
        pytest.param(60.0, 60.0 + LAST_PAUSE, id="an API server that hardly answers"),
    ],
)
async def test_a_pause_follows_each_as_long_as_it_took_and_bounded(
    monkeypatch: pytest.MonkeyPatch, seconds: float, second: float
) -> None:
    turns = Turns(monkeypatch, seconds=seconds)
    await turns.run(A, B, until=2)
    assert [key for _, key in turns.worked] == [A, B]
    assert [when for when, _ in turns.worked] == pytest.approx([0.0, second])


async def test_namespaces_have_their_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(monkeypatch)
    await turns.run(A, B, OTHER, until=3)
    assert [key for _, key in turns.worked] == [A, OTHER, B]


async def test_one_that_is_gone_is_no_longer_large_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(monkeypatch, exists=False)
    await turns.run(A, until=1)
    assert (turns.elsewhere, A in turns.large) == ([A], False)


async def test_one_that_fails_is_tried_again_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(monkeypatch)
    turns.failing = 1
    await turns.run(A, B, until=3)
    assert [key for _, key in turns.worked] == [A, B, A]
    assert (turns.elsewhere, A in turns.large) == ([], True)


async def test_one_that_has_changed_and_is_small_by_then_is_worked_on_elsewhere_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two statuses of one AppGroup would be under way at once, and the older one might be written last."""
    turns = Turns(monkeypatch)

    async def shrinking(key: GroupKey) -> bool:
        turns.large.add(key)  # it changes meanwhile
        turns.large.discard(key)
        return await Turns.work(turns, key)

    monkeypatch.setattr(turns, "work", shrinking)
    await turns.run(A, until=1)
    assert [key for _, key in turns.worked] == [A]
    assert (turns.elsewhere, A in turns.large) == ([A], False)


def test_one_that_is_small_again_is_not_large() -> None:
    large = LargeStatuses(elsewhere=lambda _: None)
    large.discard(A)
    assert A not in large
