"""While it is decided the event loop goes on, and nobody else decides."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from functools import partial
from time import thread_time

import pytest

from controllers.latency.decision_thread import TURN, DecisionThread, in_turns


async def test_the_loop_goes_on_and_decisions_are_made_one_after_another() -> None:
    thread, go_on, made = DecisionThread(), threading.Event(), list[int]()

    def decide(number: int) -> int:
        assert go_on.wait(60)
        made.append(number)
        return threading.get_ident()

    tasks = [asyncio.create_task(thread.run(partial(decide, number))) for number in range(3)]
    for _ in range(10):
        await asyncio.sleep(0)
    assert not made
    go_on.set()
    found = [who for who, _ in await asyncio.gather(*tasks)]
    assert made == [0, 1, 2]
    assert len({*found}) == 1
    assert threading.get_ident() not in found


async def test_what_goes_wrong_is_told_and_the_next_is_decided() -> None:
    thread = DecisionThread()
    with pytest.raises(ZeroDivisionError):
        await thread.run(lambda: 1 // 0)
    assert (await thread.run(lambda: 7))[0] == 7


async def test_the_seconds_of_a_processor_are_told() -> None:
    assert (await DecisionThread().run(lambda: sum(range(100_000))))[1] > 0


async def test_the_loop_has_its_turns_between_steps() -> None:
    """Each of these steps takes longer than the loop should wait."""
    seen, turns = list[int](), 0

    def steps() -> Iterator[None]:
        for _ in range(5):
            begun = thread_time()
            while thread_time() - begun <= TURN:
                pass
            seen.append(turns)
            yield

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    seconds = await in_turns(steps())
    task.cancel()
    assert seen == sorted({*seen}), "somebody else had one after each"
    assert seconds > 5 * TURN
