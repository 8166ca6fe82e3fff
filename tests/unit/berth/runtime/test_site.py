"""Pages of a process's own: what of a request is taken in."""

from __future__ import annotations

import asyncio

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
    async def page(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    application = web.Application()
    application.router.add_get("/", page)
    site = Site(application, host="127.0.0.1", port=0)
    await site.start()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n" + fields)
        async with asyncio.timeout(30):
            assert (await reader.readline()).split()[1] == status
        writer.close()
    finally:
        await site.stop()
