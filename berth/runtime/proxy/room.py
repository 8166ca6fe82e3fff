"""Who makes room where there are as many connections of clients as there may be."""

from __future__ import annotations

import asyncio
import fcntl
import struct
import termios
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler


class Room(web.Server):
    """aiohttp's server, which knows by which connections nothing is being answered."""

    def __init__(self, handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], **options: Any) -> None:
        """Begin without any; the arguments are those of aiohttp's."""
        super().__init__(self._answer, **options)
        self._handler = handler
        self._free: dict[RequestHandler, None] = {}  # the longest first

    @property
    def count(self) -> int:
        """How many connections there are; aiohttp has a list of them, which takes its time with ten thousand."""
        return len(self._connections)

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        """A client has come."""
        super().connection_made(handler, transport)
        self._free[handler] = None

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        """A client is gone."""
        super().connection_lost(handler, exc)
        self._free.pop(handler, None)

    def make(self) -> bool:
        """Close the connection by which nothing was asked for longest, as any may be between requests.

        Otherwise whoever opens them all would lock out everybody else without asking for anything. Were it the oldest
        that goes, users who were there before a flood would go before it.

        Returns:
            Whether there is one.
        """
        for each in self._free:
            if is_idle(each):
                each.force_close()
                return True
        return False

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.protocol
        self._free.pop(connection, None)
        try:
            return await self._handler(request)
        finally:
            if connection.transport is not None:
                self._free[connection] = None


def is_idle(connection: RequestHandler) -> bool:
    """Whether a connection waits for a request, with all that has come read and all answers on their way.

    While aiohttp waits for nothing a request may have been taken up whose answer has not begun, or what the client
    still sends behind an answer is read: an end before that would take the answer from the client.
    """
    transport, waiter = connection.transport, connection._waiter
    if transport is None or transport.is_closing() or transport.get_write_buffer_size():
        return False
    return waiter is not None and not waiter.done() and not _unread(transport)


def _unread(transport: asyncio.Transport) -> int:
    """How many bytes have come that the event loop has not read: a turn of it may take long where many ask."""
    (size,) = struct.unpack("i", fcntl.ioctl(transport.get_extra_info("socket"), termios.FIONREAD, bytes(4)))
    return int(size)


class Refusal(asyncio.Protocol):
    """A connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Close it."""
        transport.close()
