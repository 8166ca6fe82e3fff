"""Writes that go first at the API server, and those that give way to them for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

HOLD_SECONDS = 1.0
"""Seconds for which a write goes first. What hangs holds up nobody: it may be the webhook of one namespace."""


class Precedence:
    """Knows which writes are under way that go first."""

    def __init__(self) -> None:
        """Begin with none."""
        self._first: set[object] = set()
        self._none = asyncio.Event()
        self._none.set()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Have what is done inside go first."""
        write = object()
        self._first.add(write)
        self._none.clear()
        timer = asyncio.get_running_loop().call_later(HOLD_SECONDS, self._end, write)
        try:
            yield
        finally:
            timer.cancel()
            self._end(write)

    def _end(self, write: object) -> None:
        self._first.discard(write)
        if not self._first:
            self._none.set()

    async def give_way(self, seconds: float) -> None:
        """Wait until none goes first, so many seconds at the most."""
        if seconds > 0 and self._first:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._none.wait()
