"""Requests that wait for a connection: for a new one, or for one that becomes free before that is made.

A handshake takes some milliseconds of processor time at either end. Where fifty requests come at once and each makes a
connection of its own, the first of them waits until nearly all are made.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Generic, TypeVar

T = TypeVar("T")

AT_ONCE = 8
"""Connections that are being made at a time, without those that take long."""
LONG_SECONDS = 0.1
"""Seconds after which making a connection takes long: then it is not for handshakes that others wait."""


class Dials(Generic[T]):
    """Makes no more connections than requests wait for, and a few at a time."""

    def __init__(self, connect: Callable[[], Awaitable[T]], free: Callable[[T], None]) -> None:
        """Prepare.

        Args:
            connect: makes a connection.
            free: takes one that may be used, and hands it on.
        """
        self._connect = connect
        self._free = free
        self._waiting: deque[asyncio.Future[T]] = deque()
        self._dials: set[asyncio.Task[None]] = set()
        self._recent: set[asyncio.Task[None]] = set()

    async def wait(self) -> T:
        """Return a connection; who waits longest has the next one.

        Raises:
            Exception: whatever making one raises, to who waits longest.
        """
        waiter: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        self._dial()
        try:
            return await waiter
        except asyncio.CancelledError:
            with suppress(ValueError):
                self._waiting.remove(waiter)
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._free(waiter.result())
            self._cancel(len(self._dials) - len(self._waiting))
            raise

    def hand_on(self, connection: T) -> bool:
        """Give a connection to who waits longest; False if nobody waits."""
        waiter = self._next()
        if waiter is not None:
            waiter.set_result(connection)
        return waiter is not None

    def close(self) -> None:
        """Make no more; who waits is told so."""
        while (waiter := self._next()) is not None:
            waiter.set_exception(ConnectionAbortedError("the client was closed"))
        self._cancel(len(self._dials))

    def _next(self) -> asyncio.Future[T] | None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                return waiter
        return None

    def _dial(self) -> None:
        """Make connections for those who wait, if none is made for them yet."""
        loop = asyncio.get_running_loop()
        while len(self._recent) < AT_ONCE and len(self._dials) < len(self._waiting):
            task = loop.create_task(self._make())
            self._dials.add(task)
            self._recent.add(task)
            timer = loop.call_later(LONG_SECONDS, self._passed, task)
            task.add_done_callback(partial(self._made, timer))

    async def _make(self) -> None:
        try:
            connection = await self._connect()
        except Exception as error:
            if (waiter := self._next()) is not None:
                waiter.set_exception(error)
        else:
            self._free(connection)

    def _passed(self, task: asyncio.Task[None]) -> None:
        self._recent.discard(task)
        self._dial()

    def _made(self, timer: asyncio.TimerHandle, task: asyncio.Task[None]) -> None:
        timer.cancel()
        self._dials.discard(task)
        self._passed(task)

    def _cancel(self, count: int) -> None:
        """Give up making so many of them."""
        for task in list(self._dials)[: max(0, count)]:
            self._dials.discard(task)
            task.cancel()
