"""A Prometheus server that has latencies from some meter, asked with one query for all NetworkTopologies.

It is named in the settings of the controller, not in objects: it is about the whole cluster, and a tenant who could
name a server would have the controller send requests for him. Without one, this source is passed over.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar, Final

import structlog
from typing_extensions import override

from berth.api.conditions import ConditionUpdate
from berth.api.labels import WEIGHTS_NETPERF
from berth.api.networktopology import NetworkTopology
from controllers.networktopology import metrics
from controllers.networktopology.node_medians import MAX_AGE
from controllers.networktopology.places import Places
from controllers.networktopology.sources import prometheus_http
from controllers.networktopology.sources.base import (
    REASON_CLOCKS_DIFFER,
    REASON_PARTLY_USABLE,
    LeftOut,
    Published,
    Reading,
    SourceState,
    Surroundings,
    TopologyKey,
    available,
)
from controllers.networktopology.sources.cluster_wide import ClusterWideSource
from controllers.networktopology.sources.prometheus_answer import PrometheusError, Series, read_series
from controllers.networktopology.sources.prometheus_server import PrometheusServer
from controllers.networktopology.sources.steady_clock import Present, SteadyClock

log = structlog.get_logger(__name__)

POLL_SECONDS: Final = 30.0
"""Seconds from the end of a query to the next."""
NAME: Final = "Prometheus"
"""The source for people."""
_STANDS: Final = "what it said last counts until that is 15 minutes old"


@dataclass(frozen=True, slots=True, eq=False)
class _Vector:
    """What was last answered."""

    series: list[Series]
    present: Present
    """when it came"""


class Prometheus(ClusterWideSource):
    """What a Prometheus server has."""

    choice: ClassVar[str] = "prometheus"

    def __init__(self, around: Surroundings) -> None:
        """Start without an answer."""
        super().__init__(around)
        self._server = around.settings.prometheus
        self._vector: _Vector | None = None
        self._problem = ""
        self._started = time.monotonic()
        self._cached: tuple[_Vector, Places, Reading] | None = None
        self._left_out = LeftOut(malformed="no round trip is like that", unknown="the cluster has no such place")
        self._one_at_a_time = asyncio.Lock()
        self._clock = SteadyClock()

    @classmethod
    @override
    def reading(cls, topology: NetworkTopology, places: Places, published: Published) -> Reading:
        """Return that there is none: manifests name no server."""
        return Reading(SourceState.MISSING, NAME)

    async def read(self, key: TopologyKey, topology: NetworkTopology, places: Places) -> Reading:
        """Return what was last answered, and tell of changes for ``key`` from now on."""
        self._served.add(key)
        server = self._server
        if server is None:
            return Reading(SourceState.MISSING, NAME)
        vector = self._vector
        if time.monotonic() - (self._started if vector is None else vector.present.moment) >= MAX_AGE:
            stale = 0 if vector is None else len(vector.series)
            return Reading(SourceState.EMPTY, NAME, stale=stale, detail=self._problem)
        if vector is None and not self._problem:
            return Reading(SourceState.PENDING, NAME)
        if vector is None:
            # Only costs that were measured are worth waiting with: others would be the same without Prometheus.
            measured = topology.weight_set(WEIGHTS_NETPERF) is not None
            return Reading(SourceState.FAILED if measured else SourceState.EMPTY, NAME, detail=self._problem)
        async with self._one_at_a_time:
            if self._cached is None or self._cached[:2] != (vector, places):

                def at(now: datetime) -> Reading:
                    return read_series(vector.series, places, query=server.query, now=now)

                def worked_out() -> Reading:
                    reading = self._clock.read(vector.present, at)
                    self._left_out.text(reading)
                    return reading

                # In a thread: a hundred thousand pairs take a second.
                found = await asyncio.to_thread(worked_out)
                self._cached = vector, places, found
            return replace(self._cached[2], detail=self._problem)

    def availability(self, reading: Reading, instead: str) -> ConditionUpdate:
        """Return the condition SourceAvailable."""
        match reading.state:
            case SourceState.MISSING:
                text = f"No Prometheus server is named; start the controller with --prometheus-url; {instead}"
                return available(False, "PrometheusNotConfigured", text)
            case SourceState.READ if reading.detail:
                text = f"Prometheus gives no new answer: {reading.detail}; {_STANDS}{self._left_out.text(reading)}"
                return available(False, "PrometheusUnreadable", text)
            case SourceState.READ:
                reason = REASON_PARTLY_USABLE if reading.malformed else "PrometheusRead"
                return available(True, reason, f"{reading.name}{self._left_out.text(reading)}")
            case SourceState.EMPTY if reading.stale:
                text = f"Prometheus has given no answer for 15 minutes: {reading.detail}; {instead}"
                return available(False, "PrometheusStale", text)
            case SourceState.EMPTY if reading.detail:
                text = f"Prometheus cannot be read: {reading.detail}; {instead}"
                return available(False, "PrometheusUnreadable", text)
            case SourceState.EMPTY if reading.mistimed:
                text = (
                    f"{reading.name} answers with another time than the clock of this controller has; set both right"
                    f"{self._left_out.text(reading)}; {instead}"
                )
                return available(False, REASON_CLOCKS_DIFFER, text)
            case SourceState.EMPTY:
                text = f"{reading.name} has no usable figure{self._left_out.text(reading)}; {instead}"
                return available(False, "NoUsableMeasurements", text)
            case _:
                text = f"Prometheus cannot be read: {reading.detail}; the computed weights stay as they are"
                return available(False, "PrometheusUnreadable", text)

    async def run(self) -> None:
        """Ask again and again, for ever; without a server wait."""
        if self._server is None:
            await super().run()
            return
        while True:
            await self._ask(self._server)
            await asyncio.sleep(POLL_SECONDS)

    async def _ask(self, server: PrometheusServer) -> None:
        """Ask once, and have everybody who is served looked at."""
        before = self._problem
        try:
            series = await prometheus_http.ask(server)
        except PrometheusError as error:
            self._problem = str(error)
            metrics.PROMETHEUS_QUERIES.labels("failed").inc()
            if not before:
                log.warning("no answer from Prometheus", reason=self._problem)
        else:
            self._vector, self._problem = _Vector(series, self._clock.present()), ""
            metrics.PROMETHEUS_QUERIES.labels("answered").inc()
            if before:
                log.info("Prometheus answers again")
        self._tell_all()
