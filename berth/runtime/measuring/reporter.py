"""Tells the latency controller what was measured, again and again, and hands on what it answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import aiohttp
import msgspec
import structlog

from berth.api.latency_exchange import MAX_USERS, ROUND_TRIPS_PATH, Instructions, naming_of
from berth.kube.jitter import jitter
from berth.kube.lease import boot_clock
from berth.runtime.measuring.calls import (
    PAUSES,
    ControllerCalls,
    SoughtServer,
    is_busy,
    open_session,
    pause_after,
    told,
)
from berth.runtime.measuring.instructions import MAX_BYTES, decode_instructions
from berth.runtime.measuring.metrics import REPORTS, TELLING, TOLD
from berth.runtime.measuring.reports import Reports

log = structlog.get_logger(__name__)

LEAST_SECONDS: Final = 1.0
"""Seconds from one message to the next at least, whoever comes."""
SPREAD_SECONDS: Final = 5.0
"""Seconds within which another controller is told, when chance has it: there are thousands, and so they usually do."""
ANSWER_SECONDS: Final = 10.0
"""Seconds that a message and its answer may take."""


class Reporter:
    """Sends messages while it runs."""

    def __init__(
        self,
        server: SoughtServer,
        reports: Reports,
        instructed: Callable[[Instructions, bytes], None],
        *,
        news: asyncio.Event | None = None,
        pauses: tuple[float, float] = PAUSES,
        least: float = LEAST_SECONDS,
        spread: float = SPREAD_SECONDS,
    ) -> None:
        """Prepare without I/O.

        Args:
            server: the controller.
            reports: what to tell.
            instructed: called with the instructions of each answer and the policy's key.
            news: set when there is a new user, as :meth:`hurry` does.
            pauses: seconds after failures, as :data:`PAUSES`.
            least: seconds between messages, as :data:`LEAST_SECONDS`.
            spread: seconds until another controller is told, as :data:`SPREAD_SECONDS`.
        """
        self.instructions = Instructions()
        """what is to be done, as the last answer says"""
        self._naming = ""
        self._server = server
        self._reports = reports
        self._instructed = instructed
        self._pauses = pauses
        self._least = least
        self._spread = spread
        self._hurry = news or asyncio.Event()

    def hurry(self) -> None:
        """Have the next message sent soon: there is a new user."""
        self._hurry.set()

    async def run(self) -> None:
        """Send messages until cancelled."""
        failures = 0
        async with open_session() as session:
            calls = ControllerCalls(self._server, session)
            while True:
                try:
                    more = await self._exchange(calls)
                except (aiohttp.ClientError, OSError, ValueError) as error:
                    failures += 1
                    REPORTS.labels("failed").inc()
                    pause = pause_after(error, failures, self._pauses)
                    tell = log.warning if failures == 1 else log.debug
                    tell("the latency controller was not told", error=told(error), failures=failures, pause=pause)
                    if await self._another(error, pause):
                        log.info("there is another latency controller", failures=failures)
                        failures = 0
                    continue
                if failures:
                    log.info("the latency controller is told again", failures=failures)
                failures = 0
                await self._until_next(more=more)

    async def _exchange(self, calls: ControllerCalls) -> bool:
        """Send one message and follow its answer; True if there is more to tell."""
        instructions = self.instructions
        self._hurry.clear()
        message = self._reports.message(
            boot_clock(),
            telling=bool(instructions.policy),
            addresses=instructions.tell_addresses,
            naming=self._naming,
        )
        self.instructions, key = await calls.post(
            ROUND_TRIPS_PATH,
            msgspec.json.encode(message),
            decode_instructions,
            seconds=ANSWER_SECONDS,
            most=MAX_BYTES,
        )
        REPORTS.labels("answered").inc()
        TELLING.set(bool(self.instructions.policy))
        if self.instructions.policy:
            self._naming = naming_of(self.instructions.key, self.instructions.identity)
            self._reports.arrived()
            TOLD.inc(sum(len(user.microseconds) for user in message.users))
        else:  # who has just begun may not know of it yet, and has taken in nothing
            self._reports.start_anew()
        self._instructed(self.instructions, key)
        return len(message.users) == MAX_USERS and self._reports.waiting

    async def _another(self, error: Exception, pause: float) -> bool:
        """Wait after a message that failed; return whether there is another controller by then, to be told at once."""
        if is_busy(error):
            await asyncio.sleep(pause)
            return False
        found = await self._server.another_within(pause)
        if found:
            await asyncio.sleep(jitter(0.0, self._spread))
        return found

    async def _until_next(self, *, more: bool) -> None:
        for_certain, unless_hurried = waits_after(self.instructions, more=more, least=self._least)
        await asyncio.sleep(for_certain)
        with suppress(TimeoutError):
            async with asyncio.timeout(unless_hurried):
                await self._hurry.wait()


def waits_after(instructions: Instructions, *, more: bool, least: float) -> tuple[float, float]:
    """Return how long to wait after a message: seconds for certain, and further ones until there is a new user.

    Args:
        instructions: those of the answer; without a policy nobody wants to hear of a new user.
        more: whether there is more to tell than the message had room for.
        least: seconds from one message to the next at least.
    """
    interval = instructions.interval
    if not instructions.policy:
        return interval, 0.0
    return min(least, interval), 0.0 if more else max(0.0, interval - least)
