"""Turns to ask the API server about pods whose binding is unknown: some at a time, in turns by namespace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from berth.kube.fair_queue import FairQueue, Turn


class Lookups:
    """Lets a bounded number ask at a time; namespaces whose pods give no answer leave turns to the others."""

    def __init__(self, limit: int) -> None:
        """So many at a time."""
        self._queue: FairQueue[asyncio.Future[Any]] = FairQueue(limit)

    @asynccontextmanager
    async def turn(self, namespace: str) -> AsyncIterator[None]:
        """Wait for a turn, and have it in the block.

        Raises:
            TimeoutError: the block took too long while too many others do.
        """
        granted: asyncio.Future[Turn[asyncio.Future[Any]]] = asyncio.get_running_loop().create_future()
        self._queue.put(namespace, granted)
        self._grant()
        try:
            turn = await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self._end(granted.result())
            raise
        try:
            async with self._queue.patience(turn):
                yield
        finally:
            self._end(turn)

    def _grant(self) -> None:
        while (turn := self._queue.take()) is not None:
            if turn.item.cancelled():
                self._queue.done(turn)
            else:
                turn.item.set_result(turn)

    def _end(self, turn: Turn[asyncio.Future[Any]]) -> None:
        self._queue.done(turn)
        self._grant()
