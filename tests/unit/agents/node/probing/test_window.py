"""The sliding window: percentiles, jitter, loss, what is forgotten, and how soon a change shows."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.node.probing.window import Figures, Latency, Method, Sample, Window, latency, nearest_rank

TCP, ICMP = Method.TCP, Method.ICMP
ROUND_TRIPS = st.lists(st.integers(min_value=1, max_value=10_000_000), min_size=1, max_size=80)


def figures(*samples: tuple[float, Method, int | None], now: float = 0.0, seconds: float = 90.0) -> Figures | None:
    window = Window(seconds)
    window.add(Sample(*sample) for sample in samples)
    return window.figures(now)


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        pytest.param([7], 99, 7, id="one value"),
        pytest.param([1, 2], 50, 1, id="half of two"),
        pytest.param([1, 2, 3], 50, 2, id="half of three"),
        pytest.param(list(range(1, 11)), 90, 9, id="nine in ten"),
        pytest.param(list(range(1, 101)), 99, 99, id="99 in a hundred"),
        pytest.param(list(range(1, 11)), 99, 10, id="99 in a hundred of ten"),
        pytest.param([4, 5], 0, 4, id="least"),
        pytest.param([4, 5], 100, 5, id="greatest"),
    ],
)
def test_nearest_rank(values: list[int], percent: int, expected: int) -> None:
    assert nearest_rank(values, percent) == expected


@pytest.mark.parametrize(
    "function",
    [pytest.param(latency, id="latency"), pytest.param(lambda values: nearest_rank(values, 50), id="percentile")],
)
def test_nothing_measured_is_not_0(function: object) -> None:
    assert callable(function)
    with pytest.raises(ValueError, match="unknown, not 0"):
        function([])


@given(values=ROUND_TRIPS, percent=st.integers(min_value=1, max_value=100))
def test_a_percentile_is_the_least_value_that_enough_do_not_exceed(values: list[int], percent: int) -> None:
    found = nearest_rank(sorted(values), percent)
    needed = math.ceil(len(values) * percent / 100)
    assert found in values
    assert sum(value <= found for value in values) >= needed
    assert sum(value < found for value in values) < needed


@pytest.mark.parametrize(
    ("values", "jitter"),
    [
        pytest.param([100], 0, id="one"),
        pytest.param([100, 100, 100], 0, id="steady"),
        pytest.param([100, 300], 200, id="one step"),
        pytest.param([300, 100, 300], 200, id="to and fro"),
        pytest.param([100, 200, 300, 400], 100, id="rising"),
    ],
)
def test_jitter_is_the_mean_step(values: list[int], jitter: int) -> None:
    assert latency(values).jitter == jitter


@given(values=ROUND_TRIPS)
def test_percentiles_are_in_order(values: list[int]) -> None:
    found = latency(values)
    assert min(values) <= found.p50 <= found.p90 <= found.p99 <= max(values)
    assert 0 <= found.jitter <= max(values) - min(values)


@pytest.mark.parametrize(
    ("samples", "method", "p50", "loss", "answered"),
    [
        pytest.param([(0, TCP, 50)], TCP, 50, 0.0, 1, id="TCP alone"),
        pytest.param([(0, TCP, 50), (0, ICMP, 90)], TCP, 50, 0.0, 1, id="TCP before ICMP"),
        pytest.param([(0, TCP, None), (0, ICMP, 90)], ICMP, 90, 0.0, 1, id="responder away: ICMP"),
        pytest.param([(0, TCP, 50), (0, ICMP, 90), (0, ICMP, None)], TCP, 50, 0.5, 1, id="loss is that of ICMP"),
        pytest.param([(0, TCP, 50), (0, ICMP, None)], TCP, 50, 0.0, 1, id="a firewall drops ICMP"),
        pytest.param([(0, TCP, 50), (0, TCP, None), (0, ICMP, None)], TCP, 50, 0.5, 1, id="then loss is that of TCP"),
        pytest.param([(0, ICMP, 90), (0, ICMP, 70), (0, ICMP, None)], ICMP, 70, 1 / 3, 2, id="ICMP alone"),
    ],
)
def test_figures(
    samples: list[tuple[float, Method, int | None]], method: Method, p50: int, loss: float, answered: int
) -> None:
    found = figures(*samples)
    assert found is not None
    assert found.latency is not None
    assert (found.method, found.latency.p50, found.samples) == (method, p50, answered)
    assert found.loss == pytest.approx(loss)


@pytest.mark.parametrize(
    "samples",
    [
        pytest.param([(3.0, TCP, None)], id="no responder"),
        pytest.param([(2.0, ICMP, None), (3.0, ICMP, None)], id="no reply"),
        pytest.param([(2.0, TCP, None), (3.0, ICMP, None)], id="neither"),
    ],
)
def test_a_silent_peer_has_lost_all_and_no_latency(samples: list[tuple[float, Method, int | None]]) -> None:
    found = figures(*samples)
    assert found is not None
    assert (found.latency, found.loss, found.samples, found.time) == (None, 1.0, 0, 3.0)


def test_nothing_probed_says_nothing() -> None:
    assert Window().figures(0.0) is None


def test_what_is_older_than_the_window_is_forgotten() -> None:
    window = Window(10.0)
    window.add([Sample(0.0, TCP, 500), Sample(5.0, TCP, 100)])
    assert window.figures(9.9) == Figures(TCP, Latency(100, 500, 500, 400), 0.0, 2, 5.0)
    assert window.figures(10.0) == Figures(TCP, Latency(100, 100, 100, 0), 0.0, 1, 5.0)
    assert window.figures(15.0) is None


def test_the_oldest_goes_when_there_are_too_many() -> None:
    window = Window(90.0, samples=2)
    window.add([Sample(0.0, TCP, 900), Sample(0.0, TCP, 10), Sample(0.0, TCP, 10)])
    found = window.figures(0.0)
    assert found is not None
    assert found.latency == Latency(10, 10, 10, 0)


@pytest.mark.parametrize("seed", range(20))
def test_an_injected_delay_shows_in_15_seconds_and_is_gone_in_two_minutes(seed: int) -> None:
    """Rounds of three probes every 5 s, give or take a tenth; 20 ms more from second 300 to 600."""
    chance, window, now, seen = random.Random(seed), Window(), 0.0, []
    while now < 800:
        now += 5 * chance.uniform(0.9, 1.1)
        slow = 20_000 if 300 <= now < 600 else 0
        window.add(Sample(now, TCP, 300 + slow + chance.randrange(50)) for _ in range(3))
        found = window.figures(now)
        assert found is not None
        assert found.latency is not None
        seen.append((now, found.latency.p90 > 20_000))
    assert not any(slow for time, slow in seen if time < 300)
    assert all(slow for time, slow in seen if 315 <= time < 600)
    assert not any(slow for time, slow in seen if time >= 720)
