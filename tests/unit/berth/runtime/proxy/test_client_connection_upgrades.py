"""What comes behind a request that asks for an upgrade which it does not get: it is answered, or the client is told
that it is not, and no client waits for ever."""

from __future__ import annotations

import asyncio
import socket
import struct

import pytest
from aiohttp import web

from berth.runtime.proxy import client_connection
from berth.runtime.proxy.exchange import Sent
from berth.runtime.proxy.server import ProxyServer
from tests.support.kube import until
from tests.support.proxying import Visit, application, get, proxy, read_body, status_of

H2C = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: x")
WEBSOCKET = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: k", "Sec-WebSocket-Version: 13")
NEXT = get("/next")
BODY = b"a=1\r\n\r\nb=2"


def post(*fields: str) -> bytes:
    return get("/", *H2C, *fields, method="POST", last=False)


LENGTH = f"Content-Length: {len(BODY)}"
CHUNKED = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)


async def echo(visit: Visit) -> None:
    while True:
        head = await visit.head()
        body = await read_body(visit, head) if head.startswith(b"POST") else b"hi"
        await visit.say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


@pytest.mark.parametrize(
    ("pieces", "body"),
    [
        pytest.param([get("/", *H2C, last=False) + NEXT], b"hi", id="at once"),
        pytest.param([get("/", *H2C, last=False)[:-3], b"\n\r\n" + NEXT], b"hi", id="the head in two pieces"),
        pytest.param([get("/before", last=False) + get("/", *H2C, last=False) + NEXT], b"hi", id="behind another"),
        pytest.param([post(LENGTH) + BODY + NEXT], BODY, id="behind its body"),
        pytest.param([post(LENGTH), BODY[:3], BODY[3:] + NEXT], BODY, id="behind the rest of its body"),
        pytest.param([post("Transfer-Encoding: chunked") + CHUNKED + NEXT], BODY, id="behind chunks"),
        pytest.param([post("Transfer-Encoding: chunked"), CHUNKED + NEXT], BODY, id="behind later chunks"),
        pytest.param([get("/", *H2C, last=False) + NEXT[:20], NEXT[20:]], b"hi", id="a part of it"),
    ],
)
async def test_what_is_behind_is_answered_or_the_client_is_told_to_ask_again(pieces: list[bytes], body: bytes) -> None:
    async with (
        asyncio.timeout(30),
        application(echo) as app,
        proxy(app.address) as under_test,
        under_test.client() as (reader, writer),
    ):
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            for _ in range(50):  # so that they come one by one
                await asyncio.sleep(0)
        answers = (await reader.read()).split(b"HTTP/1.1 ")[1:]
        assert [status_of(b" " + answer) for answer in answers] == [200] * len(answers)
        assert body in answers[-1] or body in answers[-2]
        assert b"Connection: close" in answers[-1]
        # What is not answered has not been sent on either.
        assert len(app.heads) == len(answers)


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([get("/", *H2C, last=False)], id="without body"),
        pytest.param([post(LENGTH) + BODY], id="with its body"),
        pytest.param([post(LENGTH), BODY], id="before its body"),
        pytest.param([post(LENGTH) + BODY[:5], BODY[5:]], id="with a part of its body"),
    ],
)
async def test_the_connection_stays_where_nothing_is_behind(pieces: list[bytes]) -> None:
    """Clients of the Java runtime ask for an upgrade with each connection."""
    async with (
        asyncio.timeout(30),
        application(echo) as app,
        proxy(app.address) as under_test,
        under_test.client() as (reader, writer),
    ):
        for _ in range(3):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                for _ in range(50):
                    await asyncio.sleep(0)
            head = await reader.readuntil(b"\r\n\r\n")
            assert (status_of(head), b"Connection: close" in head) == (200, False)
            await reader.readexactly(int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0]))
        assert len(app.heads) == 3


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(("Transfer-Encoding: chunked", CHUNKED), id="chunks"),
        pytest.param((LENGTH, BODY), id="a body that looks like the end of a head"),
    ],
)
async def test_the_rest_of_a_body_arrives_where_another_request_came_with_its_head(before: tuple[str, bytes]) -> None:
    field, first = before
    async with (
        asyncio.timeout(30),
        application(echo) as app,
        proxy(app.address) as under_test,
        under_test.client() as (reader, writer),
    ):
        writer.write(get("/", field, method="POST", last=False) + first + post(LENGTH) + BODY[:3])
        while len(app.heads) < 2:
            await asyncio.sleep(0.01)
        writer.write(BODY[3:])
        for _ in range(2):
            head = await reader.readuntil(b"\r\n\r\n")
            assert (status_of(head), b"Connection: close" in head) == (200, False)
            assert await reader.readexactly(len(BODY)) == BODY


LONG = b"x" * 70_000
"""More than is taken in before the application has some of it."""
MEASURED, IN_CHUNKS = f"Content-Length: {len(LONG)}", "Transfer-Encoding: chunked"
LONG_CHUNK = b"%x\r\n%b\r\n0\r\n\r\n" % (len(LONG), LONG)
WAITING = get("/held", last=False)
FIRST = get("/", MEASURED, method="POST", last=False) + LONG


@pytest.mark.parametrize(
    ("sent", "body"),
    [
        pytest.param(FIRST + get("/", *H2C, last=False) + NEXT, b"hi", id="behind a body"),
        pytest.param(FIRST + post(LENGTH) + BODY + NEXT, BODY, id="behind its body and one before"),
        pytest.param(FIRST + post(IN_CHUNKS) + CHUNKED + NEXT, BODY, id="behind its chunks and a body before"),
        pytest.param(post(MEASURED) + LONG + NEXT, LONG, id="behind a body of its own"),
        pytest.param(post(IN_CHUNKS) + LONG_CHUNK + NEXT, LONG, id="behind chunks of its own"),
        pytest.param(FIRST + post(MEASURED) + LONG + NEXT, LONG, id="behind two bodies"),
        pytest.param(get("/", last=False) * 80 + get("/", *H2C, last=False) + NEXT, b"hi", id="behind many requests"),
    ],
)
async def test_what_is_behind_is_answered_or_asked_for_again_where_it_had_to_wait(sent: bytes, body: bytes) -> None:
    """The parser keeps what it was given while a body, or requests, wait to be taken."""
    waits = asyncio.Event()

    async def script(visit: Visit) -> None:
        assert b"/held" in await visit.head()
        await waits.wait()
        await visit.say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        await echo(visit)

    async with (
        asyncio.timeout(30),
        application(script) as app,
        proxy(app.address) as under_test,
        under_test.client() as (reader, writer),
    ):
        writer.write(WAITING + sent)
        while not app.heads:
            await asyncio.sleep(0)
        for _ in range(200):  # so that as much has come as is taken in
            await asyncio.sleep(0)
        waits.set()
        answers = (await reader.read()).split(b"HTTP/1.1 ")[1:]
        assert [status_of(b" " + answer) for answer in answers] == [200] * len(answers)
        assert body in answers[-1] or body in answers[-2]
        assert b"Connection: close" in answers[-1]
        assert len(app.heads) == len(answers)


@pytest.mark.parametrize("size", [3, 300_000], ids=["a short body", "a long body"])
async def test_a_body_behind_a_websocket_that_is_declined_arrives(size: int) -> None:
    body = b"x" * size
    asked = get("/", f"Content-Length: {size}", method="POST") + body
    async with (
        asyncio.timeout(30),
        application(echo) as app,
        proxy(app.address) as under_test,
        under_test.client() as (reader, writer),
    ):
        writer.write(get("/", *WEBSOCKET, last=False) + asked)
        answers = (await reader.read()).split(b"HTTP/1.1 ")[1:]
        assert [status_of(b" " + answer) for answer in answers] == [200, 200]
        assert answers[1].endswith(body)


async def test_a_malformed_body_behind_a_websocket_that_is_declined_is_refused_at_once() -> None:
    async with (
        asyncio.timeout(30),
        application(echo) as app,
        proxy(app.address) as under_test,
        under_test.client() as (reader, writer),
    ):
        asked = get("/", "Transfer-Encoding: chunked", method="POST") + b"3\r\n"
        writer.write(get("/", *WEBSOCKET, last=False) + asked)
        while len(app.heads) < 2:
            await asyncio.sleep(0.01)
        writer.write(b"abcrubbish\r\n")
        assert (await reader.readuntil(b"hi"))[:12] == b"HTTP/1.1 200"
        assert status_of(await reader.readline()) == 400


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param(get("/", *H2C, last=False) + NEXT, 200, id="behind an upgrade that is not given"),
        pytest.param(post("Transfer-Encoding: chunked") + CHUNKED, 200, id="behind its chunks"),
        pytest.param(b"rubbish\r\n\r\n", 400, id="behind no HTTP"),
        pytest.param(get(last=False).removesuffix(b"\r\n"), 431, id="within a head that is too large"),
    ],
)
async def test_who_goes_on_sending_is_answered_all_the_same(sent: bytes, status: int) -> None:
    """More than the kernel keeps: a client that sends before it reads would fail with it, and never see the answer."""
    more = (b"A: " + b"x" * 10_000 + b"\r\n") * 2000
    async with (
        asyncio.timeout(30),
        application(echo) as app,
        proxy(app.address) as under_test,
        under_test.client() as (reader, writer),
    ):
        writer.write(sent + more)
        await writer.drain()
        assert status_of(await reader.readline()) == status
        await reader.read()
        writer.close()
        await until(lambda: under_test.server.connections == 0, what="the end of the connection")


async def test_who_stays_behind_the_last_answer_is_left_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_connection, "LINGER_SECONDS", 0.05)
    async with (
        asyncio.timeout(30),
        application(echo) as app,
        proxy(app.address) as under_test,
        under_test.client() as (reader, writer),
    ):
        writer.write(get("/", *H2C, last=False) + NEXT)
        assert status_of(await reader.read()) == 200
        await until(lambda: under_test.server.connections == 0, what="the end of the connection")


async def test_nothing_is_logged_of_a_client_that_breaks_off_at_its_last_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The kernel knows of the end before the event loop does."""
    client = socket.socket()
    client.setblocking(False)

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        await request.writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        return Sent(200, lasting=False)

    under_test = ProxyServer(handle, host="127.0.0.1", port=0)
    await under_test.start()
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, ("127.0.0.1", under_test.port))
    await loop.sock_sendall(client, get("/", *H2C, last=False) + NEXT)
    await until(lambda: client.fileno() < 0 and under_test.connections == 0, what="the end of the connection")
    await under_test.stop(seconds=0)
    assert caplog.records == []
