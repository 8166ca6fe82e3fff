"""Clients that hold much are cut off before memory is used up, and others are served all the same.

Who is chosen is tested in test_memory.py, a real process with a limit in tests/integration/test_meter_memory.py.
"""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from berth.runtime.proxy.memory import CONNECTION_BYTES, LEAST_BYTES, LOOK_BYTES
from tests.support.kube import until
from tests.support.proxying import Visit, application, get, proxy, status_of

LIMIT = 1_000_000_000
SMALL = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
SWITCHED = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
WEBSOCKET = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: k", "Sec-WebSocket-Version: 13")
FIELD = "A: " + "x" * 10_000
HEAD = get("/", *[FIELD] * 4, last=False)


async def script(visit: Visit) -> None:
    while True:
        head = await visit.head()
        if b"/long" in head:
            await visit.say(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n" + b"x" * 100_000_000)
        elif b"websocket" in head:
            await visit.say(SWITCHED)
            await asyncio.Event().wait()
        elif b"/held" in head:
            await asyncio.Event().wait()
        else:
            await visit.say(SMALL)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(HEAD.removesuffix(b"\r\n"), id="a head that does not end"),
        pytest.param(HEAD.replace(b"GET /", b"GET /held"), id="a large head that is not answered"),
        pytest.param(get("/held", last=False) + HEAD * 3, id="requests that wait for the one before"),
        pytest.param(get("/held", last=False) + get("/", last=False) * 30, id="many small requests that wait"),
        pytest.param(
            get("/held", last=False) + get("/", *["A:"] * 80, last=False), id="many small fields of one that waits"
        ),
        pytest.param(get("/held", last=False) + get("/" + "x" * 10_000, last=False), id="a long path that waits"),
        pytest.param(
            get("/held", "Content-Length: 9000000", method="POST", last=False) + b"x" * 9_000_000, id="a body not taken"
        ),
        pytest.param(get("/long", last=False), id="an answer that is not read"),
        pytest.param(
            get("/", *WEBSOCKET, last=False) + b"x" * 9_000_000, id="a WebSocket whose application does not read"
        ),
    ],
)
async def test_who_holds_much_is_cut_and_others_are_served(sent: bytes) -> None:
    used = 0
    async with (
        asyncio.timeout(60),
        application(script) as app,
        proxy(app.address, memory=(LIMIT, lambda: used)) as under_test,
        under_test.client() as (_, holding),
        under_test.client() as (reader, writer),
    ):
        writer.write(get(last=False))
        assert status_of(await reader.readuntil(b"hi")) == 200
        server = under_test.server
        holding.transport.pause_reading()  # type: ignore[attr-defined]  # of all streams
        holding.write(sent)
        await until(lambda: max(each.held for each in server._connections()) > LEAST_BYTES, what="much that is held")
        used = LIMIT
        await until(lambda: server.connections == 1, what="the end of one connection")
        writer.write(get(last=False))
        assert status_of(await reader.readuntil(b"hi")) == 200
        await until(lambda: len(under_test.pool._all) <= 1, what="the end of what was asked for it")


@pytest.mark.parametrize(
    "given_up", [pytest.param(False, id="it was his last"), pytest.param(True, id="no request has come for long")]
)
async def test_who_does_not_read_the_rest_of_an_answer_is_cut_behind_it_too(given_up: bool) -> None:
    used = 0
    async with (
        asyncio.timeout(60),
        application(script) as app,
        proxy(app.address, memory=(LIMIT, lambda: used)) as under_test,
        under_test.client() as (reader, writer),
    ):
        writer.write(get(last=False))
        assert status_of(await reader.readuntil(b"hi")) == 200
        (connection,) = under_test.server._connections()
        transport = connection.transport
        assert isinstance(transport, asyncio.Transport)
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # of all streams
        transport.write(b"x" * 100_000_000)
        # What aiohttp does.
        if given_up:
            connection.force_close()
        else:
            transport.close()
        used = LIMIT
        await until(lambda: under_test.server.connections == 0, what="the end of the connection")


async def test_what_is_much_is_not_even_taken_while_memory_is_short() -> None:
    used = 0
    async with (
        asyncio.timeout(60),
        application(script) as app,
        proxy(app.address, memory=(LIMIT, lambda: used)) as under_test,
        under_test.client() as (reader, writer),
    ):
        used = LIMIT
        await until(lambda: under_test.server._keeper.short, what="a look")
        writer.write(HEAD)
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        assert app.heads == []


async def test_thousands_that_connect_at_once_have_memory_looked_at() -> None:
    used = 0
    async with (
        asyncio.timeout(60),
        application(script) as app,
        proxy(app.address, memory=(LIMIT, lambda: used)) as under_test,
        contextlib.AsyncExitStack() as stack,
    ):
        server, used = under_test.server, LIMIT
        assert server._keeping is not None
        server._keeping.cancel()  # which looks now and then, and not before the event loop is round
        for _ in range(LOOK_BYTES // CONNECTION_BYTES):
            await stack.enter_async_context(under_test.client())
        await until(lambda: server._keeper.short, what="a look")
