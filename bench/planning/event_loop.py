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
    processor: float = 0.0
    """seconds of processors that all threads took"""
    longest_turn: float = 0.0
    """most seconds of a processor that the event loop's own thread took without a turn for other tasks: what of the
    stall is not for want of a processor"""


@asynccontextmanager
async def watched() -> AsyncIterator[Watched]:
    """Look every millisecond whether the loop still turns."""
    seen = Watched()

    async def tick() -> None:
        while True:
            before, taken = time.perf_counter(), time.thread_time()
            await asyncio.sleep(0.001)
            seen.longest_stall = max(seen.longest_stall, time.perf_counter() - before)
            seen.longest_turn = max(seen.longest_turn, time.thread_time() - taken)

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0.01)
    start, taken = time.perf_counter(), time.process_time()
    yield seen
    seen.seconds, seen.processor = time.perf_counter() - start, time.process_time() - taken
    ticking.cancel()
