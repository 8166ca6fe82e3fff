"""The windows of all peers: which rounds and samples count, and what is forgotten."""

from __future__ import annotations

from typing import Any

import pytest

from agents.node.probing.measurements import FEWEST_ROUNDS, LONGEST_WAIT, Measurements
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


def add_settled(measurements: Measurements, time: float, **round_trips: Any) -> None:
    """As many rounds as it takes until something is said."""
    for number in range(FEWEST_ROUNDS):
        assert measurements.add(measured(time + number / 100, **round_trips))


def test_peers_have_their_zones_and_samples() -> None:
    measurements = with_peers(n1="a", n2="b")
    add_settled(measurements, 0.9, n1=100, n2=200)
    assert [(peer.node, peer.zone) for peer in measurements.peers(1.0)] == [("n1", "a"), ("n2", "b")]
    assert p50(measurements) == {"n1": 100, "n2": 200}


def test_a_peer_without_a_sample_is_left_out() -> None:
    measurements = with_peers(n1="a", n2="b")
    add_settled(measurements, 1.0, n1=100)
    assert p50(measurements) == {"n1": 100}
    assert p50(measurements, now=500.0) == {}


@pytest.mark.parametrize(
    ("times", "now", "said"),
    [
        pytest.param([0.0, 0.5, 1.0, 1.5], 1.6, False, id="four rounds: their p90 is the greatest"),
        pytest.param([0.0, 0.5, 1.0, 1.5, 2.0], 2.1, True, id="five rounds"),
        pytest.param([0.0, 10.0], LONGEST_WAIT - 1, False, id="two of rare rounds"),
        pytest.param([0.0, 10.0], LONGEST_WAIT, True, id="the same after a while"),
        pytest.param([0.0, 0.5, 1.0, 1.5, 2.0, 500.0], 501.0, False, id="and one after a long time"),
    ],
)
def test_nothing_is_said_of_a_peer_that_was_hardly_measured(times: list[float], now: float, said: bool) -> None:
    measurements = with_peers(n1="a")
    for time in times:
        measurements.peers(time)
        measurements.add(measured(time, n1=100))
    assert p50(measurements, now) == ({"n1": 100} if said else {})
    assert measurements.settling(now) is not said


def test_what_was_measured_before_a_long_pause_counts_for_nothing() -> None:
    """The machine was suspended: nobody has looked meanwhile, and the first round would be all that there is."""
    measurements = with_peers(n1="a")
    add_settled(measurements, 1.0, n1=100)
    assert p50(measurements, now=2.0) == {"n1": 100}
    measurements.add(measured(500.0, n1=25_000))
    assert p50(measurements, now=500.1) == {}
    assert measurements.settling(500.1)


def test_peers_that_are_not_measured_are_not_waited_for() -> None:
    assert not with_peers().settling(1.0)
    assert not with_peers(n1="a").settling(1.0)
    gone = with_peers(n1="a")
    gone.add(measured(1.0, n1=100))
    gone.keep({})
    assert not gone.settling(1.0)


def test_a_peer_that_is_back_soon_has_the_figures_that_it_had() -> None:
    """Its agent was replaced, and the machine is busy with that: the first samples alone would be its figures."""
    measurements = with_peers(n1="a")
    for number in range(10):
        measurements.add(measured(float(number), n1=100))
    measurements.keep({})
    assert p50(measurements) == {}
    measurements.keep({"n1": "a"})
    measurements.add(measured(20.0, n1=25_000))
    [peer] = measurements.peers(20.0)
    assert peer.figures.latency is not None
    assert (peer.figures.samples, peer.figures.latency.p90) == (11, 100)


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
    add_settled(measurements, 1.0, n1=100, n2=200)
    measurements.keep({"n2": "c", "n3": "c"})
    add_settled(measurements, 2.0, n1=900, n3=300)  # as of a round that was under way
    assert {peer.node: peer.zone for peer in measurements.peers(2.0)} == {"n2": "c", "n3": "c"}
    measurements.keep({"n1": "a"})
    assert p50(measurements) == {"n1": 100}
