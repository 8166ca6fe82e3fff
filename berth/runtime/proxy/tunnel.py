"""What follows an upgrade: bytes both ways, as they come, until either side ends it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Final, cast

from aiohttp import web

from berth.runtime.proxy.upstream import UpstreamConnection, UpstreamError

BUFFERED_BYTES: Final = 262_144
"""Bytes of the client that the application has not taken from which on no more is read."""
LAST_SECONDS: Final = 10.0
"""Seconds that the application has to take what a client sent before it left, and to leave itself."""


class _FromClient:
    """Stands where aiohttp's server has the parser of an upgraded connection; keeps what comes until it is taken."""

    def __init__(self, request: web.BaseRequest) -> None:
        self._transport = request.transport
        self._parts: list[bytes] = []
        self.size = 0
        """bytes of them"""
        self.ended = False
        """whether the client is gone"""
        self.dropped = False
        """whether nobody is to take what came"""
        self._paused = False
        self._news = asyncio.Event()

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Take in what came; never the end, which is that of the connection."""
        self._parts.append(data)
        self.size += len(data)
        if self.size > BUFFERED_BYTES and self._transport is not None and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        self._news.set()
        return False, b""

    def feed_eof(self) -> None:
        """Note that the client is gone."""
        self.ended = True
        self._news.set()

    def drop(self) -> None:
        """Let go of what came: the connection is cut."""
        self._parts.clear()
        self.size, self.dropped = 0, True

    async def read(self) -> bytes:
        """Return what came; nothing at the end."""
        while not self._parts and not self.ended:
            self._news.clear()
            await self._news.wait()
        data = b"".join(self._parts)
        self._parts.clear()
        self.size = 0
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return data


async def tunnel(request: web.BaseRequest, connection: UpstreamConnection) -> None:
    """Carry bytes between a client and the application until one of them closes its connection.

    What was sent before that arrives, as it would without a proxy.
    """
    client = _FromClient(request)
    connection.switch()
    # What the server takes for a parser of WebSocket frames is anything with these two methods.
    request.protocol.set_parser(cast("Any", client))

    async def inwards() -> None:
        while data := await client.read():
            await connection.write(data)

    async def outwards() -> None:
        while data := await connection.read_raw():
            await request.writer.write(data)

    async def last() -> None:
        """The rest of what the client sent; an end with answers unread would be a reset, and take that along."""
        await asyncio.wait(ways[:1])
        connection.end_sending()
        while await connection.read_raw():
            pass

    ways = [asyncio.ensure_future(inwards()), asyncio.ensure_future(outwards())]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if client.ended and not client.dropped:
            ways[1].cancel()
            await asyncio.wait(ways[1:])
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_SECONDS):
                    await last()
        for way in ways:
            way.cancel()
        for ended in await asyncio.gather(*ways, return_exceptions=True):
            if isinstance(ended, BaseException) and not isinstance(
                ended, (asyncio.CancelledError, UpstreamError, ConnectionError)
            ):
                raise ended
