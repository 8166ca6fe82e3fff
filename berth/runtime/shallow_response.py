"""Answers of the API server for kopf, which decodes them itself: without what is nested too deeply for that.

One such object, and anybody may create one, would end kopf whenever it lists or watches the kind.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Self, cast

import aiohttp
from aiohttp.connector import Connection

from berth.kube.decoding import at_any_depth, shallow


class ShallowResponse(aiohttp.ClientResponse):
    """An answer that kopf can decode, be it one object or a stream of lines."""

    async def start(self, connection: Connection) -> Self:
        """Begin to read."""
        await super().start(connection)
        self.content = cast("aiohttp.StreamReader", _ShallowLines(self.content))
        return self

    async def json(self, **_: Any) -> Any:
        """Read the body as JSON, whatever type it states.

        Raises:
            json.JSONDecodeError: it is none; kopf knows no other error, and would end with it.
        """
        return at_any_depth(_loads, await self.read())

    async def text(self, encoding: str | None = None, errors: str = "replace") -> str:
        """Read the body as text, whatever bytes a proxy's page has."""
        return await super().text(encoding, errors)


class _ShallowLines:
    """A stream whose chunks are whole lines of JSON."""

    def __init__(self, content: aiohttp.StreamReader) -> None:
        self._content = content

    def __getattr__(self, name: str) -> Any:
        return getattr(self._content, name)

    async def iter_chunked(self, size: int) -> AsyncIterator[bytes]:
        parts: list[bytes] = []
        async for chunk in self._content.iter_chunked(size):
            *lines, rest = chunk.split(b"\n")
            for line in lines:
                yield _decodable(b"".join((*parts, line))) + b"\n"
                parts.clear()
            parts.append(rest)


def _loads(body: bytes) -> Any:
    return json.loads(body.decode(errors="replace"))


def _decodable(line: bytes) -> bytes:
    try:
        json.loads(line)
    except RecursionError:
        return shallow(line)
    except ValueError:
        pass  # whoever reads the line says so
    return line
