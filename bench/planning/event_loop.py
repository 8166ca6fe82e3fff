"""How long an event loop is kept from its work while something is measured."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class Watched:
    """What was seen, complete when the block has ended."""

    seconds: float = 0.0
    """how long the block took"""
    longest_stall: float = 0.0
    """longest time without a turn for other tasks, in seconds"""


@asynccontextmanager
async def watched() -> AsyncIterator[Watched]:
    """Look every millisecond whether the loop still turns."""
    seen = Watched()

    async def tick() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            seen.longest_stall = max(seen.longest_stall, time.perf_counter() - before)

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0.01)
    start = time.perf_counter()
    yield seen
    seen.seconds = time.perf_counter() - start
    ticking.cancel()
