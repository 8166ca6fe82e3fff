"""Long loops leave turns to others."""

from __future__ import annotations

import asyncio

import pytest

from berth.kube import in_turns as module
from berth.kube.in_turns import in_turns
from tests.support.placement import Clock


@pytest.mark.parametrize(
    ("tick", "turns"), [pytest.param(0.001, 4, id="quick items"), pytest.param(1.0, 100, id="slow items")]
)
async def test_others_have_a_turn_every_so_often(monkeypatch: pytest.MonkeyPatch, tick: float, turns: int) -> None:
    """The clock goes on by a tick an item."""
    monkeypatch.setattr(module, "monotonic", Clock(tick=tick))
    seen, others = list[int](), 0

    async def other() -> None:
        nonlocal others
        while True:
            others += 1
            await asyncio.sleep(0)

    task = asyncio.get_running_loop().create_task(other())
    async for item in in_turns(range(100)):
        seen.append(item)
    task.cancel()
    assert seen == list(range(100))
    assert others == pytest.approx(turns, abs=1)
