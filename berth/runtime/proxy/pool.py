"""Connections to the application: kept alive, and made a few at a time."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Final

from berth.runtime.proxy.reading import Reading
from berth.runtime.proxy.turns import Turns
from berth.runtime.proxy.upstream import Address, Failure, UpstreamConnection, UpstreamError

CONNECT_SECONDS: Final = 2.0
"""Seconds for a connection."""
KEEP_ALIVE_SECONDS: Final = 4.0
"""Seconds without a request after which a connection is not used again: servers close theirs after five and more."""
UNREPEATABLE_SECONDS: Final = 1.0
"""The same for requests that cannot be sent again where the server happens to close it at that moment."""
MOST_IDLE: Final = 256
"""Connections without a request that are kept, of all addresses together: each is an open file."""


class UpstreamPool:
    """Connections to any number of addresses."""

    def __init__(self) -> None:
        """Prepare; a connection is made when a request finds none that is free."""
        self.reading = Reading()
        """how much is read of answers at a time"""
        self._free: dict[Address, deque[UpstreamConnection]] = {}
        self._idle: dict[UpstreamConnection, None] = {}  # the same of all addresses, who is free for longest first
        self._all: set[UpstreamConnection] = set()
        self._turns: dict[Address, Turns[UpstreamConnection]] = {}
        self._clearing: asyncio.TimerHandle | None = None

    async def acquire(self, address: Address, *, repeatable: bool) -> UpstreamConnection:
        """Return a connection for one request.

        Args:
            address: where to.
            repeatable: whether the request may be sent again should the connection prove to be closed.

        Raises:
            UpstreamError: there is none (`Failure.CONNECT`).
        """
        youngest = time.monotonic() - (KEEP_ALIVE_SECONDS if repeatable else UNREPEATABLE_SECONDS)
        while (connection := self._take(address)) is not None:
            if connection.reusable and connection.free_since >= youngest:
                return connection
            connection.abort()
        turns = self._turns.setdefault(address, Turns())
        try:
            return await self._in_turn(address, turns)
        finally:
            # Whoever was handed a connection that then was closed may have come back to turns that nobody knows by now.
            if turns.idle and self._turns.get(address) is turns:
                del self._turns[address]

    def release(self, connection: UpstreamConnection) -> None:
        """Take a connection back; one that takes no further request is closed."""
        if not connection.reusable:
            connection.abort()
            return
        connection.free_since = time.monotonic()
        connection.used = True
        if (turns := self._turns.get(connection.address)) is not None and turns.give(connection):
            return
        if len(self._idle) >= MOST_IDLE:
            self._let_go(next(iter(self._idle)))
        self._free.setdefault(connection.address, deque()).append(connection)
        self._idle[connection] = None
        self._clear_later()

    def forget(self, address: Address) -> None:
        """Close the connections to an address that are free: nobody is there any more."""
        for connection in self._free.pop(address, ()):
            del self._idle[connection]
            connection.abort()

    async def close(self) -> None:
        """Close all connections."""
        if self._clearing is not None:
            self._clearing.cancel()
        self._free.clear()
        self._idle.clear()
        connections = list(self._all)
        for connection in connections:
            connection.abort()
        await asyncio.gather(*(connection.ended for connection in connections))

    def _take(self, address: Address) -> UpstreamConnection | None:
        """Take out the connection of an address that was used last, so that those not needed fall out of use."""
        free = self._free.get(address)
        if free is None:
            return None
        connection = free.pop()
        self._forget_if_empty(address, free)
        del self._idle[connection]
        return connection

    def _let_go(self, connection: UpstreamConnection) -> None:
        """Close the connection that is free for longest, which is so of its address as well."""
        del self._idle[connection]
        free = self._free[connection.address]
        free.popleft()
        self._forget_if_empty(connection.address, free)
        connection.abort()

    def _forget_if_empty(self, address: Address, free: deque[UpstreamConnection]) -> None:
        if not free:
            del self._free[address]

    def _clear_later(self) -> None:
        if self._clearing is None and self._idle:
            self._clearing = asyncio.get_running_loop().call_later(KEEP_ALIVE_SECONDS, self._clear)

    def _clear(self) -> None:
        """Close what has been free for too long."""
        self._clearing = None
        oldest = time.monotonic() - KEEP_ALIVE_SECONDS
        while self._idle and (connection := next(iter(self._idle))).free_since <= oldest:
            self._let_go(connection)
        self._clear_later()

    async def _in_turn(self, address: Address, turns: Turns[UpstreamConnection]) -> UpstreamConnection:
        while (found := await turns.take(self.release)) is not None:
            if found.reusable:  # it may have been closed since it was handed on
                return found
        begun = turns.begin()
        try:
            connection = await self._connect(address)
        except BaseException as error:
            turns.end(begun, error)
            raise
        turns.end(begun, None)
        return connection

    async def _connect(self, address: Address) -> UpstreamConnection:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: UpstreamConnection(address, self._all, self.reading), address.host, address.port
                )
        except TimeoutError as error:
            raise UpstreamError(Failure.CONNECT, f"no connection within {CONNECT_SECONDS:g} s") from error
        except OSError as error:
            raise UpstreamError(Failure.CONNECT, error.strerror or str(error)) from error
        return connection
