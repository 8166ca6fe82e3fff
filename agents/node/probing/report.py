"""The status of a ProbeReport from the figures of the peers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from statistics import mean, median
from typing import NamedTuple

from agents.node.probing.window import Figures
from berth.api.probereport import (
    MAX_BITS_PER_SECOND,
    MAX_MICROSECONDS,
    PER_MILLE,
    BandwidthReport,
    PeerReport,
    ProbeReportStatus,
)


class ProbedPeer(NamedTuple):
    """A peer and what its window says."""

    node: str
    """name of its node"""
    zone: str
    """zone of its node, empty without one"""
    figures: Figures
    """percentiles, jitter, loss"""


class MeasuredThroughput(NamedTuple):
    """What a throughput test found."""

    bits_per_second: int
    """rate of one TCP connection, at least 1"""
    time: datetime
    """when"""


class Moment(NamedTuple):
    """One moment on both clocks, for samples know that of :mod:`~agents.node.boot_clock` alone."""

    wall: datetime
    """what people call it"""
    boot: float
    """seconds since the machine started"""


def status_of(
    zone: str,
    peers: Iterable[ProbedPeer],
    now: Moment,
    *,
    rounds_dropped: int,
    bandwidth: BandwidthReport | None = None,
    throughput: Mapping[str, MeasuredThroughput] | None = None,
) -> ProbeReportStatus:
    """Return what a node reports.

    Args:
        zone: the node's own zone, empty without one.
        peers: its peers, each name once, in any order.
        now: the present.
        rounds_dropped: rounds that were not measured since the agent started.
        bandwidth: what is known of the node's link.
        throughput: what tests found, by name of the peer.
    """
    tested = throughput or {}
    probed = sorted(peers)
    by_distance = _other_zones(zone, probed)
    return ProbeReportStatus(
        time=now.wall,
        zone=zone,
        peer_count=len(probed),
        nearest_zone=_distance_text(by_distance[0]) if by_distance else None,
        farthest_zone=_distance_text(by_distance[-1]) if by_distance else None,
        loss=f"{100 * mean(peer.figures.loss for peer in probed):.1f} %" if probed else None,
        rounds_dropped=rounds_dropped,
        bandwidth=bandwidth,
        peers=tuple(_peer_report(peer, now, tested.get(peer.node)) for peer in probed),
    )


def _other_zones(own: str, peers: Iterable[ProbedPeer]) -> list[tuple[float, str]]:
    """Median p90 and name of every other zone in which a peer answered, the nearest first."""
    by_zone: dict[str, list[int]] = defaultdict(list)
    for peer in peers:
        if peer.zone and peer.zone != own and peer.figures.latency is not None:
            by_zone[peer.zone].append(peer.figures.latency.p90)
    return sorted((median(values), zone) for zone, values in by_zone.items())


def _distance_text(distance: tuple[float, str]) -> str:
    microseconds, zone = distance
    return f"{microseconds / 1000:.2f}ms {zone}"


def _peer_report(peer: ProbedPeer, now: Moment, throughput: MeasuredThroughput | None) -> PeerReport:
    figures = peer.figures
    latency = figures.latency
    return PeerReport(
        node=peer.node,
        zone=peer.zone,
        method=figures.method.value if latency else None,
        p50_microseconds=min(latency.p50, MAX_MICROSECONDS) if latency else None,
        p90_microseconds=min(latency.p90, MAX_MICROSECONDS) if latency else None,
        p99_microseconds=min(latency.p99, MAX_MICROSECONDS) if latency else None,
        jitter_microseconds=min(latency.jitter, MAX_MICROSECONDS) if latency else None,
        loss_per_mille=round(PER_MILLE * figures.loss),
        samples=figures.samples,
        throughput_bits_per_second=min(throughput.bits_per_second, MAX_BITS_PER_SECOND) if throughput else None,
        throughput_time=throughput.time if throughput else None,
        last_probe_time=now.wall - timedelta(seconds=now.boot - figures.time),
    )
