"""Who waits for a connection to one address, in the order in which they came. No I/O.

However many requests come at once, few connections are made at a time: an application has a queue for some hundreds,
and what does not get into it is tried again by the kernel after a second, then after three. Most requests then get a
connection by which another was answered meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

MOST_CONNECTING: Final = 64
"""Connections to one address that are made at a time."""

C = TypeVar("C")


class Turns(Generic[C]):
    """Of one address."""

    def __init__(self) -> None:
        """Begin without anybody."""
        self._connecting = 0
        self._waiting: deque[asyncio.Future[C | None]] = deque()
        self._news = 0  # how often somebody has got through, or all were told that nobody does

    @property
    def idle(self) -> bool:
        """Whether nobody is there."""
        return not self._connecting and not self._waiting

    async def take(self, back: Callable[[C], None]) -> C | None:
        """Wait for a turn; returns a connection that is free, or None: make one, and then tell by :meth:`end`.

        Args:
            back: takes a connection that whoever waited does not want any more.

        Raises:
            Exception: what another has met who tried to make one; nobody got through meanwhile.
        """
        if self._connecting < MOST_CONNECTING:
            self._connecting += 1
            return None
        turn: asyncio.Future[C | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                if (found := turn.result()) is None:
                    self._pass_on()
                else:
                    back(found)
            raise

    def begin(self) -> int:
        """Return what to tell :meth:`end` of when it began."""
        return self._news

    def end(self, begun: int, error: BaseException | None) -> None:
        """A connection was made, or not; who was cancelled has found out neither.

        Where nobody has got through since it began, nobody is there, as those are told who wait: it would take hours
        for all of them to find out. They may come back; what began with this one and fails as well is no news to them.
        """
        if error is None:
            self._news += 1
        elif isinstance(error, Exception) and begun == self._news:
            self._news += 1
            for turn in self._waiting:
                if not turn.done():
                    turn.set_exception(error)
            self._waiting.clear()
        self._pass_on()

    def give(self, connection: C) -> bool:
        """Hand a connection that is free to who has waited longest; False: nobody waits."""
        self._news += 1
        turn = self._next()
        if turn is not None:
            turn.set_result(connection)
        return turn is not None

    def _pass_on(self) -> None:
        """Somebody makes no connection any more: the next may."""
        turn = self._next()
        if turn is not None:
            turn.set_result(None)
        else:
            self._connecting -= 1

    def _next(self) -> asyncio.Future[C | None] | None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                return turn
        return None
