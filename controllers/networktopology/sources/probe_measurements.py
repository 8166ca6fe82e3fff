"""What ProbeReports say about round trips between nodes; what cannot be true is left out and counted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from berth.api.base import read_timestamp
from berth.api.probereport import MAX_MICROSECONDS
from berth.api.text import counted
from berth.kube.probe_reports import FRESH_AGE, Report, ReportedPeer
from controllers.networktopology.aggregation import inside_zones
from controllers.networktopology.node_medians import MAX_AGE, latencies, of_several, pair_figures
from controllers.networktopology.places import Places
from controllers.networktopology.sources.base import (
    UNREACHABLE,
    LatenciesByLevel,
    Measurement,
    Percentile,
    Reading,
    SourceState,
)
from controllers.networktopology.sources.coverage import coverage

CLOCK_TOLERANCE: Final = 60.0
"""Seconds by which a node's clock may be ahead."""
LAG_TOLERANCE: Final = MAX_AGE - FRESH_AGE
"""Seconds by which it may be behind: what it reports would be too old before it has reported anew."""
TRUST_MARGIN: Final = 30.0
"""Seconds by which a clock that was wrong must be better than that to count again. Reports come some seconds sooner or
later after the last probe, and a clock at the limit would be right and wrong by turns."""


class _Gathered:
    """What was read so far."""

    def __init__(
        self, percentile: Percentile, now: datetime, leads: Mapping[str, float], distrusted: Collection[str]
    ) -> None:
        self._field = f"{percentile}_microseconds"
        self._now = now
        self._leads = leads
        self._distrusted = distrusted
        self.measurements: list[Measurement] = []
        self.malformed: list[str] = []
        self.stale = 0
        self.mistimed = 0
        self.time: datetime | None = None
        self.nodes = 0
        self.distrusted: set[str] = set()

    def add(self, origin: str, peers: Iterable[ReportedPeer]) -> None:
        before = len(self.measurements)
        timed = [(peer, read_timestamp(peer.last_probe_time)) for peer in peers]
        known = [time for _, time in timed if time is not None]
        if not known:
            lead = 0.0
        elif origin in self._leads:
            lead = self._leads[origin]
        else:
            lead = max(0.0, (max(known) - self._now).total_seconds())
        margin = TRUST_MARGIN if origin in self._distrusted else 0.0
        ahead, behind = lead > CLOCK_TOLERANCE - margin, -lead > LAG_TOLERANCE - margin
        if ahead or behind:
            self.distrusted.add(origin)
        for peer, time in timed:
            # Without anything that the node says: it may say something else each time, and other words are a write of
            # every NetworkTopology's status.
            if time is None:
                self.malformed.append(f"{origin} says no time that can be read")
            elif ahead:
                self.mistimed += 1
                self.malformed.append(f"{origin} probed more than a minute from now")
            elif behind:
                self.stale += 1
            else:
                self._add_peer(origin, peer, time)
        self.nodes += len(self.measurements) > before

    def _add_peer(self, origin: str, peer: ReportedPeer, time: datetime) -> None:
        age = (self._now - time).total_seconds()
        if age >= MAX_AGE:
            self.stale += 1
            return
        value: Any = getattr(peer, self._field)
        if value is not None and not 0 < value <= MAX_MICROSECONDS:
            self.malformed.append(f"{origin} says {'more than a minute' if value > 0 else 'less than a microsecond'}")
            return
        if value is not None and (self.time is None or time > self.time):
            self.time = time
        self.measurements.append(Measurement(origin, peer.node, UNREACHABLE if value is None else value, max(0.0, age)))


def read_reports(
    reports: Iterable[Report],
    places: Places,
    *,
    percentile: Percentile,
    now: datetime,
    leads: Mapping[str, float] | None = None,
    distrusted: Collection[str] = (),
) -> Reading:
    """Return what the reports say now, with the latencies between places.

    Left out are reports and peers of nodes that the cluster does not have, what a node says about itself, what is older
    than :data:`~.node_medians.MAX_AGE`, all that a node says whose clock is wrong, and figures that no round trip has.

    Args:
        reports: in any order.
        places: where the nodes are.
        percentile: which one of each peer counts.
        now: the present.
        leads: seconds by which the clocks of nodes were ahead of that when their reports came in. A report of others
            may be of any age: theirs are ahead by as much as their last probe is, at least.
        distrusted: nodes whose clock was wrong at the last look.
    """
    gathered = _Gathered(percentile, now, leads or {}, distrusted)
    unknown: list[str] = []
    there = False
    for report in sorted(reports, key=lambda item: item.metadata.name):
        there = True
        origin = report.metadata.name
        if origin not in places.nodes:
            unknown.append(origin)
            continue
        peers = {peer.node: peer for peer in report.status.peers if peer.node != origin}
        unknown += (f"peers of {origin}" for node in peers if node not in places.nodes)
        gathered.add(origin, (peer for node, peer in sorted(peers.items()) if node in places.nodes))
    zone_figures = pair_figures(gathered.measurements, places.zone_of)
    answered = any(item.microseconds < UNREACHABLE for item in gathered.measurements)
    return Reading(
        state=SourceState.READ if answered else SourceState.EMPTY if there else SourceState.MISSING,
        name=f"ProbeReports of {counted(gathered.nodes, 'node')}",
        measurements=tuple(gathered.measurements),
        latencies=LatenciesByLevel(
            latencies(pair_figures(gathered.measurements, places.region_of_node)),
            latencies(zone_figures),
            latencies(of_several(pair_figures(inside_zones(gathered.measurements, places), places.segment_of))),
        ),
        continuous=True,
        coverage=coverage(gathered.measurements, zone_figures, places),
        time=gathered.time,
        malformed=tuple(gathered.malformed),
        unknown_nodes=tuple(unknown),
        stale=gathered.stale,
        mistimed=gathered.mistimed,
        distrusted=frozenset(gathered.distrusted),
    )


def roughly(seconds: float) -> str:
    """Say how much time that is at least, in steps, so that the sentence stays the same; a minute at the least."""
    steps = ((86_400.0, "a day"), (3600.0, "an hour"), (900.0, "15 minutes"))
    return next((name for least, name in steps if seconds >= least), "a minute")
