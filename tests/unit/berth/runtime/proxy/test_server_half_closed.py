"""A client that ends its side of a connection counts as one that has left: nothing of it stays, and nobody waits."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.kube import until
from tests.support.proxying import Visit, application, get, proxy, status_of

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
POST = get("/held", "Content-Length: 5", method="POST", last=False)


@pytest.mark.parametrize(
    ("sent", "answered", "heads"),
    [
        pytest.param(b"", 0, 0, id="before its first request"),
        pytest.param(b"GET / HT", 0, 0, id="within a head"),
        pytest.param(get(last=False), 1, 1, id="after its answer"),
        pytest.param(get("/held", last=False), 0, 1, id="while it is answered"),
        pytest.param(get(last=False) + get("/held", last=False), 1, 2, id="with another behind"),
        pytest.param(POST + b"abcde", 0, 1, id="after its body"),
        pytest.param(POST + b"abc", 0, 1, id="within its body"),
    ],
)
async def test_a_client_that_ends_its_side(sent: bytes, answered: int, heads: int) -> None:
    left = asyncio.Event()

    async def script(visit: Visit) -> None:
        while b"/held" not in await visit.head():
            await visit.say(OK)
        await visit.reader.read()
        left.set()

    async with (
        asyncio.timeout(30),
        application(script) as app,
        proxy(app.address) as under_test,
        under_test.client() as (reader, writer),
    ):
        writer.write(sent)
        for _ in range(answered):
            assert status_of(await reader.readuntil(b"hi")) == 200
        await until(lambda: len(app.heads) == heads, what="requests")
        writer.write_eof()
        assert await reader.read() == b""
        await until(lambda: under_test.server.connections == 0, what="the end of the connection")
        if heads > answered:
            await left.wait()
            assert under_test.done[-1].failure == "client"
        assert under_test.failures == []
