"""As many connections of clients as there may be: who asks for nothing makes room, and nobody else has to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from berth.runtime.proxy.server import ProxyServer
from tests.support.proxying import get, status_of

MOST = 3
Client = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def full(*sent: bytes) -> AsyncIterator[tuple[ProxyServer, list[Client]]]:
    """A server with as many clients as it lets in, who have sent this; what is held is never answered."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/held":
            await asyncio.Event().wait()
        return web.Response(text="ok")

    server = ProxyServer(handle, host="127.0.0.1", port=0, most_connections=MOST)
    await server.start()
    clients = []
    try:
        for data in sent:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            clients.append((reader, writer))
            writer.write(data)
            if data.endswith(b"\r\n\r\n") and b"/held" not in data:
                await reader.readuntil(b"ok")
        async with asyncio.timeout(10):
            while server.connections < MOST or len(server._busy) < sum(b"/held" in data for data in sent):
                await asyncio.sleep(0.01)
        yield server, clients
    finally:
        for _, writer in clients:
            writer.close()
        await server.stop(seconds=0)


HELD = get("/held", last=False)


@pytest.mark.parametrize(
    "idle",
    [
        pytest.param(b"", id="has asked for nothing"),
        pytest.param(get(last=False), id="was answered"),
        pytest.param(get(last=False)[:-2], id="half a head"),
    ],
)
async def test_who_asks_for_nothing_makes_room_the_oldest_first(idle: bytes) -> None:
    async with full(HELD, idle, idle) as (server, clients), asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(get())
        assert status_of(await reader.read()) == 200
        writer.close()
        assert await clients[1][0].read() == b""
        assert [connected.at_eof() for connected, _ in clients] == [False, True, False]


async def test_who_waits_for_an_answer_is_served_and_one_more_is_closed_at_once() -> None:
    async with full(*[HELD] * MOST) as (server, clients), asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        assert await reader.read() == b""
        writer.close()
        assert server.connections == MOST
        assert not any(connected.at_eof() for connected, _ in clients)


async def test_those_who_hold_all_connections_lock_nobody_out() -> None:
    async with full(*[b""] * MOST) as (server, _), asyncio.timeout(10):
        for _ in range(5 * MOST):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(get(last=False))
            assert status_of(await reader.readuntil(b"ok")) == 200
            assert server.connections <= MOST + 1
            writer.close()
