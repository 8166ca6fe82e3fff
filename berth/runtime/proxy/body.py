"""The body of a request on its way to the application, which may have to be sent twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from aiohttp import web

REMEMBERED_BYTES: Final = 65_536
"""Bytes of a body that are remembered in case the request has to be sent again; one that is longer never is."""
SILENT_SECONDS: Final = 60.0
"""Seconds that a client may take for the next part."""


class BodyError(Exception):
    """The client does not send what it has promised; the text says how."""


class Body:
    """A request's body; what has been read of it can be read again while it is short."""

    def __init__(self, request: web.BaseRequest) -> None:
        """Prepare; nothing is read yet."""
        self.there = request.body_exists
        """whether the request has a body"""
        self.length = request.headers.get("Content-Length") if self.there else None
        """bytes that are stated for it; None: they come in chunks"""
        self.repeatable = True
        """whether all that was read can be read again"""
        self._content = request.content
        self._read: list[bytes] = []
        self._size = 0

    @property
    def chunked(self) -> bool:
        """Whether it comes in chunks."""
        return self.there and self.length is None

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield the body from its beginning.

        Raises:
            BodyError: the client stopped within it.
        """
        for part in tuple(self._read):
            yield part
        while not self._content.at_eof():
            try:
                async with asyncio.timeout(SILENT_SECONDS):
                    part = await self._content.readany()
            except TimeoutError as error:
                raise BodyError(f"nothing of the body came for {SILENT_SECONDS:g} s") from error
            except (web.RequestPayloadError, ConnectionError) as error:
                raise BodyError("the body ended before its end") from error
            if not part:
                continue
            self._size += len(part)
            if self._size <= REMEMBERED_BYTES:
                self._read.append(part)
            else:
                self.repeatable = False
                self._read.clear()
            yield part
