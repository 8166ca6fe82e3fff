"""Who may connect, and who gets a connection that is free, where many want one at once."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.runtime.proxy.turns import MOST_CONNECTING, Turns


async def crowd(turns: Turns[str], waiting: int) -> list[asyncio.Task[str | None]]:
    """As many as may connect do; these wait."""
    for _ in range(MOST_CONNECTING):
        assert await turns.take(lambda _found: None) is None
    found = [asyncio.create_task(turns.take(lambda _found: None)) for _ in range(waiting)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in found)
    return found


async def outcomes(waiting: list[asyncio.Task[str | None]]) -> list[object]:
    """What they have got by now; "waits" for those who wait."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return [(task.exception() or task.result()) if task.done() else "waits" for task in waiting]


async def test_a_free_connection_goes_to_who_has_waited_longest() -> None:
    turns = Turns[str]()
    waiting = await crowd(turns, 2)
    assert turns.give("free")
    assert await outcomes(waiting) == ["free", "waits"]
    assert turns.give("another")
    assert not turns.give("one more"), "nobody waits"
    assert await outcomes(waiting) == ["free", "another"]


async def test_who_is_through_lets_the_next_connect() -> None:
    turns = Turns[str]()
    waiting = await crowd(turns, 2)
    turns.end(turns.begin(), None)
    assert await outcomes(waiting) == [None, "waits"]
    waiting[1].cancel()
    await asyncio.wait(waiting)
    for _ in range(MOST_CONNECTING):
        turns.end(turns.begin(), None)
    assert turns.idle


@pytest.mark.parametrize(
    ("meanwhile", "told"),
    [
        pytest.param(lambda _turns: None, 5, id="nobody"),
        pytest.param(lambda turns: turns.end(turns.begin(), None), 0, id="somebody has connected"),
        pytest.param(lambda turns: turns.give("free"), 0, id="a connection was of use"),
        pytest.param(lambda turns: turns.end(turns.begin(), asyncio.CancelledError()), 4, id="somebody gave up"),
    ],
)
async def test_all_are_told_where_nobody_has_got_through_since_one_began_that_failed(
    meanwhile: object, told: int
) -> None:
    turns = Turns[str]()
    waiting = await crowd(turns, 5)
    begun, error = turns.begin(), ConnectionError("nobody is there")
    assert callable(meanwhile)
    meanwhile(turns)
    turns.end(begun, error)
    found = await outcomes(waiting)
    assert found.count(error) == told
    assert ("waits" in found) == (told == 0)
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)


async def test_those_that_fail_together_count_once() -> None:
    """Who is told tries again, and is not to be told by the others that began with the first, one after another."""
    turns = Turns[str]()
    [waiting] = await crowd(turns, 1)
    begun, error = [turns.begin() for _ in range(3)], ConnectionError("nobody is there")
    turns.end(begun[0], error)
    assert await outcomes([waiting]) == [error]
    again = [asyncio.create_task(turns.take(lambda _found: None)) for _ in range(5)]
    await asyncio.sleep(0)
    for each in begun[1:]:
        turns.end(each, error)
    assert await outcomes(again) == [None, None, None, "waits", "waits"]
    turns.end(turns.begin(), error)
    assert await outcomes(again) == [None, None, None, error, error]


@pytest.mark.parametrize(
    ("given_up", "goes_to"), [pytest.param(False, "next", id="another waits"), pytest.param(True, "back", id="nobody")]
)
async def test_what_somebody_got_who_went_away_is_not_lost(given_up: bool, goes_to: str) -> None:
    back: list[str] = []
    turns = Turns[str]()
    await crowd(turns, 0)

    def again(found: str) -> None:
        if not turns.give(found):
            back.append(found)

    first, second = [asyncio.create_task(turns.take(again)) for _ in range(2)]
    await asyncio.sleep(0)
    turns.give("free")
    first.cancel()
    if given_up:
        second.cancel()
    await asyncio.wait((first, second) if given_up else (first,))
    assert back == (["free"] if goes_to == "back" else [])
    if not given_up:
        assert await second == "free"


@given(st.lists(st.sampled_from(["take", "leave", "give", "end", "fail"]), max_size=60))
def test_nobody_waits_while_somebody_may_connect(steps: list[str]) -> None:
    async def play() -> None:
        turns = Turns[str]()
        waiting, connecting = await crowd(turns, 1), MOST_CONNECTING
        for step in steps:
            if step == "take":
                waiting.append(asyncio.create_task(turns.take(lambda _found: None)))
            elif step == "leave" and waiting:
                waiting[-1].cancel()
            elif step == "give":
                turns.give("free")
            elif step in ("end", "fail") and connecting:
                turns.end(turns.begin(), ConnectionError() if step == "fail" else None)
                connecting -= 1
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            done = [task for task in waiting if task.done()]
            waiting = [task for task in waiting if not task.done()]
            connecting += sum(not task.cancelled() and not task.exception() and task.result() is None for task in done)
            assert connecting <= MOST_CONNECTING
            assert not waiting or connecting == MOST_CONNECTING
            assert turns.idle == (not connecting)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(play())
