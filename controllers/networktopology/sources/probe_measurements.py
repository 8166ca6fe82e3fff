"""What ProbeReports say about round trips between nodes; what cannot be true is left out and counted."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

import msgspec

from berth.api.base import read_timestamp
from berth.api.labels import BERTH_GROUP
from berth.api.probereport import KIND, MAX_MICROSECONDS, MAX_NODE, PLURAL
from berth.api.text import counted, one_line
from berth.kube.objects import ObjectMeta
from berth.kube.resources import Resource
from controllers.networktopology.node_medians import MAX_AGE, latencies, pair_figures
from controllers.networktopology.places import Places
from controllers.networktopology.sources.base import UNREACHABLE, Measurement, Percentile, Reading, SourceState
from controllers.networktopology.sources.coverage import coverage

CLOCK_TOLERANCE: Final = 60.0
"""Seconds by which a node's clock may be ahead."""


class ReportedPeer(msgspec.Struct, rename="camel", gc=False):
    """What a report says about one peer, as far as costs come from it."""

    node: str = ""
    p50_microseconds: int | None = None
    p90_microseconds: int | None = None
    p99_microseconds: int | None = None
    last_probe_time: str = ""


class ReportStatus(msgspec.Struct, gc=False):
    """Status of a report."""

    peers: list[ReportedPeer] = []


class Report(msgspec.Struct, gc=False):
    """ProbeReport, cut down to what costs come from."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    status: ReportStatus = msgspec.field(default_factory=ReportStatus)


PROBE_REPORTS: Final = Resource(BERTH_GROUP, "v1alpha1", PLURAL, KIND, Report, namespaced=False)
"""ProbeReports as sources of measurements."""


class _Gathered:
    """What was read so far."""

    def __init__(self, percentile: Percentile, now: datetime) -> None:
        self._field = f"{percentile}_microseconds"
        self._now = now
        self.measurements: list[Measurement] = []
        self.malformed: list[str] = []
        self.stale = 0
        self.mistimed = 0
        self.time: datetime | None = None
        self.nodes = 0

    def add(self, origin: str, peers: Iterable[ReportedPeer]) -> None:
        before = len(self.measurements)
        for peer in peers:
            self._add_peer(origin, peer)
        self.nodes += len(self.measurements) > before

    def _add_peer(self, origin: str, peer: ReportedPeer) -> None:
        time = read_timestamp(peer.last_probe_time)
        age = -math.inf if time is None else (self._now - time).total_seconds()
        if time is None or age < -CLOCK_TOLERANCE:
            self.mistimed += time is not None
            # Without the time: other words with each report would be a write of every NetworkTopology's status.
            when = "at no time that can be read" if time is None else f"more than {roughly(-age)} from now"
            self.malformed.append(f"{_named(origin, peer.node)} was probed {when}")
            return
        if age >= MAX_AGE:
            self.stale += 1
            return
        value: Any = getattr(peer, self._field)
        if value is not None and not 0 < value <= MAX_MICROSECONDS:
            self.malformed.append(f"{_named(origin, peer.node)} took {value} microseconds")
            return
        if value is not None and (self.time is None or time > self.time):
            self.time = time
        self.measurements.append(Measurement(origin, peer.node, UNREACHABLE if value is None else value, max(0.0, age)))


def read_reports(reports: Iterable[Report], places: Places, *, percentile: Percentile, now: datetime) -> Reading:
    """Return what the reports say now, with the latencies between regions and between zones.

    Left out are reports and peers of nodes that the cluster does not have, what a node says about itself, what is older
    than :data:`~.node_medians.MAX_AGE`, times in the future and figures that no round trip has.
    """
    gathered = _Gathered(percentile, now)
    unknown: list[str] = []
    there = False
    for report in sorted(reports, key=lambda item: item.metadata.name):
        there = True
        origin = report.metadata.name
        if origin not in places.nodes:
            unknown.append(origin)
            continue
        peers = {peer.node: peer for peer in report.status.peers if peer.node != origin}
        unknown += (_named(origin, node) for node in peers if node not in places.nodes)
        gathered.add(origin, (peer for node, peer in sorted(peers.items()) if node in places.nodes))
    zone_figures = pair_figures(gathered.measurements, places.zone_of)
    answered = any(item.microseconds < UNREACHABLE for item in gathered.measurements)
    return Reading(
        state=SourceState.READ if answered else SourceState.EMPTY if there else SourceState.MISSING,
        name=f"ProbeReports of {counted(gathered.nodes, 'node')}",
        measurements=tuple(gathered.measurements),
        latencies=(
            latencies(pair_figures(gathered.measurements, places.region_of_node)),
            latencies(zone_figures),
        ),
        continuous=True,
        coverage=coverage(gathered.measurements, zone_figures, places),
        time=gathered.time,
        malformed=tuple(gathered.malformed),
        unknown_nodes=tuple(unknown),
        stale=gathered.stale,
        mistimed=gathered.mistimed,
    )


def _named(origin: str, peer: str) -> str:
    # Whoever has taken over a node states what he likes as the name of a peer, and people read it.
    return f"{origin} to {one_line(peer, MAX_NODE)}"


def roughly(seconds: float) -> str:
    """Say how much time that is at least, in steps, so that the sentence stays the same; a minute at the least."""
    steps = ((86_400.0, "a day"), (3600.0, "an hour"), (900.0, "15 minutes"))
    return next((name for least, name in steps if seconds >= least), "a minute")
