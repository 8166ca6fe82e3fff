"""Who gives way waits for the last of those that go first, but neither for what hangs nor for longer than it said."""

from __future__ import annotations

import asyncio

import pytest

from berth.kube import precedence as module
from berth.kube.precedence import Precedence
from tests.support.kube import until

LONG = 60.0


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HOLD_SECONDS", LONG)


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_nobody_waits_while_none_is_under_way() -> None:
    async with asyncio.timeout(60):
        await Precedence().give_way(LONG)


async def test_who_gives_way_waits_for_the_last() -> None:
    precedence = Precedence()
    with precedence.taken():
        with precedence.taken():
            waiting = asyncio.create_task(precedence.give_way(LONG))
            await turns()
            assert not waiting.done()
        await turns()
        assert not waiting.done(), "one is under way still"
    await until(waiting.done, what="none is under way any more", seconds=5.0)
    await waiting


async def test_a_write_that_fails_has_ended() -> None:
    precedence = Precedence()
    with pytest.raises(OSError, match="reset"), precedence.taken():
        raise OSError("reset")
    async with asyncio.timeout(60):
        await precedence.give_way(LONG)


async def test_what_hangs_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HOLD_SECONDS", 0.02)
    precedence = Precedence()
    with precedence.taken():
        async with asyncio.timeout(60):
            await precedence.give_way(LONG)
        monkeypatch.setattr(module, "HOLD_SECONDS", LONG)
        with precedence.taken():
            waiting = asyncio.create_task(precedence.give_way(LONG))
            await turns()
            assert not waiting.done(), "a later write goes first all the same"
        await until(waiting.done, what="only the one that hangs is left", seconds=5.0)
    await waiting


@pytest.mark.parametrize("seconds", [0.02, 0.0, -1.0], ids=["a while", "not at all", "less than nothing"])
async def test_nobody_waits_for_longer_than_it_said(seconds: float) -> None:
    precedence = Precedence()
    with precedence.taken():
        async with asyncio.timeout(60):
            await precedence.give_way(seconds)
