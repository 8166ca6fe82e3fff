"""The duty of measuring users: waits for orders of the latency controller, follows them, tells what was found."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

import aiohttp
import msgspec
import structlog

from agents.node.probing.user_probes import FoundUser, UserTarget
from agents.node.users.ledger import Ledger
from agents.node.users.metrics import USERS
from berth.api.latency_exchange import PROBES_PATH, PROBES_WAIT, ProbeAnswers, ProbeOrders
from berth.kube.jitter import jitter
from berth.runtime.component import run_together
from berth.runtime.measuring.calls import ChangingServer, ControllerCalls, open_session, pause_after, told

log = structlog.get_logger(__name__)

PAUSES: Final = (1.0, 30.0)
"""Seconds after the first message that failed and, doubled each time, after the last: a controller that cannot be
reached may be reached again. That there is another one is heard of by itself, and costs no attempts."""
SPREAD_SECONDS: Final = 5.0
"""Seconds within which agents go to another controller, each when chance has it: there are thousands."""
GATHER_SECONDS: Final = 0.2
"""Seconds for which what is found is gathered: users are asked for together."""
ANSWER_SECONDS: Final = 10.0
"""Seconds that a message and its answer may take beyond the wait for orders."""
MAX_BYTES: Final = 1 << 18
"""Bytes of orders at most."""

_decode: Final = msgspec.json.Decoder(ProbeOrders).decode


class UserDuty:
    """Measures users for the latency controller."""

    def __init__(
        self, server: ChangingServer | None, pauses: tuple[float, float] = PAUSES, spread: float = SPREAD_SECONDS
    ) -> None:
        """Prepare without I/O.

        Args:
            server: the controller; None: nobody is measured.
            pauses: seconds after failures, as :data:`PAUSES`.
            spread: seconds until another controller is asked, as :data:`SPREAD_SECONDS`.
        """
        self._server = server
        self._pauses = pauses
        self._spread = spread
        self._ledger = Ledger(time.monotonic)
        self._news = asyncio.Event()

    async def run(self, ask: Callable[[UserTarget], bool]) -> None:
        """Work until cancelled; without a controller there is nothing to do.

        Args:
            ask: has a user measured; False if nobody can.
        """
        server = self._server
        if server is None:
            return
        async with open_session() as session:
            waiting, telling = (ControllerCalls(server, session) for _ in range(2))

            def forever(failed: str, exchange: Callable[[], Coroutine[Any, Any, None]]) -> Awaitable[None]:
                return self._forever(server.another, failed, exchange)

            await run_together(
                server.run(),
                forever("no orders to measure users", lambda: self._exchange(waiting, ProbeAnswers(), ask)),
                forever("round trips to users not told", lambda: self._tell(telling, ask)),
            )

    def found(self, found: FoundUser) -> None:
        """Take in what came of a user."""
        USERS.labels("refused" if found.refused else "answered" if found.microseconds else "silent").inc()
        self._ledger.found(found)
        self._news.set()

    async def _forever(
        self,
        current: Callable[[], asyncio.Event],
        failed: str,
        exchange: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        failures = 0
        while True:
            another = current()
            try:
                done = await _unless(another, exchange())
            except (aiohttp.ClientError, OSError, ValueError) as error:
                failures += 1
                pause = pause_after(error, failures, self._pauses)
                tell = log.info if failures == 1 else log.debug
                tell(failed, error=told(error), failures=failures, pause=round(pause, 1))
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await another.wait()
            else:
                failures = 0
                if done:
                    continue
            if another.is_set():
                failures = 0
                await asyncio.sleep(jitter(0.0, self._spread))

    async def _tell(self, calls: ControllerCalls, ask: Callable[[UserTarget], bool]) -> None:
        await self._news.wait()
        await asyncio.sleep(GATHER_SECONDS)
        answers = self._ledger.answers()
        if answers:
            await self._exchange(calls, ProbeAnswers(answers), ask)
            self._ledger.told(answers)
        if not self._ledger.waiting:
            self._news.clear()

    async def _exchange(self, calls: ControllerCalls, message: ProbeAnswers, ask: Callable[[UserTarget], bool]) -> None:
        orders = await calls.post(
            PROBES_PATH, msgspec.json.encode(message), _decode, seconds=PROBES_WAIT + ANSWER_SECONDS, most=MAX_BYTES
        )
        for order in orders.orders:
            target = self._ledger.take(order)
            if target is not None and not ask(target):
                self._ledger.refuse(target, "the prober does not run")
        if self._ledger.waiting:
            self._news.set()


async def _unless(another: asyncio.Event, exchange: Coroutine[Any, Any, None]) -> bool:
    """Let an exchange go on until there is another controller; return whether it came to its end.

    Of one whose node is gone nothing is heard: an answer would be awaited for as long as orders are.
    """
    working, changing = asyncio.create_task(exchange), asyncio.create_task(another.wait())
    try:
        await asyncio.wait((working, changing), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
            return True
        return False
    finally:
        for task in (working, changing):
            task.cancel()
        await asyncio.gather(working, changing, return_exceptions=True)
