"""A simulated cluster whose agents write their reports to a real API server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from agents.node.probing.report_writer import ReportWriter
from bench.networktopology.reports import simulated
from berth.api.probereport import PeerReport, ProbeReportStatus
from berth.kube.client import ApiClient
from hack.localcluster.topology import DEFAULT_CAPACITY, NodeSpec

WRITERS: Final = 16
"""Reports that are written at once, at most."""
SLOWER: Final = 3
"""How many times longer round trips of the changed zone take."""
CHANGED: Final = "zone-000"
"""The zone that becomes slower."""


class Fleet:
    """All nodes, and what their agents measure."""

    def __init__(self, nodes: int, zones: int) -> None:
        """Draw the cluster; its seed is the number of nodes."""
        self.places, reports, _ = simulated(nodes, zones, now=datetime.now(UTC), seed=nodes)
        self.round_trips = {
            (report.metadata.name, peer.node): peer.p90_microseconds or 0
            for report in reports
            for peer in report.status.peers
        }
        self.peers = {report.metadata.name: [peer.node for peer in report.status.peers] for report in reports}

    def specs(self) -> list[NodeSpec]:
        """The nodes."""
        nothing: dict[str, str] = {}
        return [
            NodeSpec(
                name=name,
                region=place.region,
                zone=place.zone,
                capacity=DEFAULT_CAPACITY,
                allocatable=nothing,
                labels=nothing,
                annotations=nothing,
                taints=(),
            )
            for name, place in self.places.nodes.items()
        ]

    def report(self, node: str) -> ProbeReportStatus:
        """What the agent of a node reports now."""
        now = datetime.now(UTC)
        peers = (
            PeerReport(
                node=peer,
                zone=self.places.zone_of(peer),
                method="TCP",
                p50_microseconds=figure,
                p90_microseconds=figure,
                p99_microseconds=figure,
                jitter_microseconds=10,
                loss_per_mille=0,
                samples=54,
                last_probe_time=now,
            )
            for peer in self.peers[node]
            for figure in (self.round_trips[node, peer],)
        )
        found = tuple(peers)
        return ProbeReportStatus(time=now, zone=self.places.zone_of(node), peer_count=len(found), peers=found)

    async def write(self, client: ApiClient, nodes: Iterable[str], *, pace: float = 0.0) -> int:
        """Have these nodes report, one each ``pace`` seconds; return how many did."""
        waiting = iter(nodes)
        begun, count = time.monotonic(), 0

        async def writer() -> None:
            nonlocal count
            for node in waiting:
                count += 1
                await asyncio.sleep(max(0.0, begun + count * pace - time.monotonic()))
                await ReportWriter(client, node).write(self.report(node))

        await asyncio.gather(*(writer() for _ in range(WRITERS)))
        return count

    def slow_down(self) -> list[str]:
        """Have round trips from and to a zone take longer, and return the nodes that measure some of them."""
        slower = [pair for pair in self.round_trips if CHANGED in map(self.places.zone_of, pair)]
        for pair in slower:
            self.round_trips[pair] *= SLOWER
        return sorted({origin for origin, _ in slower})
