"""The duty of probing: finds peers, has them measured, reports what is measured."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final

import structlog

from agents.node import boot_clock
from agents.node.probing import metrics
from agents.node.probing.endpoints import AgentPlace, agent_places
from agents.node.probing.measurements import Measurements
from agents.node.probing.messages import Order
from agents.node.probing.process import ProberProcess
from agents.node.probing.publication import Publication
from agents.node.probing.report import MeasuredThroughput, Moment, status_of
from agents.node.probing.report_writer import ReportWriter
from agents.node.probing.rounds import Round, Target
from agents.node.probing.sampling import NodePlace, choose_peers
from agents.node.probing.user_probes import FoundUser, UserTarget
from agents.node.settings import NodeSettings
from berth.api.probereport import BandwidthReport
from berth.kube.client import TRANSPORT_ERRORS
from berth.kube.endpoint_slices import ENDPOINT_SLICES, LABEL_SERVICE
from berth.kube.errors import ApiError
from berth.kube.reflector import Reflector
from berth.runtime.component import ComponentContext, run_together

log = structlog.get_logger(__name__)

SILENCE_SECONDS: Final = 300.0
"""Seconds without a round after which the agent is not healthy: no prober process measures anything. Where rounds are
long, and a process that hangs is found later, as long as finding three of these takes."""

CHOICE_PAUSE: Final = 10.0
"""Times as long as a choice of peers took until the next: agents come and go in crowds, as in a rollout."""


class ProbingDuty:
    """Probes other nodes and reports it."""

    def __init__(
        self,
        context: ComponentContext,
        settings: NodeSettings,
        node: str,
        bandwidth: Callable[[], BandwidthReport | None],
        throughput: Callable[[], Mapping[str, MeasuredThroughput]],
        user_found: Callable[[FoundUser], None],
    ) -> None:
        """Prepare without I/O.

        Args:
            context: what the process provides.
            settings: the agent's.
            node: name of the node.
            bandwidth: says what is reported of the node's link.
            throughput: says what was found of peers, by name.
            user_found: called with what came of each user.
        """
        self.addresses: Mapping[str, str] = {}
        """Addresses of the peers, by name."""
        self._bandwidth, self._throughput = bandwidth, throughput
        self._settings = settings
        self._node = node
        self._zone = ""
        self._measurements = Measurements()
        self._metrics = metrics.PeerMetrics(node)
        self._writer = ReportWriter(context.client, node)
        self._endpoints = Reflector(
            context.client,
            ENDPOINT_SLICES,
            namespace=settings.namespace,
            label_selector=f"{LABEL_SERVICE}={settings.service}",
        )
        self._agents_changed, self._round_done = asyncio.Event(), asyncio.Event()
        self._endpoints.add_batch_handler(self._agents_changed.set)
        self._last_round = time.monotonic()
        options = {
            "address": settings.address,
            "port": settings.port,
            "interval": settings.interval,
            "rate": settings.rate,
            "user-rate": settings.user_rate,
        }
        self._process = ProberProcess(
            [f"--{name}={value}" for name, value in options.items()],
            interval=settings.interval,
            rate=settings.rate,
            peers=settings.peers,
            measured=self._measured,
            restarted=metrics.RESTARTS.inc,
            found=user_found,
        )
        # While the API server is away the peers known last are measured; another agent would not know any.
        context.watch_without_restart("endpointslices", self._endpoints)
        context.checks.add_health("prober", self._health)

    async def run(self) -> None:
        """Work until cancelled."""
        self._last_round = time.monotonic()
        await run_together(self._endpoints.run(), self._follow_agents(), self._process.run(), self._report())

    def measure_user(self, target: UserTarget) -> bool:
        """Have a user measured once; returns whether anybody can."""
        return self._process.ask(target)

    def _health(self) -> str | None:
        silent = time.monotonic() - self._last_round
        longest = max(SILENCE_SECONDS, 3 * self._process.silence)
        return f"no round of probes for {silent:.0f} s" if silent > longest else None

    async def _follow_agents(self) -> None:
        await self._endpoints.synced.wait()
        while True:
            self._agents_changed.clear()
            begun = time.monotonic()
            places = agent_places(self._endpoints.objects.values(), self._settings.port)
            # Half a second with 5000 nodes in 200 zones.
            peers = await asyncio.to_thread(_choose, self._node, places, self._settings.peers)
            self._zone = places[self._node].zone if self._node in places else ""
            self.addresses = {name: places[name].address for name in peers}
            self._measurements.keep({name: places[name].zone for name in peers})
            targets = (Target(name, places[name].address, places[name].port) for name in peers)
            self._process.give(Order(tuple(targets)))
            # At once for one that comes alone: the next round probes it, which begins within one interval.
            pause = CHOICE_PAUSE * (time.monotonic() - begun)
            await asyncio.sleep(min(pause, self._settings.interval / 2))
            await self._agents_changed.wait()

    def _measured(self, measured: Round) -> None:
        self._last_round = time.monotonic()
        metrics.ROUNDS.inc()
        if not self._measurements.add(measured):
            metrics.ROUNDS_DROPPED.inc()
        self._metrics.show(self._measurements.peers(boot_clock.now()))
        self._round_done.set()

    async def _report(self) -> None:
        publication = Publication()
        while True:
            await self._round_done.wait()
            self._round_done.clear()
            now = Moment(datetime.now(UTC), boot_clock.now())
            peers = self._measurements.peers(now.boot)
            status = status_of(
                self._zone,
                peers,
                now,
                rounds_dropped=self._measurements.rounds_dropped,
                bandwidth=self._bandwidth(),
                throughput=self._throughput(),
            )
            if not publication.due(status, now.boot, settling=self._measurements.settling(now.boot)):
                continue
            publication.tried(now.boot)
            try:
                await self._writer.write(status)
            except (ApiError, *TRANSPORT_ERRORS) as error:
                metrics.WRITES.labels("failed").inc()
                log.warning("ProbeReport not written", error=str(error) or repr(error))
            else:
                metrics.WRITES.labels("written").inc()
                publication.written(status)


def _choose(node: str, places: dict[str, AgentPlace], limit: int) -> tuple[str, ...]:
    return choose_peers(node, (NodePlace(name, place.zone) for name, place in places.items()), limit)
