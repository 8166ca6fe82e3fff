"""The duty of bandwidth: advertises what the node's link can carry, and measures how much of it is used."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import structlog

from agents.node import boot_clock
from agents.node.bandwidth import metrics
from agents.node.bandwidth.advertisement import Advertisement
from agents.node.bandwidth.links import NETWORK_CLASS, ROUTES, default_interface, link_of, octets, speed
from agents.node.bandwidth.utilisation import SAMPLE_SECONDS, UtilisationWindow
from agents.node.settings import NodeSettings
from berth.api.probereport import MAX_BITS_PER_SECOND, BandwidthReport
from berth.api.quantity import parse_quantity
from berth.kube.client import TRANSPORT_ERRORS, ApiClient
from berth.kube.errors import ApiError
from berth.runtime.component import run_together

log = structlog.get_logger(__name__)


class BandwidthDuty:
    """Bandwidth of one node."""

    def __init__(
        self,
        client: ApiClient,
        settings: NodeSettings,
        node: str,
        *,
        classes: Path = NETWORK_CLASS,
        routes: Path = ROUTES,
    ) -> None:
        """Prepare without I/O.

        Args:
            client: open API client.
            settings: the agent's.
            node: name of the node.
            classes: where interfaces are.
            routes: where the routing tables are.
        """
        self._chosen = settings.interface
        self._configured = int(parse_quantity(settings.bandwidth)) if settings.bandwidth else None
        self._advertisement = Advertisement(client, node)
        self._window = UtilisationWindow()
        self._classes, self._routes = classes, routes
        self._interface: str | None = None
        self._capacity = self._configured

    async def run(self) -> None:
        """Work until cancelled."""
        # Apart: an API server that is away holds up a patch for minutes.
        await run_together(self._sample_forever(), self._advertise_forever())

    async def _sample_forever(self) -> None:
        while True:
            self.sample(boot_clock.now())
            await asyncio.sleep(SAMPLE_SECONDS)

    async def _advertise_forever(self) -> None:
        while True:
            await self.advertise(boot_clock.now())
            await asyncio.sleep(SAMPLE_SECONDS)

    def sample(self, now: float) -> None:
        """Find the link and read its counters; ``now`` is by the boot clock, in seconds."""
        stated = self._chosen or default_interface(self._routes)
        if stated is None:
            return
        link = link_of(stated, self._classes)
        interface = link or stated
        if interface != self._interface:
            self._interface, self._capacity = interface, self._configured
        if link and not self._configured:
            # One without a carrier has no speed for a moment, and the same as before afterwards.
            self._capacity = speed(link, self._classes) or self._capacity
        self._window.add(now, interface, octets(interface, self._classes), self._capacity)
        use = self._window.utilisation(now)
        metrics.show(_text(interface), self._capacity, use.mean if use else None, use.deviation if use else None)

    async def advertise(self, now: float) -> None:
        """Write the capacity if that is due; failures are logged, counted and repeated."""
        capacity = self._capacity
        if capacity is None or not self._advertisement.due(capacity, now):
            return
        try:
            await self._advertisement.write(capacity, now)
        except (ApiError, *TRANSPORT_ERRORS) as error:
            metrics.ADVERTISEMENTS.labels("failed").inc()
            log.warning("bandwidth not advertised", error=str(error) or repr(error))
        else:
            metrics.ADVERTISEMENTS.labels("written").inc()

    def report(self) -> BandwidthReport | None:
        """Return what the node's report says of its link; None while there is none."""
        if self._interface is None:
            return None
        use = self._window.utilisation(boot_clock.now())
        return BandwidthReport(
            interface=_text(self._interface),
            capacity_bits_per_second=self._capacity,
            mean_bits_per_second=min(round(use.mean), MAX_BITS_PER_SECOND) if use else None,
            deviation_bits_per_second=min(round(use.deviation), MAX_BITS_PER_SECOND) if use else None,
            samples=use.samples if use else 0,
        )


def _text(interface: str) -> str:
    """An interface's name for people: bytes of it that are no text are shown as such."""
    return os.fsencode(interface).decode(errors="replace")
