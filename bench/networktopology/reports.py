"""Time from the ProbeReports of all nodes to weight sets, with the peers that agents choose."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median

from berth.kube.objects import ObjectMeta
from berth.kube.probe_reports import Report, ReportedPeer, ReportStatus
from controllers.networktopology.compute import compute
from controllers.networktopology.places import NodePlace, Places
from controllers.networktopology.sources.probe_measurements import read_reports

PEERS = 10
"""Peers of each node."""
REGIONS = 4
"""Regions of the simulated cluster."""


@dataclass(frozen=True, slots=True)
class ReportsResult:
    """Medians of one size, in milliseconds of processor time."""

    nodes: int
    """nodes, each with a report"""
    zones: int
    """zones of the cluster"""
    measurements: int
    """measurements in the reports"""
    read: float
    """reports to latencies between places; once for all NetworkTopologies"""
    compute: float
    """latencies to weight sets; for each NetworkTopology"""


def simulated(nodes: int, zones: int, *, now: datetime, seed: int) -> tuple[Places, list[Report], dict[str, int]]:
    """Return a cluster whose round trips are those between its zones, give or take a twentieth.

    Also the microseconds from each zone to each, by ``a>b``. Peers are of as many zones as there are, as agents choose
    them.
    """
    draw = random.Random(seed)
    place = {
        f"node-{number:05}": NodePlace(f"region-{number % zones % REGIONS}", f"zone-{number % zones:03}")
        for number in range(nodes)
    }
    truth = {
        f"zone-{a:03}>zone-{b:03}": draw.randint(300, 2_000) + (40_000 if a % REGIONS != b % REGIONS else 0)
        for a in range(zones)
        for b in range(a)
    }
    truth |= {">".join(reversed(pair.split(">"))): value for pair, value in truth.items()}
    names = list(place)

    def peers(number: int) -> Iterator[ReportedPeer]:
        zone, row = number % zones, number // zones
        for turn in range(min(PEERS, zones - 1)):
            other = (zone + 1 + (row * PEERS + turn) % (zones - 1)) % zones
            exact = truth[f"zone-{zone:03}>zone-{other:03}"]
            figure = round(exact * draw.uniform(0.95, 1.05))
            yield ReportedPeer(
                node=names[other + zones * (row % (nodes // zones))],
                p90_microseconds=figure,
                last_probe_time=now.isoformat(),
            )

    reports = [
        Report(ObjectMeta(name=name), ReportStatus(peers=list(peers(number)))) for number, name in enumerate(names)
    ]
    return Places.of(place), reports, truth


def measure(nodes: int, zones: int, *, rounds: int, seed: int) -> ReportsResult:
    """Measure one size."""
    now = datetime.now(UTC)
    places, reports, _ = simulated(nodes, zones, now=now, seed=seed)
    reading = read_reports(reports, places, percentile="p90", now=now)
    reads, computations = [], []
    for _ in range(rounds):
        begun = time.process_time()
        reading = read_reports(reports, places, percentile="p90", now=now)
        reads.append(time.process_time() - begun)
        begun = time.process_time()
        compute(reading, places)
        computations.append(time.process_time() - begun)
    return ReportsResult(nodes, zones, len(reading.measurements), 1000 * median(reads), 1000 * median(computations))
