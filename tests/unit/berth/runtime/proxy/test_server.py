"""The side of clients: what is refused, how many may come, and how it ends without losing a request."""

from __future__ import annotations

import asyncio
import socket

import pytest
from aiohttp import web

from berth.runtime.proxy.client_connection import MAX_FIELD_BYTES, MAX_FIELDS
from berth.runtime.proxy.identity import address_of
from berth.runtime.proxy.server import ACCEPTED_AT_ONCE, ProxyPortError, ProxyServer
from tests.support.proxying import Visit, answering, application, body_of, get, proxy, read_body, status_of

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        pytest.param(b"rubbish\r\n\r\n", 400, id="rubbish"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", 400, id="no Host"),
        pytest.param(get("/", "A: " + "x" * (MAX_FIELD_BYTES + 1)), 400, id="a field too long"),
        pytest.param(get("/" + "x" * (MAX_FIELD_BYTES + 1)), 400, id="a target too long"),
        pytest.param(get("/", *["A: b"] * MAX_FIELDS), 400, id="too many fields"),
        pytest.param(get("/", *["A: " + "x" * 16_000] * 5), 431, id="fields too large together"),
        pytest.param(get("/", "Content-Length: 3", "Transfer-Encoding: chunked", method="POST"), 400, id="two lengths"),
        pytest.param(get("/", "Content-Length: 1", "Content-Length: 2", method="POST"), 400, id="two other lengths"),
        pytest.param(get("/", "Content-Length: +1", method="POST"), 400, id="a length with a sign"),
        pytest.param(get("/", "Transfer-Encoding: chunked, identity", method="POST"), 400, id="chunks not last"),
        pytest.param(get("/", "Transfer-Encoding: xchunked", method="POST"), 400, id="another coding"),
        pytest.param(get("/", "Transfer-Encoding : chunked", method="POST"), 400, id="space before a colon"),
        pytest.param(get("/", "A: b\n c"), 400, id="a folded line"),
        pytest.param(get("/", "A: b\x00c"), 400, id="NUL"),
        pytest.param(b"CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n", 501, id="CONNECT"),
        pytest.param(b"CONNECT / HTTP/1.1\r\nHost: h\r\n\r\n", 501, id="CONNECT of a path"),
        pytest.param(get(method="BREW"), 400, id="a method of one's own"),
        pytest.param("GET /é HTTP/1.1\r\nHost: h\r\n\r\n".encode(), 400, id="a target that is not ASCII"),
        pytest.param(b"GET / HTTP/1.1\nHost: h\n\n", 400, id="lines that end as none do"),
        pytest.param(get("/", "Content-Length: 2, 2", method="POST"), 400, id="a list of lengths"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, id="two hosts"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400, id="no host in Host"),
        pytest.param(b"GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505, id="another version"),
        pytest.param(b"GET /\r\n\r\n", 505, id="HTTP/0.9"),
    ],
)
async def test_requests_that_never_reach_the_application(asked: bytes, status: int) -> None:
    async with application(answering(OK)) as app, proxy(app.address) as under_test:
        async with under_test.client() as (reader, writer):
            writer.write(asked)
            assert status_of(await reader.readline()) == status
        assert app.heads == []


@pytest.mark.parametrize(
    "ahead", [pytest.param(b"", id="at once"), pytest.param(get("/held", last=False), id="behind another request")]
)
async def test_a_body_that_goes_on_as_none_does_is_refused_and_never_looks_whole(
    ahead: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    got: list[object] = []
    malformed = asyncio.Event()

    async def script(visit: Visit) -> None:
        while b"/held" in await visit.head():
            await malformed.wait()
            await visit.say(OK)
        try:
            got.append(await read_body(visit, b""))
        except (asyncio.IncompleteReadError, ConnectionError, ValueError) as error:
            got.append(type(error))

    async with application(script) as app, proxy(app.address) as under_test, under_test.client() as (reader, writer):
        writer.write(ahead + get("/", "Transfer-Encoding: chunked", method="PUT") + b"3\r\nabc\r\n")
        while not app.heads:
            await asyncio.sleep(0.01)
        writer.write(b"rubbish\r\n")
        assert under_test.server._server is not None
        [connection] = under_test.server._server.connections
        while not connection._messages:
            await asyncio.sleep(0)
        malformed.set()
        answer = await reader.read()
        assert status_of(answer.removeprefix(OK)) == 400
        assert (under_test.failures, under_test.done[-1].failure) == ([], "client")
    assert b"abc" not in got
    assert caplog.records == []


FIELD = b"A: " + b"x" * 10_000 + b"\r\n"


@pytest.mark.parametrize("before", [pytest.param(0, id="first"), pytest.param(2, id="after others")])
async def test_a_head_that_does_not_end_is_refused_before_it_does(before: int) -> None:
    """Else each client could have 1.6 MB kept."""
    async with (
        application(answering(OK)) as app,
        proxy(app.address) as under_test,
        under_test.client() as (reader, writer),
    ):
        for _ in range(before):
            writer.write(get(last=False))
            assert status_of(await reader.readuntil(b"hi")) == 200
        writer.write(get(last=False).removesuffix(b"\r\n"))
        for _ in range(9):  # as many as fit in, whatever they come in
            writer.write(FIELD)
        await writer.drain()
        async with asyncio.timeout(30):
            assert status_of(await reader.readline()) == 431
        assert len(app.heads) == before


@pytest.mark.parametrize(
    ("first", "more"),
    [
        pytest.param(b"1;", b"x" * 10_000, id="of a chunk"),
        pytest.param(b"0\r\n", FIELD, id="behind the last chunk"),
    ],
)
async def test_what_is_around_the_chunks_of_a_body_is_no_way_round_that(first: bytes, more: bytes) -> None:
    async with (
        application(answering(b"")) as app,
        proxy(app.address) as under_test,
        under_test.client() as (reader, writer),
    ):
        writer.write(get("/", "Transfer-Encoding: chunked", method="POST"))
        while not app.heads:
            await asyncio.sleep(0.01)
        writer.write(first)
        for _ in range(9):
            writer.write(more)
        async with asyncio.timeout(30):
            assert status_of(await reader.readline()) == 400
        assert (under_test.failures, under_test.done[0].failure) == ([], "client")


async def test_a_large_head_may_come_piece_by_piece() -> None:
    async with (
        application(answering(OK)) as app,
        proxy(app.address) as under_test,
        under_test.client() as (reader, writer),
    ):
        for _ in range(3):
            whole = get("/", *["A: " + "x" * 15_000] * 4, last=False)
            for at in range(0, len(whole), 1000):
                writer.write(whole[at : at + 1000])
                await asyncio.sleep(0)
            assert status_of(await reader.readuntil(b"hi")) == 200


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        pytest.param(b"rubbish\r\n\r\n", 400, id="no HTTP"),
        pytest.param(get("/", "A: " + "x" * 2 * MAX_FIELD_BYTES), 400, id="a field that is too large"),
        pytest.param(get(), 500, id="a fault of ours"),
    ],
)
async def test_no_answer_says_what_it_is_made_with(asked: bytes, status: int) -> None:
    async def handle(_: web.BaseRequest) -> web.StreamResponse:
        raise LookupError("ours")

    server = ProxyServer(handle, host="127.0.0.1", port=0)
    await server.start()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(asked)
        answer = await reader.read()
        assert status_of(answer) == status
        assert not any(name in answer.lower() for name in (b"aiohttp", b"python"))
        writer.close()
    finally:
        await server.stop(seconds=0)


async def test_mistakes_of_clients_are_not_logged_and_those_of_ours_without_who_asked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def handle(_: web.BaseRequest) -> web.StreamResponse:
        raise LookupError("ours")

    caplog.set_level(0)
    server = ProxyServer(handle, host="127.0.0.1", port=0)
    await server.start()
    try:
        for asked, status in ((b"GET /private HTTP/1.1\r\nHost: h\r\nA\x00: b\r\n\r\n", 400), (get("/private"), 500)):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(asked)
            assert status_of(await reader.read()) == status
            writer.close()
    finally:
        await server.stop(seconds=0)
    told = [record for record in caplog.records if record.exc_info]
    assert [record.exc_info[0] for record in told if record.exc_info] == [LookupError]
    assert not any(secret in caplog.text for secret in ("127.0.0.1", "private"))


@pytest.mark.parametrize("client", ["127.0.0.1", "::1"])
async def test_all_addresses_have_one_port_and_a_user_one_address(client: str) -> None:
    seen: list[str] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        seen.append(address_of(request))
        return web.Response(text="ok")

    server = ProxyServer(handle, host="", port=0)
    await server.start()
    try:
        reader, writer = await asyncio.open_connection(client, server.port)
        writer.write(get())
        assert status_of(await reader.read()) == 200
        writer.close()
    finally:
        await server.stop(seconds=0)
    assert seen == [client]


async def test_a_port_that_is_taken_is_told() -> None:
    async def handle(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response()

    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = ProxyServer(handle, host="127.0.0.1", port=taken.getsockname()[1])
        with pytest.raises(ProxyPortError, match="is taken; choose another"):
            await server.start()


async def test_the_end_waits_for_what_is_under_way_body_and_all() -> None:
    """An upload that has begun goes on, its answer comes, and then the connection ends; nobody new is let in."""
    began = asyncio.Event()

    async def script(visit: Visit) -> None:
        await visit.head()
        began.set()
        assert await visit.reader.readexactly(6) == b"abcdef"
        await visit.say(OK)

    async with application(script) as app, proxy(app.address) as under_test:
        port = under_test.server.port
        async with under_test.client() as (reader, writer), under_test.client() as (idle, _):
            writer.write(get("/", "Content-Length: 6", method="POST", last=False) + b"abc")
            await began.wait()
            under_test.forwarding.ending = True
            stopping = asyncio.create_task(under_test.server.stop(seconds=30))
            assert await idle.read() == b"", "one between two requests is closed"
            with pytest.raises(ConnectionError):
                await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"def")
            answer = await reader.read()
            assert body_of(answer) == b"hi"
            assert b"Connection: close" in answer
            await stopping


@pytest.mark.parametrize("turns", [pytest.param(0, id="was read"), pytest.param(1, id="was taken up")])
async def test_the_end_loses_no_request_whose_answer_has_not_begun(turns: int) -> None:
    async def handle(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text="ok")

    server = ProxyServer(handle, host="127.0.0.1", port=0)
    await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(get(last=False))
    await reader.readuntil(b"ok")
    assert server._server is not None
    [connection] = server._server.connections
    connection.data_received(get())
    for _ in range(turns):
        await asyncio.sleep(0)
    await server.stop(seconds=10)
    assert status_of(await reader.read()) == 200
    writer.close()


async def test_the_end_waits_for_no_connection_whose_answer_began_before() -> None:
    rest = asyncio.Event()

    async def script(visit: Visit) -> None:
        await visit.head()
        await visit.say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nh")
        await rest.wait()
        await visit.say(b"i")

    async with application(script) as app, proxy(app.address) as under_test, under_test.client() as (reader, writer):
        writer.write(get(last=False))
        await reader.readuntil(b"\r\n\r\nh")
        under_test.forwarding.ending = True
        rest.set()
        async with asyncio.timeout(60):
            assert await reader.read() == b"i"


async def test_what_takes_too_long_at_the_end_is_cut() -> None:
    async def script(visit: Visit) -> None:
        await visit.head()
        await visit.reader.read()

    async with application(script) as app, proxy(app.address) as under_test, under_test.client() as (reader, writer):
        writer.write(get())
        while not app.heads:
            await asyncio.sleep(0.01)
        await under_test.server.stop(seconds=0.1)
        assert await reader.read() == b""


async def test_who_is_there_has_a_turn_while_many_connect() -> None:
    many = 20 * ACCEPTED_AT_ONCE
    async with application(answering(OK)) as app, proxy(app.address) as under_test:
        address = ("127.0.0.1", under_test.server.port)
        clients = [socket.create_connection(address, timeout=0.9) for _ in range(many)]  # the kernel lets them wait
        before = 0
        async with asyncio.timeout(60):
            while before < many:
                await asyncio.sleep(0)
                assert under_test.server.connections - before <= ACCEPTED_AT_ONCE
                before = under_test.server.connections
        for client in clients:
            client.close()
