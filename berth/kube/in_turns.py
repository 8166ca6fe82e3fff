"""Long loops in an event loop, with turns for others in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from time import monotonic
from typing import Final, TypeVar

T = TypeVar("T")

TURN_SECONDS: Final = 0.02
"""Seconds at a stretch."""


async def in_turns(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield the items; whatever else the event loop has to do comes in between."""
    begun = monotonic()
    for item in items:
        yield item
        if monotonic() - begun > TURN_SECONDS:
            await asyncio.sleep(0)
            begun = monotonic()
