"""Connections that are kept alive: how many there are, when one is used again, and what a lost one means."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from multidict import CIMultiDict

from berth.kube import dials, http_pool
from berth.kube.http_answer import HttpAnswer, MalformedAnswerError
from berth.kube.http_pool import HttpPool
from tests.support.http_server import HttpServer, Script, http_server, says_ok
from tests.support.kube import until

OK = HttpAnswer(201, b"{}", None)


@asynccontextmanager
async def pool_of(script: Script, *, path: str = "") -> AsyncIterator[tuple[HttpPool, HttpServer]]:
    async with http_server(script) as server:
        pool = HttpPool(server.connection(path), user_agent="berth-test")
        try:
            yield pool, server
        finally:
            await pool.close()


async def post(
    pool: HttpPool,
    path: str = "/api",
    *,
    body: bytes | None = b"{}",
    params: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    seconds: float = 20.0,
) -> HttpAnswer:
    return await pool.request("POST", path, params=params, headers=headers or {}, body=body, seconds=seconds)


class TestReuse:
    async def test_requests_one_after_another_share_a_connection(self) -> None:
        async with pool_of(says_ok) as (pool, server):
            assert [await post(pool) for _ in range(5)] == [OK] * 5
        assert (server.connections, len(server.requests)) == (1, 5)

    async def test_requests_at_a_time_have_a_connection_each_and_leave_them_to_the_next(self) -> None:
        everyone = asyncio.Barrier(4)

        async def together(request: bytes, writer: asyncio.StreamWriter) -> None:
            await everyone.wait()
            await says_ok(request, writer)

        async with pool_of(together) as (pool, server):
            for _ in range(3):
                assert await asyncio.gather(*(post(pool) for _ in range(4))) == [OK] * 4
        assert server.connections == 4

    async def test_of_many_requests_at_once_most_use_those_of_others(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """No more than a few are made at a time, and what is answered meanwhile leaves its connection to who waits."""
        monkeypatch.setattr(dials, "AT_ONCE", 2)
        monkeypatch.setattr(dials, "LONG_SECONDS", 3600.0)
        at_once, most = 0, 0

        async with pool_of(says_ok) as (pool, server):
            connect = pool._connect

            async def watched() -> Any:
                nonlocal at_once, most
                at_once += 1
                most = max(most, at_once)
                try:
                    return await connect()
                finally:
                    at_once -= 1

            monkeypatch.setattr(pool._dials, "_connect", watched)
            assert await asyncio.gather(*(post(pool) for _ in range(40))) == [OK] * 40
        assert most == 2
        assert server.connections < 40

    async def test_one_that_ends_just_when_it_is_handed_on_is_not_used(self) -> None:
        async with pool_of(says_ok) as (pool, server):
            await post(pool)
            channel = pool._free.pop()
            waiting = asyncio.create_task(pool._channel())
            await asyncio.sleep(0)
            pool._give(channel)
            channel.drop()
            assert await waiting is not channel
        assert server.connections == 2

    async def test_what_the_server_closes_is_not_used_again(self) -> None:
        async def once(request: bytes, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 201 Created\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")

        async with pool_of(once) as (pool, server):
            assert [await post(pool) for _ in range(3)] == [OK] * 3
        assert server.connections == 3

    async def test_a_free_connection_that_the_server_has_closed_is_missed_by_nobody(self) -> None:
        async def then_closed(request: bytes, writer: asyncio.StreamWriter) -> None:
            await says_ok(request, writer)
            writer.close()

        async with pool_of(then_closed) as (pool, server):
            assert await post(pool) == OK
            await until(lambda: not pool._all, what="the end is seen")
            assert await post(pool) == OK
        assert server.connections == 2

    async def test_what_was_free_for_long_is_not_used_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async with pool_of(says_ok) as (pool, server):
            await post(pool)
            monkeypatch.setattr(http_pool, "KEEP_ALIVE_SECONDS", -1.0)
            await post(pool)
            assert len(pool._all) == 1
        assert server.connections == 2

    async def test_renewed_credentials_have_a_new_connection(self) -> None:
        async with pool_of(says_ok) as (pool, server):
            await post(pool)
            pool._connection.generation += 1
            await post(pool)
        assert server.connections == 2

    async def test_one_that_was_made_while_credentials_were_renewed_is_nobodys(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with pool_of(says_ok) as (pool, server):
            connect = pool._connect

            async def renewed_meanwhile() -> Any:
                channel = await connect()
                pool._connection.generation = 1
                return channel

            monkeypatch.setattr(pool._dials, "_connect", renewed_meanwhile)
            assert await post(pool) == OK
            assert {channel.generation for channel in pool._all} == {1}
        assert server.connections == 2

    async def test_what_nobody_asked_for_ends_the_connection(self) -> None:
        async def twice(request: bytes, writer: asyncio.StreamWriter) -> None:
            await says_ok(request, writer)
            await says_ok(request, writer)

        async with pool_of(twice) as (pool, server):
            assert [await post(pool) for _ in range(3)] == [OK] * 3
        assert server.connections == 3

    async def test_a_free_connection_keeps_nothing_of_its_last_answer(self) -> None:
        size = 3_000_000

        async def large(request: bytes, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size)

        async with pool_of(large) as (pool, _):
            tracemalloc.start()
            try:
                assert len((await post(pool)).body) == size
                await asyncio.sleep(0)  # while what woke us is under way, the event loop keeps it
                kept, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
        assert kept < size / 2 < peak

    async def test_closing_ends_all_connections(self) -> None:
        async with pool_of(says_ok) as (pool, _):
            await post(pool)
            assert len(pool._all) == 1
            await pool.close()
            assert not pool._all


class TestTrouble:
    @pytest.mark.parametrize("end", ["time", "cancellation"])
    async def test_an_answer_that_nobody_waits_for_any_more_is_not_the_next_ones(self, end: str) -> None:
        asked = asyncio.Event()

        async def late(request: bytes, writer: asyncio.StreamWriter) -> None:
            if b"/slow" in request:
                asked.set()
                await asyncio.Event().wait()
            await says_ok(request, writer)

        async with pool_of(late) as (pool, server):
            if end == "time":
                with pytest.raises(TimeoutError):
                    await post(pool, "/slow", seconds=0.05)
            else:
                task = asyncio.create_task(post(pool, "/slow"))
                await asked.wait()
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            assert await post(pool) == OK
            assert len(pool._all) == 1
        assert server.connections == 2

    @pytest.mark.parametrize(
        ("said", "problem"),
        [
            pytest.param(b"", ConnectionResetError, id="nothing"),
            pytest.param(b"HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\n{", ConnectionResetError, id="a part"),
            pytest.param(b"220 smtp.example ESMTP\r\n\r\n", MalformedAnswerError, id="another protocol"),
            pytest.param(
                b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n{}",
                MalformedAnswerError,
                id="no gzip, without a length",
            ),
        ],
    )
    async def test_a_connection_that_ends_without_an_answer_is_an_error(
        self, said: bytes, problem: type[Exception]
    ) -> None:
        async def ends(request: bytes, writer: asyncio.StreamWriter) -> None:
            writer.write(said)
            writer.close()

        async with pool_of(ends) as (pool, server):
            with pytest.raises(problem):
                await post(pool)
        assert len(server.requests) == 1  # it may have taken effect: never sent twice

    async def test_what_is_answered_before_all_of_it_is_sent_leaves_its_connection_to_nobody(self) -> None:
        """A server that refuses a body need not read it, and would take the next request for more of it."""
        waiting: set[asyncio.Task[None] | None] = set()

        async def refuses(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            waiting.add(asyncio.current_task())
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}")
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

        server = HttpServer(says_ok)
        async with await asyncio.start_server(refuses, "127.0.0.1", 0) as listening:
            server.port = listening.sockets[0].getsockname()[1]
            pool = HttpPool(server.connection(), user_agent="berth-test")
            large = b"x" * 2**24  # more than the sockets hold
            assert [(await post(pool, body=large, seconds=5.0)).status for _ in range(2)] == [413, 413]
            await pool.close()
            for task in filter(None, waiting):
                task.cancel()
        assert len(waiting) == 2

    async def test_an_answer_may_end_with_the_connection(self) -> None:
        async def ends(request: bytes, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 100_000)
            writer.close()

        async with pool_of(ends) as (pool, _):
            assert await post(pool) == HttpAnswer(200, b"x" * 100_000, None)

    async def test_who_cannot_be_reached_is_named(self) -> None:
        async with http_server(says_ok) as server:
            connection = server.connection()
        pool = HttpPool(connection, user_agent="x")
        with pytest.raises(ConnectionError, match=f"cannot connect to 127.0.0.1:{server.port}: "):
            await post(pool)

    async def test_connecting_takes_no_longer_than_it_may(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def never(*_: Any, **__: Any) -> None:
            await asyncio.Event().wait()

        monkeypatch.setattr(http_pool, "CONNECT_SECONDS", 0.01)
        monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", never)
        async with pool_of(says_ok) as (pool, server):
            with pytest.raises(TimeoutError, match=f"no connection to 127.0.0.1:{server.port} within 0.01 s"):
                await post(pool)


class TestRequests:
    async def test_what_is_sent(self) -> None:
        async with pool_of(says_ok, path="/k8s/clusters/c-1") as (pool, server):
            headers = {"Authorization": "Bearer t", "Content-Type": "application/json"}
            await post(pool, "/api/v1/pods", params={"labelSelector": "a in (b,c)", "limit": "5"}, headers=headers)
        assert server.requests == [
            b"POST /k8s/clusters/c-1/api/v1/pods?labelSelector=a+in+%28b%2Cc%29&limit=5 HTTP/1.1\r\n"
            + f"Host: 127.0.0.1:{server.port}\r\n".encode()
            + b"User-Agent: berth-test\r\nAccept: application/json\r\nAccept-Encoding: gzip\r\n"
            b"Authorization: Bearer t\r\n"
            b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
        ]

    async def test_a_header_may_come_several_times(self) -> None:
        async with pool_of(says_ok) as (pool, server):
            groups = CIMultiDict([("Impersonate-Group", "dev"), ("Impersonate-Group", "ops")])
            await post(pool, headers=groups)
        assert b"Impersonate-Group: dev\r\nImpersonate-Group: ops\r\n" in server.requests[0]

    async def test_without_a_body_there_is_no_length(self) -> None:
        async with pool_of(says_ok) as (pool, server):
            await post(pool, body=None)
        assert b"Content-Length" not in server.requests[0]

    @pytest.mark.parametrize("value", ["a\r\nX: y", "a\nb", "a\rb"], ids=repr)
    async def test_a_line_break_in_a_header_is_refused(self, value: str) -> None:
        async with pool_of(says_ok) as (pool, server):
            with pytest.raises(ValueError, match="line break"):
                await post(pool, headers={"Impersonate-User": value})
        assert server.requests == []
