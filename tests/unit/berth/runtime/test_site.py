"""Pages of a process's own: what of a request is taken in."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from berth.runtime.site import MAX_FIELDS, Site


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        pytest.param(b"A: b\r\n" * (MAX_FIELDS - 1) + b"\r\n", b"200", id="as-many-as-may-be"),
        pytest.param(b"A: b\r\n" * (MAX_FIELDS + 1), b"400", id="too-many-and-no-end"),
    ],
)
async def test_a_head_has_so_many_fields_at_most(fields: bytes, status: bytes) -> None:
    async with listening() as site:
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n" + fields)
        async with asyncio.timeout(30):
            assert (await reader.readline()).split()[1] == status
        writer.close()


async def test_what_is_compressed_stays_so_whoever_sends_it() -> None:
    """600 KB may be 600 MB, which take 0.4 s of the event loop: nobody has shown a token by then."""
    sent = gzip.compress(bytes(1000))
    async with listening() as site:
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        head = f"POST / HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\nContent-Length: {len(sent)}\r\n\r\n"
        writer.write(head.encode() + sent)
        async with asyncio.timeout(30):
            assert (await reader.readuntil(b"\r\n\r\n")).split()[1] == b"200"
            assert await reader.readexactly(len(sent)) == sent
        writer.close()


@asynccontextmanager
async def listening() -> AsyncIterator[Site]:
    """A site whose page answers with what it is sent."""

    async def page(request: web.Request) -> web.Response:
        return web.Response(body=await request.read())

    application = web.Application()
    application.router.add_route("*", "/", page)
    site = Site(application, host="127.0.0.1", port=0)
    await site.start()
    try:
        yield site
    finally:
        await site.stop()
