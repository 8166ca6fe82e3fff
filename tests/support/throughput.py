"""Receivers of throughput tests on loopback."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agents.node.throughput.receiver import Receiver


@asynccontextmanager
async def running_receiver(limit: int, address: str = "127.0.0.1") -> AsyncIterator[Receiver]:
    """A receiver that takes ``limit`` bytes of each sender within an hour."""
    receiver = Receiver(address, 0, limit)
    work = asyncio.create_task(receiver.run())
    try:
        yield receiver
    finally:
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work
