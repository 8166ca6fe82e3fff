"""Many requests at once: few connections are made at a time, and nobody waits for another's answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from berth.runtime.proxy.pool import UpstreamPool
from berth.runtime.proxy.turns import MOST_CONNECTING
from berth.runtime.proxy.upstream import Address, Failure, UpstreamConnection, UpstreamError
from tests.support.probing import free_port
from tests.support.proxying import Visit, answering, application

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
MANY = 5 * MOST_CONNECTING


async def ask(pool: UpstreamPool, address: Address) -> bytes:
    connection = await pool.acquire(address, repeatable=True)
    connection.begin(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", method="GET")
    await connection.answer()
    body = await connection.read()
    pool.release(connection)
    return body


@pytest.fixture
def connecting(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many connections were being made each time that one was."""
    counts, now, connect = list[int](), set[object](), UpstreamPool._connect

    async def counted(pool: UpstreamPool, address: Address) -> UpstreamConnection:
        this = object()
        now.add(this)
        counts.append(len(now))
        try:
            return await connect(pool, address)
        finally:
            now.discard(this)

    monkeypatch.setattr(UpstreamPool, "_connect", counted)
    return counts


async def test_few_connections_are_made_at_a_time(connecting: list[int]) -> None:
    pool = UpstreamPool()
    async with application(answering(OK)) as app:
        found = await asyncio.gather(*(ask(pool, app.address) for _ in range(MANY)))
        assert found == [b"hi"] * MANY
        assert max(connecting) <= MOST_CONNECTING
        assert pool._turns == {}
        await pool.close()


async def test_nobody_waits_for_another_to_be_answered() -> None:
    """As of users who wait for news, all of whom the application answers at once."""
    pool, there = UpstreamPool(), asyncio.Barrier(MANY)

    async def script(visit: Visit) -> None:
        await visit.head()
        await there.wait()
        await visit.say(OK)

    async with application(script) as app, asyncio.timeout(60):
        assert await asyncio.gather(*(ask(pool, app.address) for _ in range(MANY))) == [b"hi"] * MANY
        await pool.close()


async def test_all_are_told_at_once_that_nobody_is_there(connecting: list[int]) -> None:
    pool, address = UpstreamPool(), Address("127.0.0.1", free_port())
    found = await asyncio.gather(*(ask(pool, address) for _ in range(MANY)), return_exceptions=True)
    assert all(isinstance(each, UpstreamError) and each.failure is Failure.CONNECT for each in found)
    assert (len(found), pool._turns) == (MANY, {})
    assert len(connecting) <= 2 * MOST_CONNECTING


async def test_those_who_go_away_keep_nobody_from_being_told_that_nobody_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a node that is gone nothing comes: who gives up before that is known has not got through."""
    gone, begun = asyncio.Event(), 0

    async def connect(_pool: UpstreamPool, _address: Address) -> UpstreamConnection:
        nonlocal begun
        begun += 1
        await gone.wait()
        raise UpstreamError(Failure.CONNECT, "no connection")

    monkeypatch.setattr(UpstreamPool, "_connect", connect)
    pool, address = UpstreamPool(), Address("192.0.2.1", 80)
    tasks = [asyncio.create_task(ask(pool, address)) for _ in range(MANY)]
    while begun < MOST_CONNECTING:
        await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.wait(tasks[:1])
    gone.set()
    found = await asyncio.gather(*tasks[1:], return_exceptions=True)
    assert all(isinstance(each, UpstreamError) for each in found)
    assert (begun, pool._turns) == (MOST_CONNECTING + 1, {})


class Handed:
    """A connection that is handed on."""

    def __init__(self, address: Address) -> None:
        self.address, self.reusable, self.free_since, self.used = address, True, 0.0, False

    def abort(self) -> None:
        self.reusable = False


async def test_who_comes_too_late_for_a_connection_takes_the_turns_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was closed before he had it; by then nobody else was there, and then others came, who wait in another row."""
    made = [asyncio.Event() for _ in range(3)]
    now = 0

    async def connect(_pool: UpstreamPool, address: Address) -> Handed:
        await made[now].wait()
        return Handed(address)

    monkeypatch.setattr(UpstreamPool, "_connect", connect)
    pool, address = UpstreamPool(), Address("192.0.2.1", 80)

    async def come(many: int) -> list[asyncio.Task[object]]:
        tasks = [asyncio.create_task(pool.acquire(address, repeatable=True)) for _ in range(many)]
        await asyncio.sleep(0)
        return list[asyncio.Task[object]](tasks)

    *first, late = await come(MOST_CONNECTING + 1)
    handed: Any = Handed(address)
    now = 1
    made[0].set()
    pool.release(handed)
    handed.abort()
    await asyncio.wait(first)
    now = 2
    *second, waiting = await come(MOST_CONNECTING + 1)
    made[1].set()
    await late
    handed = Handed(address)
    pool.release(handed)
    async with asyncio.timeout(10):
        assert await waiting is handed
    made[2].set()
    await asyncio.wait(second)
    assert pool._turns == {}


async def test_those_who_go_away_keep_nobody_waiting() -> None:
    pool = UpstreamPool()
    async with application(answering(OK)) as app, asyncio.timeout(60):
        tasks = [asyncio.create_task(ask(pool, app.address)) for _ in range(MANY)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert found[1::2] == [b"hi"] * (MANY // 2)
        assert await ask(pool, app.address) == b"hi"
        assert pool._turns == {}
        await pool.close()
