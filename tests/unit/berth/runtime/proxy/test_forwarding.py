"""Requests through a real proxy to applications that answer well, badly, slowly or not at all."""

from __future__ import annotations

import asyncio
import socket

import pytest

from berth.runtime.proxy import body
from berth.runtime.proxy.body import REMEMBERED_BYTES
from berth.runtime.proxy.upstream import Address
from tests.support.proxying import Script, Visit, answering, application, body_of, get, proxy, status_of

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


async def read_body(visit: Visit, head: bytes) -> bytes:
    if b"Content-Length: " in head:
        return await visit.reader.readexactly(int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0]))
    whole = b""
    while size := int((await visit.reader.readline()).split(b";")[0], 16):
        whole += await visit.reader.readexactly(size)
        await visit.reader.readline()
    await visit.reader.readline()
    return whole


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


def cut(answer: bytes) -> Script:
    """Answers with some bytes and resets the connection."""

    async def script(visit: Visit) -> None:
        await visit.head()
        await visit.say(answer)
        visit.reset()

    return script


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", id="measured"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", id="in chunks"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n", id="a lie in a chunk"),
    ],
)
async def test_an_answer_that_is_cut_is_cut_for_the_client(answer: bytes) -> None:
    async def script(visit: Visit) -> None:
        await visit.head()
        await visit.say(answer)
        await visit.reader.read(1)  # until the proxy has passed it on: the client says so by leaving

    async with application(script) as app, proxy(app.address, app.address) as under_test:
        async with under_test.client() as (reader, writer):
            writer.write(get())
            await reader.readuntil(b"abc")
            for connection in list(under_test.pool._all):
                connection.abort()
            with pytest.raises(ConnectionResetError):
                await reader.read()
        assert app.visits == 1, "no second attempt once the client has a byte"


NOBODY = "nobody listens"


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "POST", "PATCH"])
async def test_what_was_never_sent_goes_elsewhere_whatever_it_is(method: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        nobody = Address("127.0.0.1", held.getsockname()[1])
    async with application(answering(OK)) as app, proxy(nobody, app.address) as under_test:
        assert status_of(await under_test.ask(get(method=method))) == 200
        assert under_test.failures == ["connect"]
        assert under_test.done[0].address == app.address


BROKEN = [
    pytest.param(cut(b""), id="reset"),
    pytest.param(cut(b"HTTP/1.1 200 OK\r\nContent-"), id="reset within the head"),
    pytest.param(answering(b"rubbish\r\n\r\n"), id="rubbish"),
    pytest.param(answering(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"), id="a lie about the length"),
    pytest.param(answering(b"HTTP/1.1 200 OK\r\nA: " + b"x" * 10**6), id="a head without end"),
    pytest.param(
        answering(b"HTTP/1.1 101 Switch\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"), id="101 unasked"
    ),
]


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize(("method", "status"), [("GET", 200), ("DELETE", 200), ("POST", 502), ("PATCH", 502)])
async def test_a_second_attempt_only_where_it_does_no_harm(broken: Script, method: str, status: int) -> None:
    async with (
        application(broken) as bad,
        application(answering(OK)) as good,
        proxy(bad.address, good.address) as under_test,
    ):
        assert status_of(await under_test.ask(get(method=method))) == status
        assert good.visits == (status == 200)
        assert len(under_test.failures) == 1


def nobody() -> Address:
    """An address at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        return Address("127.0.0.1", held.getsockname()[1])


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_several_pods_may_be_gone_at_once(method: str) -> None:
    """As those of a node that fails; nothing was sent to any of them."""
    async with application(answering(OK)) as app, proxy(nobody(), nobody(), nobody(), app.address) as under_test:
        assert status_of(await under_test.ask(get(method=method))) == 200


@pytest.mark.parametrize("broken", [pytest.param(None, id="nobody listens"), *BROKEN])
async def test_clients_are_told_nothing_of_what_is_behind(broken: Script | None) -> None:
    async with application(broken or answering(OK)) as app:
        address = app.address if broken else nobody()
        async with proxy(address) as under_test:
            answer = await under_test.ask(get(method="POST"))
            assert status_of(answer) == (502 if broken else 503)
            assert not any(text in answer for text in (b"127.0.0.1", str(address.port).encode(), b"rubbish", b"xxx"))


async def test_a_client_that_stops_within_its_upload_is_no_failure_of_the_application(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The application has begun its answer, and waits for the rest."""
    monkeypatch.setattr(body, "SILENT_SECONDS", 0.2)

    async def script(visit: Visit) -> None:
        await visit.head()
        await visit.say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
        await visit.reader.read()

    async with application(script) as app, proxy(app.address) as under_test, under_test.client() as (reader, writer):
        writer.write(get("/", "Transfer-Encoding: chunked", method="PUT") + b"1\r\na\r\n")
        await reader.readuntil(b"1\r\na\r\n")
        async with asyncio.timeout(10):
            while not under_test.done:
                await asyncio.sleep(0.01)
        assert under_test.failures == []
        assert under_test.done[0].failure == "client"


async def test_two_attempts_and_no_more() -> None:
    async with (
        application(cut(b"")) as one,
        application(cut(b"")) as two,
        application(answering(OK)) as three,
        proxy(one.address, two.address, three.address) as under_test,
    ):
        answer = await under_test.ask(get())
        assert status_of(answer) == 502
        assert b"the application did not answer" in body_of(answer)
        assert three.visits == 0


@pytest.mark.parametrize(
    ("size", "status"),
    [
        pytest.param(REMEMBERED_BYTES, 200, id="remembered"),
        pytest.param(REMEMBERED_BYTES + 1, 502, id="too long"),
    ],
)
async def test_a_body_is_sent_again_while_it_is_remembered(size: int, status: int) -> None:
    got: list[int] = []

    async def bad_script(visit: Visit) -> None:
        await visit.head()
        await visit.reader.readexactly(size)
        visit.reset()

    async def good_script(visit: Visit) -> None:
        got.append(len(await read_body(visit, await visit.head())))
        await visit.say(OK)

    async with (
        application(bad_script) as bad,
        application(good_script) as good,
        proxy(bad.address, good.address) as under_test,
    ):
        asked = get("/", f"Content-Length: {size}", method="PUT")
        assert status_of(await under_test.ask(asked + b"x" * size)) == status
    assert got == [size] * (status == 200)


@pytest.mark.parametrize("times", [1, 2])
async def test_a_kept_connection_that_proves_closed_is_no_failure(times: int) -> None:
    """A server may close a connection that it keeps just as the next request is on its way."""

    async def script(visit: Visit) -> None:
        await visit.head()
        await visit.say(OK)
        if visit.number < times:
            await visit.head()
            visit.reset()
        else:
            await answering(OK)(visit)

    async with application(script) as app, proxy(app.address) as under_test:
        assert await asyncio.gather(*(under_test.ask(get()) for _ in range(times)))
        assert status_of(await under_test.ask(get())) == 200
        assert under_test.failures == []


async def test_an_application_that_takes_too_long() -> None:
    async def script(visit: Visit) -> None:
        await visit.head()
        await visit.reader.read()

    async with (
        application(script) as slow,
        application(answering(OK)) as good,
        proxy(slow.address, good.address, answer_seconds=0.2) as under_test,
    ):
        assert status_of(await under_test.ask(get())) == 504
        assert good.visits == 0, "what takes long here may take long there"


async def test_nobody_is_ready() -> None:
    async with proxy() as under_test:
        assert status_of(await under_test.ask(get())) == 503


async def test_a_client_that_leaves_takes_its_request_along() -> None:
    gone = asyncio.Event()

    async def script(visit: Visit) -> None:
        await visit.head()
        await visit.say(b"HTTP/1.1 103 Hint\r\n\r\n")
        try:
            await visit.reader.read()
        finally:
            gone.set()

    async with application(script) as app, proxy(app.address) as under_test:
        async with under_test.client() as (_, writer):
            writer.write(get())
            while not app.heads:
                await asyncio.sleep(0.01)
        async with asyncio.timeout(10):
            await gone.wait()


async def test_an_upload_that_is_cut_never_looks_whole() -> None:
    got: list[object] = []

    async def script(visit: Visit) -> None:
        try:
            got.append(await read_body(visit, await visit.head()))
        except (asyncio.IncompleteReadError, ConnectionError, ValueError) as error:
            got.append(type(error))

    async with application(script) as app, proxy(app.address) as under_test:
        for framing, part in (("Content-Length: 10", b"abc"), ("Transfer-Encoding: chunked", b"3\r\nabc\r\n")):
            async with under_test.client() as (_, writer):
                writer.write(get("/", framing, method="PUT") + part)
                while len(app.heads) == len(got):
                    await asyncio.sleep(0.01)
        async with asyncio.timeout(10):
            while len(got) < 2:
                await asyncio.sleep(0.01)
    assert b"abc" not in got
