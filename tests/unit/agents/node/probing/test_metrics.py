"""The series of a node's peers: names, values, and that they go when the peer does."""

from __future__ import annotations

import time

from prometheus_client import REGISTRY

from agents.node.probing.metrics import PeerMetrics
from agents.node.probing.report import ProbedPeer
from agents.node.probing.window import Figures, Latency, Method

NAMES = [f"netperf_{p}_latency_microseconds" for p in ("p50", "p90", "p99")] + ["berth_probe_jitter_microseconds"]


def peer(node: str, *, answers: bool = True, loss: float = 0.0) -> ProbedPeer:
    latency = Latency(10, 20, 30, 4) if answers else None
    return ProbedPeer(node, "z", Figures(Method.TCP, latency, loss, 9, time.monotonic() - 7))


def value(name: str, destination: str) -> float | None:
    return REGISTRY.get_sample_value(name, {"origin": "me", "destination": destination})


def test_series() -> None:
    PeerMetrics("me").show([peer("n1", loss=0.5)])
    assert [value(name, "n1") for name in NAMES] == [10, 20, 30, 4]
    assert value("berth_probe_loss_ratio", "n1") == 0.5
    age = value("berth_probe_age_seconds", "n1")
    assert age is not None
    assert 7 <= age < 60


def test_a_silent_peer_has_loss_and_age_alone() -> None:
    metrics = PeerMetrics("me")
    metrics.show([peer("n2")])
    metrics.show([peer("n2", answers=False, loss=1.0)])
    assert [value(name, "n2") for name in NAMES] == [None] * 4
    assert value("berth_probe_loss_ratio", "n2") == 1.0
    metrics.show([peer("n2")])
    assert value(NAMES[0], "n2") == 10


def test_the_series_of_a_peer_go_with_it() -> None:
    metrics = PeerMetrics("me")
    metrics.show([peer("n3"), peer("n4", answers=False)])
    metrics.show([])
    names = [*NAMES, "berth_probe_loss_ratio", "berth_probe_age_seconds"]
    assert [value(name, node) for name in names for node in ("n3", "n4")] == [None] * 12
