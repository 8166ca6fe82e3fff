"""How long a namespace is known to be slow, and that it costs nothing that there are many."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube import fair_queue
from berth.kube.fair_queue import MAX_SLOW, REMEMBER_SLOW, ROUNDS, SHARE, SLOW_SECONDS, FairQueue, Turn
from tests.support.placement import Clock

WORKERS = 48


class Loop:
    """Stands for the event loop where only its time is asked for."""

    def __init__(self, clock: Clock) -> None:
        self.time = clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("berth.kube.fair_queue.asyncio.get_running_loop", lambda: Loop(clock))
    return clock


def slow(queue: FairQueue[str], *namespaces: str) -> None:
    """Have work of these namespaces be slow."""
    for namespace in namespaces:
        queue.put(namespace, namespace)
        turn = queue.take()
        assert turn is not None
        queue._note_slow(namespace)
        queue.done(turn)


def turn_of(queue: FairQueue[str], namespace: str) -> Turn[str]:
    queue.put(namespace, namespace)
    turn = queue.take()
    assert turn is not None
    assert turn.namespace == namespace
    return turn


@pytest.mark.parametrize(
    ("others", "seconds"),
    [
        pytest.param(0, REMEMBER_SLOW, id="alone"),
        pytest.param(99, REMEMBER_SLOW, id="few"),
        pytest.param(999, ROUNDS * SLOW_SECONDS * 1000 / MAX_SLOW, id="many"),
    ],
)
def test_one_that_comes_again_is_slow_for_rounds_of_all_that_are(clock: Clock, others: int, seconds: float) -> None:
    queue: FairQueue[str] = FairQueue(WORKERS)
    slow(queue, "a", *(f"n{number}" for number in range(others)))
    clock.advance(seconds - 1.0)
    turn = turn_of(queue, "a")
    assert turn.slow
    queue.done(turn)
    clock.advance(1.0)
    assert not turn_of(queue, "a").slow


def test_one_whose_items_wait_is_slow_however_long_they_do(clock: Clock) -> None:
    """As many hang as slow work has workers: what waits behind them may take no others."""
    queue: FairQueue[str] = FairQueue(WORKERS)
    many = [f"n{number}" for number in range(1000)]
    slow(queue, *many)
    for namespace in many:
        queue.put(namespace, "item")
    hanging = [turn for _ in range(WORKERS) if (turn := queue.take()) is not None]
    assert len(hanging) == MAX_SLOW
    for _ in range(10):
        clock.advance(1000.0)
        slow(queue, "other")
        assert queue.take() is None
    turn = turn_of(queue, "prompt")
    assert not turn.slow


def test_prompt_work_shows_that_a_busy_one_is_slow_no_longer(clock: Clock) -> None:
    queue: FairQueue[str] = FairQueue(WORKERS)
    slow(queue, "busy")
    for number in range(5):
        queue.put("busy", f"item-{number}")
    seen = []
    while (turn := queue.take()) is not None:
        seen.append(turn.slow)
        clock.advance(REMEMBER_SLOW / 2)
        slow(queue, "other")  # others go on being slow
        queue.done(turn)
    assert seen == [True, True, False, False, False]


def test_no_more_are_remembered_than_so_many(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_queue, "MAX_REMEMBERED", 10)
    queue: FairQueue[str] = FairQueue(WORKERS)
    slow(queue, *(f"n{number}" for number in range(100)))
    assert [*queue._slow_since] == [f"n{number}" for number in range(90, 100)]
    assert not turn_of(queue, "n89").slow
    assert turn_of(queue, "n90").slow


def test_no_more_are_remembered_as_prompt_than_so_many(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_queue, "MAX_REMEMBERED", 10)
    queue: FairQueue[str] = FairQueue(WORKERS)
    queue.put("n0", "n0")
    for number in range(100):
        queue._note_prompt(f"n{number}")
    assert [*queue._prompt] == [f"n{number}" for number in range(90, 100)]
    assert turn_of(queue, "n0").unproven
    assert not turn_of(queue, "n90").unproven


def test_one_that_was_slow_is_not_known_to_be_prompt_until_it_shows(clock: Clock) -> None:
    queue: FairQueue[str] = FairQueue(WORKERS)
    queue._note_prompt("a")
    slow(queue, "a")
    queue._note_prompt("a")  # what began before ends
    turn = turn_of(queue, "a")
    assert turn.slow
    queue.done(turn)
    clock.advance(REMEMBER_SLOW)
    turn = turn_of(queue, "a")
    assert (turn.slow, turn.unproven) == (False, True)
    queue._note_prompt("a")
    assert not turn_of(queue, "a").unproven


def test_what_is_forgotten_takes_no_memory(clock: Clock) -> None:
    queue: FairQueue[str] = FairQueue(WORKERS)
    for number in range(1000):
        slow(queue, f"n{number}")
        clock.advance(1.0)
    assert len(queue._slow_since) <= REMEMBER_SLOW + 1


class Watched(OrderedDict[str, int]):
    """A line that counts how many of it were looked at."""

    looks = 0

    def items(self) -> Any:
        for item in super().items():
            self.looks += 1
            yield item


def test_slow_namespaces_that_wait_cost_nothing(clock: Clock) -> None:
    """Slow work has all workers that it may have, and 2000 more namespaces of the kind wait."""
    queue: FairQueue[str] = FairQueue(WORKERS)
    many = [f"n{number}" for number in range(2000)]
    slow(queue, *many)
    for namespace in many:
        queue.put(namespace, "item")
    hanging = [turn for _ in range(WORKERS) if (turn := queue.take()) is not None]
    assert len(hanging) == MAX_SLOW
    queue._slow_line = watched = Watched(queue._slow_line)
    for _ in range(100):
        queue.done(turn_of(queue, "prompt"))
    assert watched.looks == 0, "no turn is looked for where none is free"
    queue.done(hanging.pop())
    assert queue.take() is not None
    assert watched.looks <= 2 * (WORKERS + 1)


STEP = st.tuples(st.sampled_from(["put", "put", "take", "done", "slow", "prompt", "wait"]), st.sampled_from("abcdef"))


@given(st.lists(STEP, max_size=80))
def test_whose_turn_it_is_by_the_plain_rule(steps: list[tuple[str, str]]) -> None:
    """The fewest at work, and of those the one that lined up first, looked for among all."""
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "get_running_loop", lambda: Loop(clock))
        queue: FairQueue[str] = FairQueue(4)
        at_work: list[Turn[str]] = []
        for what, namespace in steps:
            if what == "put":
                queue.put(namespace, namespace)
            elif what == "slow":
                queue._note_slow(namespace)
            elif what == "prompt":
                queue._note_prompt(namespace)
            elif what == "wait":
                clock.advance(REMEMBER_SLOW / 2)
            elif what == "done" and at_work:
                queue.done(at_work.pop(0))
            elif what == "take":
                expected = plainly_next(queue)
                turn = queue.take()
                assert (turn.namespace if turn is not None else None) == expected
                if turn is not None:
                    assert turn.slow is (turn.namespace in queue._slow_since)
                    assert turn.unproven is (turn.namespace not in queue._prompt)
                    at_work.append(turn)
            slow, prompt = set(queue._slow_since), set(queue._prompt)
            assert not slow & prompt
            waiting = set(queue._waiting)
            for line, those in (
                (queue._slow_line, waiting & slow),
                (queue._prompt_line, waiting & prompt),
                (queue._unknown_line, waiting - slow - prompt),
            ):
                assert list(line.values()) == sorted(line.values())
                assert set(line) == those
            assert sum(turn.unproven for turn in at_work) <= 3
        for turn in at_work:
            queue.done(turn)
        assert (queue._free, queue._free_for_slow, queue._free_for_unproven) == (4, 2, 3)


def plainly_next(queue: FairQueue[str]) -> str | None:
    numbers = {**queue._prompt_line, **queue._unknown_line, **queue._slow_line}
    unproven = min(queue._free, queue._free_for_unproven)

    def workers(namespace: str) -> int:
        if namespace in queue._prompt:
            return queue._free
        return min(unproven, queue._free_for_slow) if namespace in queue._slow_since else unproven

    may = {
        namespace: (queue._at_work.get(namespace, 0), numbers[namespace])
        for namespace in queue._waiting
        if queue._at_work.get(namespace, 0) < SHARE * workers(namespace)
    }
    return min(may, key=lambda namespace: may[namespace], default=None)
