"""Answers of the API server for kopf, which decodes them itself: of each object only what says which one it is.

Handlers need no more, and kopf keeps every object that it lists as dicts for seconds: a hundred of a megabyte were a
gigabyte, and held the process up until its Lease was lost. Something nested too deeply to be decoded, and anybody may
create that, would end kopf whenever it lists or watches the kind; how deep that is depends on the version of Python, so
that what kopf gets whole is cut in any case.

kopf waits as long as it is asked to after 429, were it days, and ends where it is asked to wait until a date.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any, Self, cast

import aiohttp
import msgspec
import structlog
from aiohttp.connector import Connection
from multidict import CIMultiDict, CIMultiDictProxy

from berth.kube.decoding import at_any_depth, shallow
from berth.kube.errors import retry_after_seconds
from berth.kube.http_answer import LARGEST_BODY
from berth.kube.lines import Lines
from berth.kube.reflector import CHANGES
from berth.kube.transport import read_body

log = structlog.get_logger(__name__)


class _Metadata(msgspec.Struct, rename="camel", omit_defaults=True):
    """The part of metav1.ObjectMeta that says which object it is, in which version."""

    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None


class _Object(msgspec.Struct, rename="camel", omit_defaults=True):
    """An object, or a bookmark."""

    metadata: _Metadata | None = None
    api_version: str | None = None
    kind: str | None = None

    @property
    def whole(self) -> bool:
        """Whether it says which object it is, in which version; of any other kopf ends."""
        return self.metadata is not None and bool(self.metadata.name and self.metadata.resource_version)


class _ListMetadata(msgspec.Struct, rename="camel", omit_defaults=True):
    """metav1.ListMeta."""

    resource_version: str | None = None
    continue_: str | None = msgspec.field(name="continue", default=None)


class _List(msgspec.Struct, rename="camel", omit_defaults=True):
    """Objects, or a page of them."""

    metadata: _ListMetadata
    items: list[msgspec.Raw] | None
    api_version: str | None = None
    kind: str | None = None


class _Error(msgspec.Struct):
    """What kopf reads of a metav1.Status."""

    code: int = 0


class _ErrorEvent(msgspec.Struct):
    """The last line of a watch that the API server gives up."""

    object: _Error


class _Event(msgspec.Struct):
    """A line of a watch."""

    type: str
    object: msgspec.Raw


_LIST = msgspec.json.Decoder(_List)
_EVENT = msgspec.json.Decoder(_Event)
_ERROR_EVENT = msgspec.json.Decoder(_ErrorEvent)
_OBJECT = msgspec.json.Decoder(_Object)


class MetadataResponse(aiohttp.ClientResponse):
    """An answer that kopf can decode, be it a list, anything else as a whole, or a stream of lines."""

    async def start(self, connection: Connection) -> Self:
        """Begin to read."""
        await super().start(connection)
        self.content = cast("aiohttp.StreamReader", _MetadataLines(self.content))
        return self

    @property
    def headers(self) -> CIMultiDictProxy[str]:
        """The headers, of a refusal with a wait that is bounded and a number; its body's wait counts only without."""
        headers = CIMultiDict(super().headers)
        if self.status == HTTPStatus.TOO_MANY_REQUESTS:
            headers["Retry-After"] = f"{retry_after_seconds(headers.get('Retry-After')) or 0:g}"
        return CIMultiDictProxy(headers)

    async def json(self, **_: Any) -> Any:
        """Read the body as JSON, whatever type it states.

        Raises:
            json.JSONDecodeError: it is none; with any other error kopf ends.
            TooLargeError: it is larger than any; kopf is to end.
        """
        return at_any_depth(_read, await self.read())

    async def text(self, encoding: str | None = None, errors: str = "replace") -> str:
        """Read the body as text, whatever bytes a proxy's page has."""
        return await super().text(encoding, errors)


class _MetadataLines:
    """A stream whose chunks are whole lines of JSON; neither it as a whole nor one of them goes on without end."""

    def __init__(self, content: aiohttp.StreamReader) -> None:
        self._content = content

    def __getattr__(self, name: str) -> Any:
        return getattr(self._content, name)

    async def read(self) -> bytes:
        return await read_body(self._content, LARGEST_BODY)

    async def iter_chunked(self, size: int) -> AsyncIterator[bytes]:
        lines = Lines()
        async for chunk in self._content.iter_chunked(size):
            for line in lines.feed(chunk):
                yield at_any_depth(_reduced, line) + b"\n"


def _read(body: bytes) -> Any:
    try:
        page = _LIST.decode(body)
        items = [item for item in map(_readable, page.items or ()) if item is not None and item.whole]
        if left_out := len(page.items or ()) - len(items):
            log.error("objects left out, they cannot be read", kind=page.kind, objects=left_out)
        page.items = None
        return {**msgspec.to_builtins(page), "items": msgspec.to_builtins(items)}
    except ValueError:  # no list of objects, no JSON or no UTF-8
        return json.loads(shallow(body).decode(errors="replace"))


def _readable(item: msgspec.Raw) -> _Object | None:
    """Return which object it is; None of what is none."""
    try:
        return _OBJECT.decode(item)
    except ValueError:
        return None


def _reduced(line: bytes) -> bytes:
    try:
        event = _EVENT.decode(line)
        if event.type != "ERROR":
            item = _readable(event.object)
            odd = item is None or (event.type in CHANGES and not item.whole)
            return b"" if odd else msgspec.json.encode({"type": event.type, "object": item})
        code = _ERROR_EVENT.decode(line).object.code
    except ValueError:  # whoever reads the line says so
        return shallow(line)
    # Kopf lists again after 410, and ends with any other: every kind would be listed for it. Left out, it is the end of
    # a watch like others, and the next goes on where it was.
    return shallow(line) if code in (0, HTTPStatus.GONE) else b""
