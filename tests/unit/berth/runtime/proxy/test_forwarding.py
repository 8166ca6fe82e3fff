"""Requests through a real proxy to applications that answer well: both ways, whole and streamed."""

from __future__ import annotations

import asyncio

import pytest

from berth.runtime.proxy.reading import BUFFERED_BYTES
from tests.support.proxying import Visit, answering, application, body_of, get, proxy, read_body, status_of

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


@pytest.mark.parametrize(
    ("asked", "answer", "expected"),
    [
        pytest.param(get(), OK, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi", id="measured"),
        pytest.param(
            get(),
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
            id="in chunks",
        ),
        pytest.param(
            get(method="HEAD"),
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n",
            id="HEAD keeps the length",
        ),
        pytest.param(
            get(),
            b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n",
            b"HTTP/1.1 304 Not Modified\r\nETag: x\r\nConnection: close\r\n\r\n",
            id="304",
        ),
        pytest.param(
            get(),
            b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK,
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi",
            id="interim answers end here",
        ),
        pytest.param(
            get(),
            b"HTTP/1.1 200 \r\nContent-Length: 0\r\nX: \xe9\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\r\n",
            b"HTTP/1.1 200 \r\nX: \xe9\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 0\r\n"
            b"Connection: close\r\n\r\n",
            id="fields and reason as they came",
        ),
        pytest.param(
            get(),
            b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
            b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
            id="204 has no length",
        ),
        pytest.param(
            b"GET / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n",
            OK,
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi",
            id="a connection of HTTP/1.0 is not kept",
        ),
        pytest.param(
            b"GET / HTTP/1.0\r\nHost: h\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhi",
            id="a client of HTTP/1.0 gets no chunks",
        ),
    ],
)
async def test_answers_come_back(asked: bytes, answer: bytes, expected: bytes) -> None:
    async with application(answering(answer)) as app, proxy(app.address) as under_test:
        assert await under_test.ask(asked) == expected
        assert under_test.done[0].failure == ""


async def test_a_body_that_ends_with_the_connection_comes_in_chunks() -> None:
    async def script(visit: Visit) -> None:
        await visit.head()
        await visit.say(b"HTTP/1.1 200 OK\r\n\r\nabc")

    async with application(script) as app, proxy(app.address) as under_test:
        assert body_of(await under_test.ask(get())) == b"3\r\nabc\r\n0\r\n\r\n"


async def test_requests_share_connections_both_ways() -> None:
    async with (
        application(answering(OK)) as app,
        proxy(app.address) as under_test,
        under_test.client() as (reader, writer),
    ):
        for _ in range(3):
            writer.write(get(last=False))
            assert await reader.readuntil(b"hi") == OK
        writer.write(get(last=False) * 2)
        assert await reader.readexactly(2 * len(OK)) == OK * 2, "pipelined ones in order"
        assert app.visits == 1


BODIES = [
    pytest.param("Content-Length: 5", b"hello", b"hello", id="measured"),
    pytest.param("Transfer-Encoding: chunked", b"2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n", b"hello", id="in chunks"),
    pytest.param("Content-Length: 0", b"", b"", id="empty"),
]


@pytest.mark.parametrize("method", ["POST", "PUT", "GET", "DELETE"])
@pytest.mark.parametrize(("framing", "sent", "whole"), BODIES)
async def test_bodies_go_to_the_application(method: str, framing: str, sent: bytes, whole: bytes) -> None:
    got: list[bytes] = []

    async def script(visit: Visit) -> None:
        got.append(await read_body(visit, await visit.head()))
        await visit.say(OK)

    async with application(script) as app, proxy(app.address) as under_test:
        assert body_of(await under_test.ask(get("/", framing, method=method) + sent)) == b"hi"
    assert got == [whole]


async def test_both_ways_at_once_without_waiting_for_an_end() -> None:
    async def script(visit: Visit) -> None:
        await visit.head()
        await visit.say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(3):
            await visit.reader.readexactly(len(b"1\r\n1\r\n"))
            await visit.say(b"1\r\n2\r\n")
        await visit.reader.readexactly(5)
        await visit.say(b"0\r\n\r\n")

    async with application(script) as app, proxy(app.address) as under_test, under_test.client() as (reader, writer):
        writer.write(get("/", "Transfer-Encoding: chunked", method="POST", last=False) + b"1\r\n1\r\n")
        await reader.readuntil(b"\r\n\r\n")
        for number in range(3):
            assert await reader.readexactly(6) == b"1\r\n2\r\n"
            writer.write(b"1\r\n1\r\n" if number < 2 else b"0\r\n\r\n")
        assert await reader.readexactly(5) == b"0\r\n\r\n"


async def test_an_answer_of_megabytes_waits_for_a_slow_client() -> None:
    size, sent = 64 * 2**20, 0

    async def script(visit: Visit) -> None:
        nonlocal sent
        await visit.head()
        await visit.say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        while sent < size:
            await visit.say(b"x" * 2**16)
            sent += 2**16

    async with application(script) as app, proxy(app.address) as under_test, under_test.client() as (reader, writer):
        writer.write(get())
        await reader.readuntil(b"\r\n\r\n")
        before = -1
        while before != sent:  # until nobody has room for more
            before = sent
            await asyncio.sleep(0.2)
        assert sent < size / 2, "the rest is still with the application"
        assert len(await reader.readexactly(size)) == size


async def test_the_application_says_whether_it_wants_the_body() -> None:
    async def script(visit: Visit) -> None:
        head = await visit.head()
        assert b"Expect: 100-continue" in head
        await visit.say(b"HTTP/1.1 100 Continue\r\n\r\n")
        await visit.reader.readexactly(2)
        await visit.say(OK)

    asked = get("/", "Content-Length: 2", "Expect: 100-continue", method="POST")
    async with application(script) as app, proxy(app.address) as under_test, under_test.client() as (reader, writer):
        writer.write(asked)
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"ab")
        assert status_of(await reader.read()) == 200


async def test_a_refusal_before_the_body_comes_at_once() -> None:
    refusal = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"
    asked = get("/", "Content-Length: 1000000", "Expect: 100-continue", method="PUT", last=False)
    async with application(answering(refusal)) as app, proxy(app.address) as under_test:
        answer = await under_test.ask(asked)
    assert status_of(answer) == 413
    assert b"Connection: close" in answer, "what the client sends now is not read"


async def test_no_request_goes_where_the_body_of_another_is_awaited() -> None:
    async def script(visit: Visit) -> None:
        while True:
            head = await visit.head()
            if b"Expect:" not in head:
                await visit.say(OK)
            else:
                await visit.say(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
                await visit.reader.readexactly(40)  # what RFC 9110, 10.1.1 has a server do that keeps the connection

    refused = get("/", "Content-Length: 40", "Expect: 100-continue", method="POST", last=False)
    async with application(script) as app, proxy(app.address) as under_test:
        assert status_of(await under_test.ask(refused)) == 401
        assert status_of(await under_test.ask(get("/of-somebody-else"))) == 200
        assert app.heads[1].startswith(b"GET /of-somebody-else "), "not a piece of it, behind what passed for a body"
        assert app.visits == 2


async def test_a_client_that_knows_no_interim_answers_gets_none() -> None:
    async def script(visit: Visit) -> None:
        await visit.head()
        await visit.reader.readexactly(2)
        await visit.say(OK)

    asked = b"POST / HTTP/1.0\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\nab"
    async with application(script) as app, proxy(app.address) as under_test:
        assert status_of(await under_test.ask(asked)) == 200


async def test_a_client_that_does_not_read_takes_little_memory() -> None:
    async def script(visit: Visit) -> None:
        await visit.head()
        await visit.say(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        while True:
            await visit.say(b"x" * 2**20)

    async with application(script) as app, proxy(app.address) as under_test, under_test.client() as (_, writer):
        writer.write(get())
        async with asyncio.timeout(60):
            while not all(each._paused for each in under_test.pool._all) or not under_test.pool._all:
                await asyncio.sleep(0.01)
            [inwards] = under_test.pool._all
            assert under_test.server._server is not None
            [client] = under_test.server._server.connections
            assert client.transport is not None
            while not client._paused or not inwards._paused:
                await asyncio.sleep(0.01)
        held = inwards._waiting + client.transport.get_write_buffer_size()
        # On each side what may wait before it pauses, 64 KiB, and what then comes on top: one read inwards, and to the
        # client all that had come inwards, which is twice as much.
        assert held <= 5 * BUFFERED_BYTES, "of the answer, beside what the kernel keeps"
