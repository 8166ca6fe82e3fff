"""Requests that a client sends before the ones before are answered."""

from __future__ import annotations

import asyncio

import pytest

from berth.runtime.proxy.client_connection import MAX_FIELDS
from tests.support.proxying import Visit, application, get, proxy, read_body

COUNT = 100
READ_AHEAD = 3
"""The last of them may be one whose body is not all there."""


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(lambda number: get(f"/{number}", last=False), id="GET"),
        pytest.param(
            lambda number: get(f"/{number}", "Content-Length: 5", method="PUT", last=False) + b"hello", id="with a body"
        ),
        pytest.param(
            lambda number: get(f"/{number}", *["A: b"] * (MAX_FIELDS - 10), last=False), id="with as many fields"
        ),
    ],
)
async def test_few_are_read_ahead_and_all_are_answered_in_their_order(asked: object) -> None:
    """Reading them takes as long as answering some: others would wait until all of all connections are read."""
    assert callable(asked)
    held = asyncio.Event()

    async def script(visit: Visit) -> None:
        while True:
            head = await visit.head()
            if head.startswith(b"PUT"):
                await read_body(visit, head)
            if head.split()[1] == b"/0":
                await held.wait()
            path = head.split()[1]
            await visit.say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(path), path))

    async with (
        asyncio.timeout(60),
        application(script) as app,
        proxy(app.address) as under_test,
        under_test.client() as (reader, writer),
        under_test.client() as (other_reader, other),
    ):
        writer.write(b"".join(asked(number) for number in range(COUNT)))
        while not app.heads:
            await asyncio.sleep(0.01)
        other.write(get("/other", last=False))
        await other_reader.readuntil(b"/other")
        waiting = [len(connection._messages) for connection in under_test.server._connections()]
        assert 0 < max(waiting) <= READ_AHEAD
        held.set()
        for number in range(COUNT):
            await reader.readuntil(b"\r\n\r\n")
            assert await reader.readexactly(len(f"/{number}")) == f"/{number}".encode()
