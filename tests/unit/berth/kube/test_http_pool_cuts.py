"""Connections that end at the worst moment: after each byte of an answer, while a request is sent, just before it."""

from __future__ import annotations

import asyncio
import gzip
import socket

import pytest

from berth.kube.http_answer import HttpAnswer
from berth.kube.http_pool import HttpPool
from tests.support.http_server import HttpServer, http_server, says_ok

BODY = b'{"kind":"Status","metadata":{},"status":"Success","code":201}'
CREATED = b"HTTP/1.1 201 Created\r\n"
LENGTH = b"Content-Length: %d\r\n\r\n"
ZIPPED = gzip.compress(BODY)
CHUNKS = b"5\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n" % (BODY[:5], len(BODY) - 5, BODY[5:])
MEASURED = [
    pytest.param(CREATED + LENGTH % len(BODY) + BODY, id="length"),
    pytest.param(CREATED + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKS, id="chunks"),
    pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" + CREATED + LENGTH % len(BODY) + BODY, id="after an interim answer"),
    pytest.param(CREATED + b"Connection: close\r\n" + LENGTH % len(BODY) + BODY, id="the last one"),
    pytest.param(CREATED + b"Content-Encoding: gzip\r\n" + LENGTH % len(ZIPPED) + ZIPPED, id="compressed"),
]


class CutServer:
    """Sends an answer up to some byte and closes."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.length = 0

    async def __call__(self, request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(self.answer[: self.length])
        writer.close()


async def post(pool: HttpPool, body: bytes = b"{}") -> HttpAnswer:
    return await pool.request("POST", "/api", params=None, headers={}, body=body, seconds=20.0)


@pytest.mark.parametrize("answer", MEASURED)
async def test_an_answer_cut_at_any_byte_is_an_error_and_nothing_is_sent_twice(answer: bytes) -> None:
    cut = CutServer(answer)
    async with http_server(cut) as server:
        pool = HttpPool(server.connection(), user_agent="x")
        for length in range(len(answer)):
            cut.length = length
            with pytest.raises(ConnectionError):
                await post(pool)
        cut.length = len(answer)
        assert await post(pool) == HttpAnswer(201, BODY, None)
        await pool.close()
    assert len(server.requests) == len(answer) + 1


async def test_of_an_answer_without_a_length_a_cut_leaves_the_beginning() -> None:
    """Nobody can tell; that the JSON is whole is the reader's to see."""
    head = CREATED + b"\r\n"
    cut = CutServer(head + BODY)
    async with http_server(cut) as server:
        pool = HttpPool(server.connection(), user_agent="x")
        for length in range(len(head)):
            cut.length = length
            with pytest.raises(ConnectionError):
                await post(pool)
        for length in range(len(BODY) + 1):
            cut.length = len(head) + length
            assert await post(pool) == HttpAnswer(201, BODY[:length], None)
        await pool.close()
    assert len(server.requests) == len(cut.answer) + 1


async def test_a_connection_that_ends_just_when_a_request_is_sent_is_an_error_and_nothing_is_sent_again() -> None:
    """A POST may have arrived; who sent it has to look, and finds a connection that works."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = HttpServer(says_ok)
        server.port = listener.getsockname()[1]

        def serve() -> socket.socket:
            taken, _ = listener.accept()
            taken.recv(65_536)
            taken.sendall(CREATED + LENGTH % 2 + b"{}")
            return taken

        pool = HttpPool(server.connection(), user_agent="x")
        first = asyncio.create_task(asyncio.to_thread(serve))
        assert (await post(pool)).status == 201
        (await first).close()  # the event loop has not seen it when the next request begins
        with pytest.raises(ConnectionError, match="without an answer"):
            await post(pool)
        second = asyncio.create_task(asyncio.to_thread(serve))
        assert (await post(pool)).status == 201
        (await second).close()
        await pool.close()


async def test_a_request_that_is_given_up_while_it_is_sent_takes_its_connection_with_it() -> None:
    """The rest of it must not become the beginning of the next one."""
    came = asyncio.Event()
    ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        read = len(await reader.read(1000))
        came.set()
        try:
            while part := await reader.read(65_536):
                read += len(part)
                await asyncio.sleep(0)
        except ConnectionError:
            pass
        ended.set_result(read)
        writer.close()

    server = HttpServer(says_ok)
    async with await asyncio.start_server(slow, "127.0.0.1", 0) as listening:
        server.port = listening.sockets[0].getsockname()[1]
        pool = HttpPool(server.connection(), user_agent="x")
        large = 2**26  # more than the sockets hold
        task = asyncio.create_task(post(pool, b"x" * large))
        await came.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await ended < large
        await pool.close()
    assert not pool._all


async def test_a_server_by_an_ipv6_address() -> None:
    server = HttpServer(says_ok)
    try:
        listening = await asyncio.start_server(server.serve, "::1", 0)
    except OSError:
        pytest.skip("no IPv6 here")
    async with listening:
        connection = server.connection("/clusters/c-1")
        port = listening.sockets[0].getsockname()[1]
        connection.configuration.host = f"http://[::1]:{port}/clusters/c-1"
        pool = HttpPool(connection, user_agent="x")
        assert (await post(pool)).status == 201
        await pool.close()
    (request,) = server.requests
    assert request.startswith(f"POST /clusters/c-1/api HTTP/1.1\r\nHost: [::1]:{port}\r\n".encode())
