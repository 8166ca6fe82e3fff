"""ProbeReports of the node agents, followed once for all NetworkTopologies.

They are about nodes, and so about the whole cluster: any NetworkTopology of any namespace may have its costs from them.
The kind need not be there, and may come and go: without it, or without a single report, this source is passed over.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar, Final

import structlog

from berth.api.conditions import ConditionUpdate
from berth.api.labels import WEIGHTS_NETPERF
from berth.api.networktopology import ANNOTATION_SOURCE, NetworkTopology
from berth.api.text import counted
from berth.kube.client import TRANSPORT_ERRORS
from berth.kube.errors import ApiError
from berth.kube.probe_reports import FRESH_AGE, PROBE_REPORTS, Report
from berth.kube.reflector import Reflector
from berth.runtime.component import run_together
from berth.runtime.operator import why_refused
from controllers.networktopology.node_medians import MAX_AGE
from controllers.networktopology.places import Places
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
from controllers.networktopology.sources.probe_measurements import CLOCK_TOLERANCE, read_reports
from controllers.networktopology.sources.reported_time import ReportedTime, clock_comparison
from controllers.networktopology.sources.steady_clock import Present, SteadyClock
from controllers.networktopology.sources.watches import Watches

log = structlog.get_logger(__name__)

CHECK_SECONDS: Final = 30.0
"""Seconds between two looks whether the kind is there."""
RETRY_SECONDS: Final = 5.0
"""Seconds to the next look while they cannot be read."""
ABSENT_CHECKS: Final = 2
"""Looks in a row that do not find a kind that was there, or may not read it, until it counts as absent: one may be the
answer of a load balancer, or of an API server that has just started and knows no rights yet."""
TELL_SECONDS: Final = 10.0
"""Seconds between two rounds of recomputing: thousands of agents write all the time."""
SETTLE_SECONDS: Final = FRESH_AGE
"""Seconds after the API server is heard, or heard again, in which old reports prove nothing: agents could not write
either, and those that did not notice write when theirs is as old."""
NAME: Final = "ProbeReports"
"""The source for people."""
_STANDS: Final = "what they said last counts until it is 15 minutes old"


@dataclass(frozen=True, slots=True)
class _Cached:
    """A reading, for the other NetworkTopologies that ask."""

    rounds: int
    places: Places
    moment: float
    reading: Reading


class ProbeReports(ClusterWideSource):
    """What the node agents measure."""

    choice: ClassVar[str] = "probereports"

    def __init__(self, around: Surroundings) -> None:
        """Start without knowing whether there are any."""
        super().__init__(around)
        self._reflector: Reflector[Report] | None = None
        self._watches = Watches()
        self._following: asyncio.Task[None] | None = None
        self._looked = False
        self._absences = 0
        self._problem = ""
        self._refusals = 0
        self._heard_since: float | None = None
        self._rounds = 0
        self._cached: _Cached | None = None
        self._clock = SteadyClock()
        self._reported = ReportedTime()
        self._one_at_a_time = asyncio.Lock()
        self._news = asyncio.Event()
        self._left_out = LeftOut(malformed="no round trip is like that", unknown="no such node exists")

    @classmethod
    def reading(cls, topology: NetworkTopology, places: Places, published: Published) -> Reading:
        """Return what the reports say; manifests alone have none."""
        if published.now is None:
            return Reading(SourceState.MISSING, NAME)
        reading = read_reports(published.reports, places, percentile=published.percentile, now=published.now)
        return _begun(topology, reading)

    async def read(self, key: TopologyKey, topology: NetworkTopology, places: Places) -> Reading:
        """Return what the reports say now, and tell of changes for ``key`` from now on."""
        self._served.add(key)
        reflector = self._reflector
        if reflector is None:
            if self._problem:
                absent = self._refusals >= ABSENT_CHECKS and not self._of_now(topology)
                state = SourceState.MISSING if absent else SourceState.FAILED
                return Reading(state, NAME, detail=self._problem)
            return Reading(SourceState.MISSING if self._looked else SourceState.PENDING, NAME)
        since = self._listen(reflector)
        if since is None:
            return Reading(SourceState.PENDING, NAME)
        reading = await self._latest(reflector, places)
        of_other_times = max(reading.stale, reading.mistimed)
        undecided = of_other_times > len(reading.measurements) and time.monotonic() - since < SETTLE_SECONDS
        ours = topology.weight_set(WEIGHTS_NETPERF) is not None and topology.status.source in (None, self.choice)
        if undecided and ours:
            # Costs that were measured stay while it is not known whether agents have stopped or could not write, and
            # while none has said what time it is.
            before = "most are of before the API server could be reached"
            future = "most are of the future by the clock of this controller"
            return Reading(SourceState.FAILED, NAME, detail=before if reading.stale >= reading.mistimed else future)
        refused = self._refused()
        return _begun(topology, replace(reading, detail=refused) if refused else reading)

    def _of_now(self, topology: NetworkTopology) -> bool:
        """Whether a NetworkTopology's costs are of reports that would count still, had a process before not ended."""
        status = topology.status
        if status.source != self.choice or status.data_time is None:
            return False
        return abs((self._clock.present().wall - status.data_time).total_seconds()) < MAX_AGE

    def _listen(self, reflector: Reflector[Report]) -> float | None:
        """Return since when the API server has answered without a break, be it with a refusal, in monotonic seconds."""
        if not (reflector.synced.is_set() and (reflector.healthy or reflector.refusal is not None)):
            self._heard_since = None
        elif self._heard_since is None:
            self._heard_since = time.monotonic()
        return self._heard_since

    async def _latest(self, reflector: Reflector[Report], places: Places) -> Reading:
        """Return what the reports say, worked out once for all who ask within a round."""
        async with self._one_at_a_time:
            cached = self._cached
            if (
                cached is None
                or (cached.rounds, cached.places) != (self._rounds, places)
                or time.monotonic() - cached.moment > TELL_SECONDS
            ):
                rounds, reports = self._rounds, list(reflector.objects.values())

                present = self._clock.present()
                self._reported.hear(reflector.objects, present.moment)
                before = cached.reading.distrusted if cached is not None else frozenset()

                def at(now: datetime) -> Reading:
                    leads = self._reported.leads(now, present.moment)
                    return read_reports(
                        reports, places, percentile=self._percentile, now=now, leads=leads, distrusted=before
                    )

                def worked_out(reported: datetime | None) -> Reading:
                    reading = self._timed(at, present, reported)
                    self._left_out.text(reading)
                    return reading

                # In a thread: 5000 reports take most of a second.
                reading = await asyncio.to_thread(worked_out, self._reported.at(present.moment))
                cached = self._cached = _Cached(rounds, places, time.monotonic(), reading)
            return cached.reading

    def _timed(self, at: Callable[[datetime], Reading], present: Present, reported: datetime | None) -> Reading:
        """Return the reading at that time at which most measurements count: by the own clock, or by those of nodes."""
        reading = self._clock.read(present, at)
        error = 0.0 if reported is None else (present.wall - reported).total_seconds()
        if reported is None or abs(error) <= CLOCK_TOLERANCE:
            return reading
        by_nodes = at(reported)
        if len(by_nodes.measurements) <= len(reading.measurements):
            return reading
        return replace(by_nodes, clock_error=error)

    def availability(self, reading: Reading, instead: str) -> ConditionUpdate:
        """Return the condition SourceAvailable."""
        match reading.state:
            case SourceState.READ if reading.detail:
                text = f"ProbeReports are not followed: {reading.detail}; {_STANDS}{self._unused(reading)}"
                return available(False, "ProbeReportsUnreadable", text)
            case SourceState.READ if reading.clock_error:
                clocks = f"{clock_comparison(reading.clock_error)}, whose time counts"
                text = f"{reading.name}{self._unused(reading)}. {clocks}"
                return available(True, REASON_CLOCKS_DIFFER, text)
            case SourceState.READ:
                reason = REASON_PARTLY_USABLE if reading.malformed else "ProbeReportsRead"
                return available(True, reason, f"{reading.name}{self._unused(reading)}")
            case SourceState.MISSING | SourceState.EMPTY if reading.detail:
                return available(False, "ProbeReportsUnreadable", f"{reading.detail}; {instead}")
            case SourceState.MISSING:
                text = f"There are no ProbeReports; run the node agents, or name another source; {instead}"
                return available(False, "NoProbeReports", text)
            case SourceState.TOO_FEW:
                text = (
                    f"{reading.name} are too few to begin with: {reading.coverage}; costs come from them from nine "
                    f"tenths of either on, or at once with the annotation {ANNOTATION_SOURCE}: {self.choice}; {instead}"
                )
                return available(False, "TooFewProbeReports", text)
            case SourceState.EMPTY if reading.mistimed > reading.stale:
                text = (
                    "ProbeReports are of the future; see whether the clock of this controller is behind, or those of "
                    f"the nodes ahead{self._unused(reading)}; {instead}"
                )
                return available(False, REASON_CLOCKS_DIFFER, text)
            case SourceState.EMPTY if reading.stale:
                text = (
                    "No ProbeReport is of the last 15 minutes; see whether the node agents run, and whether the clock "
                    f"of this controller is right; {instead}"
                )
                return available(False, "ProbeReportsStale", text)
            case SourceState.EMPTY:
                text = f"ProbeReports have no usable measurement{self._unused(reading)}; {instead}"
                return available(False, "NoUsableMeasurements", text)
            case _:
                text = f"ProbeReports cannot be used: {reading.detail}; the computed weights stay as they are"
                return available(False, "ProbeReportsUnreadable", text)

    async def run(self) -> None:
        """Follow the kind while it is there, for ever."""
        self._context.checks.add_health("watch probereports", self._silence)
        self._context.checks.add_ready("sync probereports", self._refused)
        await run_together(self._watches.run(), self._tell(), self._look_again_and_again())

    async def _look_again_and_again(self) -> None:
        while True:
            await self._look()
            await asyncio.sleep(RETRY_SECONDS if self._problem else CHECK_SECONDS)

    async def _look(self) -> None:
        """Begin or end to follow, as the kind is there or not."""
        try:
            async for _ in self._client.list_pages(PROBE_REPORTS, limit=1):
                break
        except (ApiError, *TRANSPORT_ERRORS) as error:
            if isinstance(error, ApiError) and error.not_found:
                self._absent()
            elif self._reflector is None:
                self._unreadable(error)
        else:
            self._absences, self._refusals, self._problem = 0, 0, ""
            if self._reflector is None:
                self._follow()
        self._looked = True
        if self._reflector is not None:
            self._listen(self._reflector)

    def _unreadable(self, error: Exception) -> None:
        """Remember why; without the right to read them they count as absent, as before there was such a right."""
        self._refusals = self._refusals + 1 if isinstance(error, ApiError) and error.status == 403 else 0
        if self._refusals == ABSENT_CHECKS:
            self._news.set()
        before, self._problem = self._problem, why_refused(PROBE_REPORTS, error)
        if not before:
            log.warning("no costs from ProbeReports", reason=self._problem)

    def _follow(self) -> None:
        self._reflector = Reflector(self._client, PROBE_REPORTS)
        self._reflector.add_batch_handler(self._news.set)
        self._following = self._watches.start(self._reflector.run())

    def _absent(self) -> None:
        self._problem = ""
        self._absences += 1
        if self._following is not None and self._absences >= ABSENT_CHECKS:
            self._following.cancel()
            self._reflector = self._following = None
            self._news.set()

    async def _tell(self) -> None:
        """Have every NetworkTopology looked at after changes, those of some seconds together, by one new reading."""
        while True:
            await self._news.wait()
            self._news.clear()
            self._rounds += 1
            if self._reflector is not None:
                self._reported.hear(self._reflector.objects, self._clock.present().moment)
            self._tell_all()
            await asyncio.sleep(TELL_SECONDS)

    def _silence(self) -> str | None:
        reflector = self._reflector
        if reflector is None or reflector.healthy or reflector.refusal is not None:
            return None  # where they may not be read any more, a process that begins anew knows none
        return f"no response from the API server for {reflector.age:.0f} s"

    def _unused(self, reading: Reading) -> str:
        """Say what does not count, and why; empty when all does."""
        text = self._left_out.text(reading)
        if reading.stale:
            text += f". Not used because older than 15 minutes: {counted(reading.stale, 'measurement')}"
        return text

    def _refused(self) -> str | None:
        """Why reports that were followed may not be read any more; None if they may."""
        refusal = None if self._reflector is None else self._reflector.refusal
        return None if refusal is None else why_refused(PROBE_REPORTS, refusal)


def _begun(topology: NetworkTopology, reading: Reading) -> Reading:
    """Return the reading as one that is not used yet, while too little is measured to begin with.

    What a NetworkTopology has its costs from is in its status, so that a controller that is restarted goes on.
    """
    choice = ProbeReports.choice
    begun = choice in (topology.status.source, topology.metadata.annotations.get(ANNOTATION_SOURCE))
    if begun or not reading.usable or reading.coverage is None or reading.coverage.enough:
        return reading
    return replace(reading, state=SourceState.TOO_FEW)
