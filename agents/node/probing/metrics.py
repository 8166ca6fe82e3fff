"""Every metric of probing. The latencies have the names of the Kubernetes enhancement proposal (KEP 260)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from prometheus_client import Counter, Gauge

from agents.node import boot_clock
from agents.node.probing.report import ProbedPeer

_PAIR = ["origin", "destination"]

P50 = Gauge("netperf_p50_latency_microseconds", "Median round trip between two nodes.", _PAIR)
P90 = Gauge("netperf_p90_latency_microseconds", "90th percentile of the round trip between two nodes.", _PAIR)
P99 = Gauge("netperf_p99_latency_microseconds", "99th percentile of the round trip between two nodes.", _PAIR)
JITTER = Gauge("berth_probe_jitter_microseconds", "Mean absolute difference of consecutive round trips.", _PAIR)
LOSS = Gauge("berth_probe_loss_ratio", "Share of the probes between two nodes without an answer.", _PAIR)
AGE = Gauge("berth_probe_age_seconds", "Time since the last probe between two nodes.", _PAIR)
ROUNDS = Counter("berth_probe_rounds_total", "Rounds of probes, with those dropped.")
ROUNDS_DROPPED = Counter("berth_probe_rounds_dropped_total", "Rounds that the node was too busy to measure in.")
RESTARTS = Counter("berth_prober_restarts_total", "Prober processes that ended by themselves or hung.")
WRITES = Counter("berth_probereport_writes_total", "Writes of the ProbeReport: written, failed.", ["outcome"])

_LATENCIES = (P50, P90, P99, JITTER)


class PeerMetrics:
    """The series of one node's peers: those of peers that are gone go with them."""

    def __init__(self, origin: str) -> None:
        """Prepare; ``origin`` is the node's name."""
        self._origin = origin
        self._peers: set[str] = set()
        self._answering: set[str] = set()

    def show(self, peers: Iterable[ProbedPeer]) -> None:
        """Set the series of these peers, and drop those of all others; a silent peer has no latency."""
        shown, answering = set(), set()
        for peer in peers:
            pair, figures = (self._origin, peer.node), peer.figures
            shown.add(peer.node)
            LOSS.labels(*pair).set(figures.loss)
            AGE.labels(*pair).set_function(partial(_age, figures.time))
            if figures.latency is not None:
                answering.add(peer.node)
                latency = figures.latency
                values = (latency.p50, latency.p90, latency.p99, latency.jitter)
                for gauge, value in zip(_LATENCIES, values, strict=True):
                    gauge.labels(*pair).set(value)
        _remove((LOSS, AGE), self._origin, self._peers - shown)
        _remove(_LATENCIES, self._origin, self._answering - answering)
        self._peers, self._answering = shown, answering


def _age(last: float) -> float:
    return boot_clock.now() - last


def _remove(gauges: Iterable[Gauge], origin: str, peers: Iterable[str]) -> None:
    for peer in peers:
        for gauge in gauges:
            gauge.remove(origin, peer)
