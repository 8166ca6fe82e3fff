"""Who gets which connection, and how many are made; that nobody's request is lost is in test_http_pool.py."""

from __future__ import annotations

import asyncio

import pytest

from berth.kube import dials
from berth.kube.dials import AT_ONCE, Dials
from tests.support.kube import until


class Bench:
    """Connections are numbers, in the order in which they are begun; each is made when the test says so."""

    def __init__(self) -> None:
        self.begun: list[asyncio.Future[int]] = []
        self.given_up = 0
        self.free: list[int] = []
        self.dials: Dials[int] = Dials(self._connect, self.give)
        self.tasks: list[asyncio.Task[int]] = []

    async def _connect(self) -> int:
        made: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.begun.append(made)
        try:
            return await made
        except asyncio.CancelledError:
            self.given_up += 1
            raise

    def give(self, connection: int) -> None:
        if not self.dials.hand_on(connection):
            self.free.append(connection)

    async def waiting(self, count: int) -> list[asyncio.Task[int]]:
        """Requests that wait for a connection each."""
        new = [asyncio.create_task(self.dials.wait()) for _ in range(count)]
        self.tasks += new
        await settled()
        return new

    def make(self, number: int) -> None:
        self.begun[number].set_result(number)


async def settled() -> None:
    """Let everybody go on who can."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def _never_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, no connection takes long."""
    monkeypatch.setattr(dials, "LONG_SECONDS", 3600.0)


async def test_who_waits_longest_has_the_connection_that_is_made_first() -> None:
    bench = Bench()
    first, second = await bench.waiting(2)
    bench.make(1)
    assert await first == 1
    assert not second.done()
    bench.make(0)
    assert await second == 0


async def test_one_that_becomes_free_is_not_waited_beyond_and_the_new_one_is_for_the_next() -> None:
    bench = Bench()
    (waiter,) = await bench.waiting(1)
    bench.give(77)
    assert await waiter == 77
    bench.make(0)
    await settled()
    assert bench.free == [0]


async def test_a_few_are_made_at_a_time_and_no_more_than_are_waited_for() -> None:
    bench = Bench()
    await bench.waiting(AT_ONCE + 4)
    assert len(bench.begun) == AT_ONCE
    for connection in (100, 101, 102):
        bench.give(connection)
    for number in range(AT_ONCE):
        bench.make(number)
    await settled()
    # Eleven of twelve have one, so one more is begun.
    assert len(bench.begun) == AT_ONCE + 1
    bench.make(AT_ONCE)
    assert sorted(await asyncio.gather(*bench.tasks)) == [*range(AT_ONCE + 1), 100, 101, 102]
    assert bench.free == []


async def test_those_that_take_long_keep_no_others_from_being_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dials, "LONG_SECONDS", 0.0)
    bench = Bench()
    await bench.waiting(3 * AT_ONCE)
    await until(lambda: len(bench.begun) == 3 * AT_ONCE, what="all are being made")
    for number in range(3 * AT_ONCE):
        bench.make(number)
    assert len(await asyncio.gather(*bench.tasks)) == 3 * AT_ONCE


async def test_what_goes_wrong_is_told_to_one_and_another_is_made_for_the_next() -> None:
    bench = Bench()
    tasks = await bench.waiting(AT_ONCE + 1)
    bench.begun[3].set_exception(ConnectionRefusedError("refused"))
    with pytest.raises(ConnectionRefusedError, match="refused"):
        await tasks[0]
    await settled()
    assert len(bench.begun) == AT_ONCE + 1
    for number in (0, 1, 2, *range(4, AT_ONCE + 1)):
        bench.make(number)
    assert len(await asyncio.gather(*tasks[1:])) == AT_ONCE


async def test_for_who_waits_no_more_none_is_made() -> None:
    bench = Bench()
    first, second = await bench.waiting(2)
    first.cancel()
    await settled()
    assert (len(bench.begun), bench.given_up) == (2, 1)
    next(made for made in bench.begun if not made.cancelled()).set_result(5)
    assert await second == 5


async def test_what_was_handed_to_who_waits_no_more_is_for_the_next() -> None:
    bench = Bench()
    first, second = await bench.waiting(2)
    bench.give(7)
    first.cancel()
    await settled()
    assert first.cancelled()
    assert await second == 7


async def test_a_connection_given_up_before_it_is_begun_keeps_no_place() -> None:
    bench = Bench()
    for _ in range(2 * AT_ONCE):
        task = asyncio.create_task(bench.dials.wait())
        await asyncio.sleep(0)  # the request waits, and nothing is begun for it
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    (waiter,) = await bench.waiting(1)
    bench.begun[-1].set_result(1)
    assert await waiter == 1


async def test_closing_tells_who_waits_and_gives_up_what_is_being_made() -> None:
    bench = Bench()
    tasks = await bench.waiting(AT_ONCE + 1)
    bench.dials.close()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {ConnectionAbortedError}
    await settled()
    assert (len(bench.begun), bench.given_up) == (AT_ONCE, AT_ONCE)
