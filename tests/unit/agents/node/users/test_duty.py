"""Orders come and answers go: a real HTTPS server in the latency controller's place, also one that fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from agents.node.probing.user_probes import FoundUser, UserTarget
from agents.node.users.duty import UserDuty
from berth.api.latency_exchange import ProbeAnswer, ProbeOrder
from berth.runtime.measuring.calls import Endpoint
from tests.support.kube import until
from tests.support.latency_controller import CERTIFICATE, LatencyController, latency_controller

ORDERS = tuple(ProbeOrder(str(number), f"192.0.2.{number}") for number in range(1, 4))


@pytest.fixture
async def controller() -> AsyncIterator[LatencyController]:
    async with latency_controller() as found:
        yield found


class Where:
    """Says where the controller is, as a test has it."""

    def __init__(self, url: str, directory: Path) -> None:
        self.token_file = directory / "token"
        self.token_file.write_text("node\n")
        self.url = url
        self._another = asyncio.Event()

    def another(self) -> asyncio.Event:
        return self._another

    def goes(self, url: str) -> None:
        """There is another controller."""
        self.url, before, self._another = url, self._another, asyncio.Event()
        before.set()

    async def endpoint(self, *, again: bool) -> Endpoint:
        return Endpoint(self.url, (CERTIFICATE / "server.crt").read_bytes(), None)

    async def run(self) -> None:
        await asyncio.Event().wait()


class Stand:
    """A duty whose users are all as far as they are told to be."""

    def __init__(self, url: str, directory: Path, pauses: tuple[float, float] = (0.01, 0.05)) -> None:
        self.where = Where(url, directory)
        self.duty = UserDuty(self.where, pauses=pauses, spread=0.01)
        self.asked: list[UserTarget] = []
        self.runs = True

    def ask(self, target: UserTarget) -> bool:
        self.asked.append(target)
        if self.runs:
            asyncio.get_running_loop().call_soon(self.duty.found, FoundUser(target.id, (20_000,)))
        return self.runs

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.duty.run(self.ask))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})
            assert task.cancelled()


@pytest.fixture
def stand(controller: LatencyController, tmp_path: Path) -> Stand:
    return Stand(controller.url, tmp_path)


async def test_orders_are_followed_and_answered(controller: LatencyController, stand: Stand) -> None:
    controller.orders.put_nowait(ORDERS)
    async with stand.running():
        answers = await controller.answered(len(ORDERS))
    assert answers == [ProbeAnswer(order.id, (20_000,)) for order in ORDERS]
    assert [target.address for target in stand.asked] == [order.address for order in ORDERS]
    assert set(controller.tokens) == {"Bearer node"}


async def test_orders_are_followed_while_answers_are_told(controller: LatencyController, stand: Stand) -> None:
    async with stand.running():
        for count, order in enumerate(ORDERS, start=1):
            controller.orders.put_nowait((order,))
            await controller.answered(count)
    assert [answer.id for answer in controller.answers] == [order.id for order in ORDERS]


async def test_nothing_is_lost_while_the_controller_refuses(controller: LatencyController, stand: Stand) -> None:
    controller.refusals = 3
    controller.orders.put_nowait(ORDERS)
    async with stand.running():
        await controller.answered(len(ORDERS))
    assert {answer.id for answer in controller.answers} == {order.id for order in ORDERS}


async def test_an_agent_that_is_told_to_come_later_does(controller: LatencyController, stand: Stand) -> None:
    controller.refusals, controller.retry_after = 1, "7"
    with capture_logs() as logs:
        async with stand.running():
            while not logs:
                await asyncio.sleep(0.01)
    assert logs[0]["event"] == "no orders to measure users"
    assert logs[0]["pause"] == 7.0


async def test_what_is_refused_is_told(controller: LatencyController, stand: Stand) -> None:
    stand.runs = False
    controller.orders.put_nowait((ProbeOrder("1", "127.0.0.1"), ProbeOrder("2", "192.0.2.1")))
    async with stand.running():
        answers = await controller.answered(2)
    assert answers == [
        ProbeAnswer("1", refused="a special address"),
        ProbeAnswer("2", refused="the prober does not run"),
    ]


async def test_without_a_controller_there_is_nothing_to_do() -> None:
    async with asyncio.timeout(60):
        await UserDuty(None).run(lambda _target: True)


NOBODY = "https://127.0.0.1:1"
"""Where nothing listens."""
LONG = (6000.0, 6000.0)
"""Pauses that no test waits for."""


async def until_said(logs: Sequence[Mapping[str, Any]], what: str) -> None:
    await until(lambda: any(each["event"] == what for each in logs), what=what)


async def test_a_controller_that_comes_is_asked_at_once_however_long_there_was_none(
    controller: LatencyController, tmp_path: Path
) -> None:
    stand = Stand(NOBODY, tmp_path, LONG)
    controller.orders.put_nowait(ORDERS)
    with capture_logs() as logs:
        async with stand.running():
            await until_said(logs, "no orders to measure users")
            stand.where.goes(controller.url)
            assert len(await controller.answered(len(ORDERS))) == len(ORDERS)


async def test_a_controller_that_says_nothing_is_left_for_the_next(
    controller: LatencyController, tmp_path: Path
) -> None:
    """As one whose node is gone: it would be waited for as long as orders are."""
    async with latency_controller() as silent:
        stand = Stand(silent.url, tmp_path, LONG)
        async with asyncio.timeout(25), stand.running():
            await until(lambda: bool(silent.tokens), what="the question")
            stand.where.goes(controller.url)
            controller.orders.put_nowait(ORDERS)
            assert len(await controller.answered(len(ORDERS))) == len(ORDERS)


async def test_what_was_found_for_a_controller_that_is_gone_is_told_to_the_next(
    controller: LatencyController, tmp_path: Path
) -> None:
    async with latency_controller() as first:
        stand = Stand(first.url, tmp_path, LONG)
        with capture_logs() as logs:
            async with stand.running():
                await until(lambda: bool(first.tokens), what="the question")
                stand.where.url = NOBODY
                first.orders.put_nowait(ORDERS)
                await until_said(logs, "round trips to users not told")
                stand.where.goes(controller.url)
                answers = await controller.answered(len(ORDERS))
    assert {each.id for each in answers} == {order.id for order in ORDERS}
