"""As many connections of clients as there may be: who asks for nothing makes room, and nobody else has to."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from berth.runtime.proxy.server import OTHER_FILES, ProxyServer
from tests.support.proxying import get, status_of

MOST = 3
Client = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def full(*sent: bytes, most: int = MOST) -> AsyncIterator[tuple[ProxyServer, list[Client]]]:
    """A server with as many clients as it lets in, who have sent this; what is held is never answered."""

    held = 0

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal held
        if request.path == "/held":
            held += 1
            await asyncio.Event().wait()
        return web.Response(text="ok")

    server = ProxyServer(handle, host="127.0.0.1", port=0, most_connections=most)
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
            while server.connections < MOST or held < sum(b"/held" in data for data in sent):
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
async def test_who_asks_for_nothing_makes_room_who_has_waited_longest_first(idle: bytes) -> None:
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


async def test_users_who_ask_time_and_again_stay_however_many_come_who_do_not() -> None:
    async with full(*[get(last=False)] * MOST) as (server, clients), asyncio.timeout(10):
        reader, writer = clients[0]
        others = []
        for _ in range(5 * MOST):
            writer.write(get(last=False))
            assert status_of(await reader.readuntil(b"ok")) == 200
            others.append(await asyncio.open_connection("127.0.0.1", server.port))
            others[-1][1].write(b"G")
        for _, other in others:
            other.close()


async def test_whose_request_comes_as_one_more_connects_is_answered() -> None:
    """Both within one turn of the event loop: the request is read by then, and its answer not begun."""
    async with full(*[get(last=False)] * MOST) as (server, clients), asyncio.timeout(10):
        reader, writer = clients[0]
        writer.write(get())
        with socket.create_connection(("127.0.0.1", server.port)) as one_more:
            assert status_of(await reader.read()) == 200
            assert await clients[1][0].read() == b""
            one_more.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(one_more, get())
            assert status_of(await loop.sock_recv(one_more, 1000)) == 200


async def test_whose_request_is_there_and_not_read_yet_is_answered() -> None:
    async with full(*[get(last=False)] * MOST) as (server, clients), asyncio.timeout(10):
        assert server._server is not None
        (reader, writer), make = clients[0], server._server.make

        def make_just_then() -> bool:
            writer.write(get())
            return make()

        server._server.make = make_just_then  # type: ignore[method-assign]
        _, one_more = await asyncio.open_connection("127.0.0.1", server.port)
        assert status_of(await reader.read()) == 200
        assert await clients[1][0].read() == b""
        one_more.close()


async def test_who_was_answered_before_all_of_the_request_was_sent_may_read_the_answer() -> None:
    """What comes behind the end of a connection resets it, and takes away what was not read."""
    begun = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n"
    async with full(begun, get(last=False), get(last=False)) as (server, clients), asyncio.timeout(10):
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        assert await clients[1][0].read() == b""
        assert not clients[0][0].at_eof()
        writer.close()


async def test_there_are_as_many_connections_as_there_may_be_files_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is none for one more client nobody can be let in, whoever has them."""
    files = OTHER_FILES + 2 * MOST
    monkeypatch.setattr(resource, "getrlimit", lambda _kind: (files, files))
    async with full(*[b""] * MOST, most=10 * MOST) as (server, clients), asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(get())
        assert status_of(await reader.read()) == 200
        writer.close()
        assert await clients[0][0].read() == b""
