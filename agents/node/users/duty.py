"""The duty of measuring users: waits for orders of the latency controller, follows them, tells what was found."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

import aiohttp
import msgspec
import structlog

from agents.node.probing.user_probes import FoundUser, UserTarget
from agents.node.users.ledger import Ledger
from agents.node.users.metrics import USERS
from berth.api.latency_exchange import PROBES_PATH, PROBES_WAIT, ProbeAnswers, ProbeOrders
from berth.runtime.component import run_together
from berth.runtime.measuring.calls import ControllerCalls, Server, open_session, pause_after, told

log = structlog.get_logger(__name__)

PAUSES: Final = (1.0, 300.0)
"""Seconds after the first message that failed and, doubled each time, after the last: there may be no controller."""
GATHER_SECONDS: Final = 0.2
"""Seconds for which what is found is gathered: users are asked for together."""
ANSWER_SECONDS: Final = 10.0
"""Seconds that a message and its answer may take beyond the wait for orders."""
MAX_BYTES: Final = 1 << 18
"""Bytes of orders at most."""

_decode: Final = msgspec.json.Decoder(ProbeOrders).decode


class UserDuty:
    """Measures users for the latency controller."""

    def __init__(self, server: Server | None, pauses: tuple[float, float] = PAUSES) -> None:
        """Prepare without I/O.

        Args:
            server: the controller; None: nobody is measured.
            pauses: seconds after failures, as :data:`PAUSES`.
        """
        self._server = server
        self._pauses = pauses
        self._ledger = Ledger(time.monotonic)
        self._news = asyncio.Event()

    async def run(self, ask: Callable[[UserTarget], bool]) -> None:
        """Work until cancelled; without a controller there is nothing to do.

        Args:
            ask: has a user measured; False if nobody can.
        """
        if self._server is None:
            return
        async with open_session() as session:
            waiting, telling = (ControllerCalls(self._server, session) for _ in range(2))
            await run_together(
                self._forever("no orders to measure users", lambda: self._exchange(waiting, ProbeAnswers(), ask)),
                self._forever("round trips to users not told", lambda: self._tell(telling, ask)),
            )

    def found(self, found: FoundUser) -> None:
        """Take in what came of a user."""
        USERS.labels("refused" if found.refused else "answered" if found.microseconds else "silent").inc()
        self._ledger.found(found)
        self._news.set()

    async def _forever(self, failed: str, exchange: Callable[[], Awaitable[None]]) -> None:
        failures = 0
        while True:
            try:
                await exchange()
            except (aiohttp.ClientError, OSError, ValueError) as error:
                failures += 1
                pause = pause_after(error, failures, self._pauses)
                tell = log.info if failures == 1 else log.debug
                tell(failed, error=told(error), failures=failures, pause=round(pause, 1))
                await asyncio.sleep(pause)
            else:
                failures = 0

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
