"""Figures of peers to the status of a ProbeReport."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agents.node.probing.report import MeasuredThroughput, Moment, ProbedPeer, status_of
from agents.node.probing.window import Figures, Latency, Method
from berth.api.probereport import MAX_BITS_PER_SECOND, MAX_MICROSECONDS, BandwidthReport

NOW = Moment(datetime(2026, 1, 31, 12, 0, tzinfo=UTC), 1000.0)


def peer(node: str, zone: str, p90: int | None, *, loss: float = 0.0, age: float = 3.0) -> ProbedPeer:
    latency = None if p90 is None else Latency(p90 // 2, p90, p90 * 2, 7)
    return ProbedPeer(node, zone, Figures(Method.TCP, latency, loss, 0 if p90 is None else 54, 1000.0 - age))


def summary(*peers: ProbedPeer, zone: str = "a") -> tuple[str | None, str | None, str | None]:
    status = status_of(zone, peers, NOW, rounds_dropped=0)
    return status.nearest_zone, status.farthest_zone, status.loss


@pytest.mark.parametrize(
    ("peers", "expected"),
    [
        pytest.param([], (None, None, None), id="no peers"),
        pytest.param([peer("n1", "a", 300)], (None, None, "0.0 %"), id="own zone alone"),
        pytest.param([peer("n1", "b", 850)], ("0.85ms b", "0.85ms b", "0.0 %"), id="one other zone"),
        pytest.param(
            [peer("n1", "b", 850), peer("n2", "c", 20_000), peer("n3", "a", 90)],
            ("0.85ms b", "20.00ms c", "0.0 %"),
            id="nearest and farthest",
        ),
        pytest.param(
            [peer("n1", "b", 100), peer("n2", "b", 300), peer("n3", "b", 9000), peer("n4", "c", 200)],
            ("0.20ms c", "0.30ms b", "0.0 %"),
            id="a zone is its median peer",
        ),
        pytest.param([peer("n1", "b", None, loss=1.0)], (None, None, "100.0 %"), id="a silent peer has no distance"),
        pytest.param(
            [peer("n1", "b", 1000, loss=0.25), peer("n2", "c", None, loss=1.0)],
            ("1.00ms b", "1.00ms b", "62.5 %"),
            id="mean loss",
        ),
        pytest.param([peer("n1", "", 1000)], (None, None, "0.0 %"), id="a peer without a zone"),
    ],
)
def test_summary(peers: list[ProbedPeer], expected: tuple[str | None, str | None, str | None]) -> None:
    assert summary(*peers) == expected


def document(*peers: ProbedPeer) -> dict[str, Any]:
    return status_of("a", peers, NOW, rounds_dropped=3).to_api()


def test_what_is_written() -> None:
    assert document(peer("n2", "c", None, loss=1.0), peer("n1", "b", 850, loss=0.0278)) == {
        "time": "2026-01-31T12:00:00Z",
        "zone": "a",
        "peerCount": 2,
        "nearestZone": "0.85ms b",
        "farthestZone": "0.85ms b",
        "loss": "51.4 %",
        "roundsDropped": 3,
        "peers": [
            {
                "node": "n1",
                "zone": "b",
                "method": "TCP",
                "p50Microseconds": 425,
                "p90Microseconds": 850,
                "p99Microseconds": 1700,
                "jitterMicroseconds": 7,
                "lossPerMille": 28,
                "samples": 54,
                "lastProbeTime": "2026-01-31T11:59:57Z",
            },
            {"node": "n2", "zone": "c", "lossPerMille": 1000, "samples": 0, "lastProbeTime": "2026-01-31T11:59:57Z"},
        ],
    }


def test_times_are_those_of_the_probes() -> None:
    [found] = status_of("a", [peer("n1", "b", 100, age=90.0)], NOW, rounds_dropped=0).peers
    assert found.last_probe_time == NOW.wall - timedelta(seconds=90)


def test_nothing_is_beyond_what_the_kind_can_state() -> None:
    [found] = status_of("a", [peer("n1", "b", 2 * MAX_MICROSECONDS)], NOW, rounds_dropped=0).peers
    assert (found.p90_microseconds, found.p99_microseconds) == (MAX_MICROSECONDS, MAX_MICROSECONDS)


@pytest.mark.parametrize(
    ("rate", "expected"),
    [pytest.param(940_000_000, 940_000_000, id="as found"), pytest.param(10**20, MAX_BITS_PER_SECOND, id="clipped")],
)
def test_throughput_stands_with_the_peer_that_was_tested(rate: int, expected: int) -> None:
    tested = {"n2": MeasuredThroughput(rate, NOW.wall - timedelta(minutes=5)), "gone": MeasuredThroughput(1, NOW.wall)}
    peers = [peer("n1", "b", 850), peer("n2", "c", 900)]
    status = status_of("a", peers, NOW, rounds_dropped=0, throughput=tested)
    found = [(one.node, one.throughput_bits_per_second, one.throughput_time) for one in status.peers]
    assert found == [("n1", None, None), ("n2", expected, NOW.wall - timedelta(minutes=5))]


def test_the_link_stands_beside_the_peers() -> None:
    link = BandwidthReport(interface="eth0", samples=0)
    assert status_of("a", [], NOW, rounds_dropped=0, bandwidth=link).bandwidth == link
