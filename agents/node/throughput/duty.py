"""The duty of throughput: measures each peer once an hour, and receives what peers send."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final

import structlog

from agents.node.probing.report import MeasuredThroughput
from agents.node.settings import NodeSettings
from agents.node.throughput.receiver import Receiver
from agents.node.throughput.sender import RefusedError, measure
from agents.node.throughput.turns import Turns, pause
from berth.kube.jitter import jitter
from berth.runtime.component import run_together

log = structlog.get_logger(__name__)

MEGABYTE: Final = 1_000_000


class ThroughputDuty:
    """Throughput from one node to its peers."""

    def __init__(self, settings: NodeSettings, peers: Callable[[], Mapping[str, str]]) -> None:
        """Prepare; listen, if tests are allowed.

        Args:
            settings: the agent's.
            peers: says the present peers and their addresses.

        Raises:
            OSError: the port is taken.
        """
        self._limit = settings.throughput_megabytes * MEGABYTE
        self._port = settings.throughput_port
        self._peers = peers
        self._turns = Turns()
        self._found: dict[str, MeasuredThroughput] = {}
        self._receiver = Receiver(settings.address, self._port, self._limit) if self._limit else None

    async def run(self) -> None:
        """Work until cancelled; without an allowance there is nothing to do."""
        if self._receiver is not None:
            await run_together(self._receiver.run(), self._measure_forever())

    async def _measure_forever(self) -> None:
        while True:
            # Agents start together; their tests shall not.
            await asyncio.sleep(pause(len(self._peers())) * jitter(0.5, 1.5))
            await self.measure_next(time.monotonic())

    async def measure_next(self, now: float) -> None:
        """Measure the peer whose turn it is, if there is one; ``now`` is in monotonic seconds."""
        peers = self._peers()
        name = self._turns.take(peers, now)
        if name is None:
            return
        try:
            found = await measure(peers[name], self._port, limit=self._limit)
        except (RefusedError, OSError) as error:
            log.info("throughput not measured", peer=name, reason=str(error) or repr(error))
        else:
            self._found[name] = MeasuredThroughput(found.bits_per_second, datetime.now(UTC))

    def found(self) -> Mapping[str, MeasuredThroughput]:
        """Return the last result by present peer."""
        peers = self._peers()
        self._found = {name: result for name, result in self._found.items() if name in peers}
        return self._found
