"""Which connection a request gets, and when one is not used again."""

from __future__ import annotations

import asyncio
import socket
import struct

import pytest

from berth.runtime.proxy import pool as proxy_pool
from berth.runtime.proxy import upstream
from berth.runtime.proxy.pool import UpstreamPool
from berth.runtime.proxy.upstream import Failure, UpstreamConnection, UpstreamError
from tests.support.proxying import Visit, answering, application

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
ASK = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"


async def ask(pool: UpstreamPool, connection: UpstreamConnection) -> bytes:
    connection.begin(ASK, method="GET")
    await connection.answer()
    body = b""
    while not connection.complete:
        body += await connection.read()
    pool.release(connection)
    return body


async def test_a_connection_is_used_again() -> None:
    pool = UpstreamPool()
    async with application(answering(OK)) as app:
        for _ in range(3):
            assert await ask(pool, await pool.acquire(app.address, repeatable=True)) == b"hi"
        assert app.visits == 1
        await pool.close()


@pytest.mark.parametrize(
    ("age", "repeatable", "again"),
    [
        pytest.param(0.5, False, True, id="young"),
        pytest.param(2.0, False, False, id="what cannot be repeated takes none that may be closed"),
        pytest.param(2.0, True, True, id="what can be repeated does"),
        pytest.param(5.0, True, False, id="old"),
    ],
)
async def test_how_long_one_is_kept(age: float, repeatable: bool, again: bool) -> None:
    pool = UpstreamPool()
    async with application(answering(OK)) as app:
        first = await pool.acquire(app.address, repeatable=True)
        await ask(pool, first)
        first.free_since -= age
        second = await pool.acquire(app.address, repeatable=repeatable)
        assert (second is first) == again
        second.abort()
        await pool.close()


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi", id="the last one"),
        pytest.param(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", id="HTTP/1.0"),
        pytest.param(OK + OK, id="an answer too many"),
    ],
)
async def test_after_some_answers_a_connection_ends(answer: bytes) -> None:
    pool = UpstreamPool()
    async with application(answering(answer)) as app:
        for _ in range(2):
            assert await ask(pool, await pool.acquire(app.address, repeatable=True)) == b"hi"
        assert app.visits == 2
        await pool.close()


async def test_one_that_is_closed_meanwhile_is_not_used() -> None:
    async def script(visit: Visit) -> None:
        await visit.head()
        await visit.say(OK)

    pool = UpstreamPool()
    async with application(script) as app:
        first = await pool.acquire(app.address, repeatable=True)
        await ask(pool, first)
        await first.ended
        assert await ask(pool, await pool.acquire(app.address, repeatable=True)) == b"hi"
        await pool.close()


async def test_one_that_speaks_unasked_is_closed() -> None:
    async def script(visit: Visit) -> None:
        await visit.head()
        await visit.say(OK)
        await visit.say(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
        await visit.reader.read()

    pool = UpstreamPool()
    async with application(script) as app:
        first = await pool.acquire(app.address, repeatable=True)
        await ask(pool, first)
        async with asyncio.timeout(60):
            await first.ended
        await pool.close()


@pytest.mark.parametrize(
    ("size", "milliseconds"),
    [
        pytest.param(upstream.ROOM_BYTES, upstream.SILENT_MILLISECONDS, id="there is room for it"),
        pytest.param(upstream.ROOM_BYTES + 1, upstream.SLOW_MILLISECONDS, id="there may be none"),
    ],
)
async def test_a_long_body_has_more_time_and_the_next_request_as_little(size: int, milliseconds: int) -> None:
    async def script(visit: Visit) -> None:
        await visit.head()
        await visit.reader.readexactly(size)
        await visit.say(OK)
        await answering(OK)(visit)

    def patience() -> int:
        assert connection._transport is not None
        accepted: socket.socket = connection._transport.get_extra_info("socket")
        return accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)

    pool = UpstreamPool()
    async with application(script) as app:
        connection = await pool.acquire(app.address, repeatable=True)
        connection.begin(b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % size, method="PUT")
        assert patience() == upstream.SILENT_MILLISECONDS
        await connection.write(b"x" * size)
        assert patience() == milliseconds
        await connection.answer()
        assert await connection.read() == b"hi"
        connection.begin(ASK, method="GET")
        assert patience() == upstream.SILENT_MILLISECONDS
        await connection.answer()
        await pool.close()


async def test_forgotten_addresses_have_no_connections() -> None:
    pool = UpstreamPool()
    async with application(answering(OK)) as app:
        first = await pool.acquire(app.address, repeatable=True)
        await ask(pool, first)
        pool.forget(app.address)
        async with asyncio.timeout(60):
            await first.ended
        await pool.close()


@pytest.mark.parametrize("forgotten", [False, True], ids=["nobody asks", "the pod goes while it answers"])
async def test_what_is_not_needed_any_more_is_closed_and_forgotten(
    forgotten: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An application need not close connections, and addresses of pods come and go."""
    monkeypatch.setattr(proxy_pool, "KEEP_ALIVE_SECONDS", 0.05)
    pool = UpstreamPool()
    async with application(answering(OK)) as app:
        first, second = [await pool.acquire(app.address, repeatable=True) for _ in range(2)]
        if forgotten:
            pool.forget(app.address)
        await ask(pool, first)
        await ask(pool, second)
        async with asyncio.timeout(60):
            await asyncio.gather(first.ended, second.ended)
        assert (pool._free, pool._all) == ({}, set())
        await pool.close()


@pytest.mark.parametrize(
    "places",
    [
        pytest.param((0, 0, 0), id="of one address"),
        pytest.param((0, 0, 1), id="of several addresses"),
        pytest.param((0, 1, 0), id="of several by turns"),
    ],
)
async def test_no_more_than_some_are_kept_and_who_is_free_for_longest_goes(
    places: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many pods there are: each connection is an open file, of which so many are left for these."""
    monkeypatch.setattr(proxy_pool, "MOST_IDLE", 2)
    pool = UpstreamPool()
    async with application(answering(OK)) as one, application(answering(OK)) as other:
        taken = [await pool.acquire((one, other)[place].address, repeatable=True) for place in places]
        for connection in taken:
            await ask(pool, connection)
        async with asyncio.timeout(60):
            await taken[0].ended
        assert all(connection.reusable for connection in taken[1:])
        again = [await pool.acquire(connection.address, repeatable=True) for connection in reversed(taken[1:])]
        assert again == taken[:0:-1]
        await pool.close()


async def test_a_name_that_does_not_exist_is_no_connection() -> None:
    with pytest.raises(UpstreamError) as caught:
        await UpstreamPool().acquire(upstream.Address("nobody.invalid", 80), repeatable=True)
    assert caught.value.failure is Failure.CONNECT


async def test_who_has_broken_off_is_told_of_no_end() -> None:
    """The kernel knows of it before the event loop does."""
    listener = socket.create_server(("127.0.0.1", 0))
    pool = UpstreamPool()
    connection = await pool.acquire(upstream.Address(*listener.getsockname()), repeatable=True)
    accepted, _ = listener.accept()
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    accepted.close()
    connection.end_sending()
    async with asyncio.timeout(60):
        await connection.ended
    await pool.close()
    listener.close()


@pytest.mark.parametrize(
    ("said", "body"),
    [
        pytest.param(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno", b"no", id="in full"),
        pytest.param(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 9\r\n\r\nno", None, id="in part"),
        pytest.param(b"", None, id="nothing"),
    ],
)
async def test_what_an_application_said_before_it_broke_off_is_heard_though_a_write_fails_first(
    said: bytes, body: bytes | None
) -> None:
    """One that refuses an upload answers, and closes its connection with the rest of it unread."""
    listener = socket.create_server(("127.0.0.1", 0))
    pool = UpstreamPool()
    connection = await pool.acquire(upstream.Address(*listener.getsockname()), repeatable=True)
    accepted, _ = listener.accept()
    connection.begin(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n", method="POST")
    accepted.sendall(said)
    accepted.close()
    await connection.write(b"x" * 50)

    async def heard() -> bytes:
        assert (await connection.answer()).status == 413
        found = b""
        while not connection.complete:
            found += await connection.read()
        return found

    if body is not None:
        assert await heard() == body
    else:
        with pytest.raises(UpstreamError) as caught:
            await heard()
        assert caught.value.failure is Failure.CUT
    assert not connection.reusable
    await pool.close()
    listener.close()
