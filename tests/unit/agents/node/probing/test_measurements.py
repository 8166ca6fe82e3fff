"""The windows of all peers: which rounds and samples count, and what is forgotten."""

from __future__ import annotations

from agents.node.probing.measurements import Measurements
from agents.node.probing.rounds import Round
from agents.node.probing.window import Method, Sample

QUIET, BUSY = (50, 55, 60), (9000, 9500, 9900)


def measured(time: float, self_probes: tuple[int | None, ...] = QUIET, **round_trips: int) -> Round:
    return Round(self_probes, {name: (Sample(time, Method.TCP, value),) for name, value in round_trips.items()})


def p50(measurements: Measurements, now: float = 10.0) -> dict[str, int | None]:
    found = measurements.peers(now)
    return {peer.node: peer.figures.latency.p50 if peer.figures.latency else None for peer in found}


def with_peers(**zones: str) -> Measurements:
    measurements = Measurements()
    measurements.keep(zones)
    return measurements


def test_peers_have_their_zones_and_samples() -> None:
    measurements = with_peers(n1="a", n2="b")
    assert measurements.add(measured(1.0, n1=100, n2=200))
    assert [(peer.node, peer.zone) for peer in measurements.peers(1.0)] == [("n1", "a"), ("n2", "b")]
    assert p50(measurements) == {"n1": 100, "n2": 200}


def test_a_peer_without_a_sample_is_left_out() -> None:
    measurements = with_peers(n1="a", n2="b")
    measurements.add(measured(1.0, n1=100))
    assert p50(measurements) == {"n1": 100}
    assert p50(measurements, now=500.0) == {}


def test_disturbed_rounds_are_dropped_and_counted() -> None:
    measurements = with_peers(n1="a")
    for time in range(10):
        measurements.add(measured(float(time), n1=100))
    assert not measurements.add(measured(10.0, BUSY, n1=90_000))
    assert measurements.rounds_dropped == 1
    [peer] = measurements.peers(10.0)
    assert (peer.figures.samples, peer.figures.latency and peer.figures.latency.p99) == (10, 100)


def test_a_change_of_peers_keeps_the_windows_of_those_that_stay() -> None:
    measurements = with_peers(n1="a", n2="b")
    measurements.add(measured(1.0, n1=100, n2=200))
    measurements.keep({"n2": "c", "n3": "c"})
    measurements.add(measured(2.0, n1=100, n3=300))  # a round that was under way
    assert {peer.node: peer.zone for peer in measurements.peers(2.0)} == {"n2": "c", "n3": "c"}
    measurements.keep({"n1": "a"})
    assert p50(measurements) == {}
