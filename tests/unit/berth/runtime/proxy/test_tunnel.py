"""WebSocket and what else follows an upgrade, through a real proxy."""

from __future__ import annotations

import asyncio
import os
import socket

import aiohttp
import pytest
from aiohttp import web

from berth.runtime.proxy import tunnel as proxy_tunnel
from berth.runtime.proxy.upstream import Address
from tests.support.proxying import Visit, answering, application, get, proxy, status_of

ASK = ("Connection: keep-alive, Upgrade", "Upgrade: WebSocket", "Sec-WebSocket-Key: k", "Sec-WebSocket-Version: 13")
SWITCH = (
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: a\r\n\r\n"
)


async def echo(visit: Visit) -> None:
    await visit.head()
    await visit.say(SWITCH + b"first")
    while data := await visit.reader.read(65_536):
        await visit.say(data)


async def test_bytes_go_both_ways_as_they_are() -> None:
    async with application(echo) as app, proxy(app.address) as under_test, under_test.client() as (reader, writer):
        writer.write(get("/", *ASK, last=False) + b"before the answer")
        head = await reader.readuntil(b"\r\n\r\n")
        assert status_of(head) == 101
        assert b"Sec-WebSocket-Accept: a" in head
        assert head.count(b"pgrade: websocket") == 1
        assert await reader.readexactly(5) == b"first"
        assert await reader.readexactly(17) == b"before the answer"
        sent = os.urandom(2**21)
        writer.write(sent)
        assert await reader.readexactly(len(sent)) == sent
        assert b"Connection: Upgrade" in app.heads[0]


@pytest.mark.parametrize("who", ["client", "application"])
async def test_whoever_ends_it_ends_it_for_the_other(who: str) -> None:
    ended = asyncio.Event()

    async def script(visit: Visit) -> None:
        await visit.head()
        await visit.say(SWITCH)
        if who == "client":
            await visit.reader.read()
            ended.set()

    async with application(script) as app, proxy(app.address) as under_test:
        async with under_test.client() as (reader, writer):
            writer.write(get("/", *ASK, last=False))
            await reader.readuntil(b"\r\n\r\n")
            if who == "application":
                assert await reader.read() == b""
                ended.set()
        async with asyncio.timeout(60):
            await ended.wait()


@pytest.mark.parametrize("chatty", [False, True])
async def test_what_a_client_sent_before_it_left_arrives(chatty: bool) -> None:
    """However slowly the application takes it, and whatever it says meanwhile that nobody reads any more."""
    sent, got = os.urandom(250_000), b""
    left, done = asyncio.Event(), asyncio.Event()

    async def script(visit: Visit) -> None:
        nonlocal got
        await visit.head()
        visit.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await visit.say(SWITCH)
        await left.wait()
        if chatty:
            await visit.say(b"x" * 1000)
        visit.writer.transport.resume_reading()  # type: ignore[attr-defined]
        got = await visit.reader.read()
        done.set()

    async with application(script) as app, proxy(app.address) as under_test:
        async with under_test.client() as (reader, writer):
            writer.write(get("/", *ASK, last=False))
            await reader.readuntil(b"\r\n\r\n")
            [connection] = under_test.pool._all
            assert connection._transport is not None
            connection._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            writer.write(sent)
            await writer.drain()
            assert under_test.server._server is not None
            [client] = under_test.server._server.connections
        async with asyncio.timeout(60):
            while client.transport is not None:
                await asyncio.sleep(0.01)
            left.set()
            await done.wait()
    assert got == sent


async def test_an_application_that_stays_when_its_client_has_left_is_left_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(proxy_tunnel, "LAST_SECONDS", 0.1)
    ended = asyncio.Event()

    async def script(visit: Visit) -> None:
        await visit.head()
        await visit.say(SWITCH)
        assert await visit.reader.read() == b""
        try:
            while True:
                await visit.say(b"still here")
                await asyncio.sleep(0.01)
        except ConnectionError:
            ended.set()

    async with application(script) as app, proxy(app.address) as under_test:
        async with under_test.client() as (reader, writer):
            writer.write(get("/", *ASK, last=False))
            await reader.readuntil(b"\r\n\r\n")
        async with asyncio.timeout(60):
            await ended.wait()


async def test_a_side_that_does_not_read_holds_the_other_up() -> None:
    sent = 0

    async def script(visit: Visit) -> None:
        nonlocal sent
        await visit.head()
        await visit.say(SWITCH)
        while True:
            await visit.say(b"x" * 65_536)
            sent += 65_536

    async with application(script) as app, proxy(app.address) as under_test, under_test.client() as (reader, writer):
        writer.write(get("/", *ASK, last=False))
        await reader.readuntil(b"\r\n\r\n")
        before = -1
        while before != sent:
            before = sent
            await asyncio.sleep(0.2)
        assert sent < 2**25
        assert await reader.readexactly(sent)


async def test_an_upgrade_that_is_declined_is_an_ordinary_answer() -> None:
    refusal = b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"
    async with application(answering(refusal)) as app, proxy(app.address) as under_test:
        assert status_of(await under_test.ask(get("/", *ASK))) == 403


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: x"], id="h2c"),
        pytest.param(["Connection: close", "Upgrade: websocket"], id="not named in Connection"),
        pytest.param(["Connection: Upgrade", "Upgrade: websocket, h2c"], id="several"),
    ],
)
async def test_other_upgrades_are_not_asked_for(fields: list[str]) -> None:
    ok = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    async with (
        application(answering(ok)) as app,
        proxy(app.address) as under_test,
        under_test.client() as (reader, writer),
    ):
        writer.write(get("/", *fields, last=False))
        assert status_of(await reader.readuntil(b"\r\n\r\n")) == 200
        assert b"pgrade" not in app.heads[0]
        assert b"HTTP2-Settings" not in app.heads[0]


async def test_a_real_WebSocket_with_compression_and_pings() -> None:  # noqa: N802
    async def handle(request: web.Request) -> web.WebSocketResponse:
        talk = web.WebSocketResponse(compress=True)
        await talk.prepare(request)
        async for message in talk:
            await talk.send_str(message.data * 2)
        return talk

    app = web.Application()
    app.router.add_get("/talk", handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        async with proxy(Address(host, port)) as under_test, aiohttp.ClientSession() as session:
            url = f"http://127.0.0.1:{under_test.server.port}/talk"
            async with session.ws_connect(url, compress=15, heartbeat=5) as client:
                for text in ("a", "b" * 100_000):
                    await client.send_str(text)
                    assert await client.receive_str() == text * 2
                await client.ping()
                await client.close()
                assert client.close_code == 1000
    finally:
        await runner.cleanup()
