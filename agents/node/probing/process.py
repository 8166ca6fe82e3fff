"""Keeps the prober process running: starts it, hands it orders, reads its rounds, and starts another when it fails."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from typing import Final, cast

import structlog

from agents.node.probing.messages import Order, decode_output, encode_order, encode_user
from agents.node.probing.rounds import Round, longest_round
from agents.node.probing.user_probes import FoundUser, UserTarget

log = structlog.get_logger()

RESTART_SECONDS: Final = (1.0, 60.0)
"""Pause before the first and, doubled each time, the last start of a process that measures nothing."""
STALL_SECONDS: Final = 60.0
"""A process that says nothing for as long beyond its interval and its longest round is ended: it hangs."""


class ProberProcess:
    """The prober process, and its successors."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        interval: float,
        rate: float,
        peers: int,
        measured: Callable[[Round], None],
        restarted: Callable[[], None],
        found: Callable[[FoundUser], None] = lambda _found: None,
        command: Sequence[str] = (sys.executable, "-m", "agents.node.probing.prober"),
        pauses: tuple[float, float] = RESTART_SECONDS,
        stall: float = STALL_SECONDS,
    ) -> None:
        """Prepare.

        Args:
            arguments: options of the prober.
            interval: seconds from one round to the next.
            rate: probes a second at most.
            peers: most that an order has.
            measured: called with every round.
            restarted: called each time a process has ended by itself or hung.
            found: called with what came of each user.
            command: what to start.
            pauses: least and greatest seconds before a new start.
            stall: seconds beyond the interval and the longest round after which a silent process hangs.
        """
        self._command = (*command, *arguments)
        self.silence = interval + longest_round(peers, rate) + stall
        """Seconds without a word after which a process is ended."""
        self._measured = measured
        self._restarted = restarted
        self._found = found
        self._pauses = pauses
        self._order = Order(())
        self._process: Process | None = None

    def give(self, order: Order) -> None:
        """Have this order followed from the next round on, also by a process that is started later."""
        self._order = order
        if self._process is not None:
            _write(self._process, encode_order(order))

    def ask(self, target: UserTarget) -> bool:
        """Have a user measured once; returns whether there is a process to do it."""
        if self._process is None:
            return False
        _write(self._process, encode_user(target))
        return True

    async def run(self) -> None:
        """Keep a process running until cancelled."""
        least, greatest = self._pauses
        pause = least
        while True:
            rounds, reason = await self._one_process()
            pause = least if rounds else min(2 * pause, greatest)
            self._restarted()
            log.warning("prober process ended", reason=reason, rounds=rounds, restart_seconds=pause)
            await asyncio.sleep(pause)

    async def _one_process(self) -> tuple[int, str]:
        """Run one until it ends: how many rounds it measured, and why it ended."""
        try:
            process = await asyncio.create_subprocess_exec(*self._command, stdin=PIPE, stdout=PIPE, limit=1 << 20)
        except OSError as error:  # no descriptor, memory or process is left; other duties go on without
            return 0, f"not started: {error}"
        self._process = process
        rounds, lines = 0, cast(StreamReader, process.stdout)
        loop = asyncio.get_running_loop()
        try:
            _write(process, encode_order(self._order))
            due = loop.time() + self.silence
            while True:
                try:
                    # Not asyncio.wait_for: that of Python 3.11 swallows a cancellation that meets what it waits for.
                    async with asyncio.timeout_at(due):
                        line = await lines.readline()
                    if not line:
                        return rounds, f"exit status {await process.wait()}"
                    measured = decode_output(line)
                except TimeoutError:
                    return rounds, f"silent for {self.silence:g} s"
                except ValueError as error:  # also a line that is too long
                    return rounds, f"said what is no round: {error!r}"
                if isinstance(measured, FoundUser):
                    self._found(measured)
                    continue
                self._measured(measured)
                rounds += 1
                due = loop.time() + self.silence
        finally:
            self._process = None
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await asyncio.shield(process.wait())


def _write(process: Process, line: bytes) -> None:
    # A process that has just died is noticed where its rounds are read.
    with contextlib.suppress(ConnectionError, RuntimeError):
        cast(StreamWriter, process.stdin).write(line)
