"""The watches of one source, which come and go while it runs. No I/O of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class Watches:
    """Tasks that follow something, each until it is cancelled.

    One that fails instead ends the source, and with it the process, which begins anew: what it keeps would be taken for
    the present for ever, and its age is that of a watch that does not run, which is none.
    """

    def __init__(self) -> None:
        """Follow nothing yet."""
        self._running: set[asyncio.Task[None]] = set()
        self._ended: asyncio.Queue[asyncio.Task[None]] = asyncio.Queue()

    def start(self, following: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Follow something from now on, until the task is cancelled."""
        task = asyncio.create_task(following)
        self._running.add(task)
        task.add_done_callback(self._end)
        return task

    async def run(self) -> None:
        """Wait until one fails, for ever; none goes on afterwards.

        Raises:
            Exception: what it failed with.
        """
        try:
            (await self._ended.get()).result()
        finally:
            running = tuple(self._running)
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            self._ended.put_nowait(task)
