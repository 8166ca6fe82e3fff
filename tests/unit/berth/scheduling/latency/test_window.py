"""Windows of round trips: percentiles, age, changes, and what is no round trip."""

from __future__ import annotations

import math
from statistics import median_low

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduling.latency.window import LENGTH, MAX_AGE, Window
from tests.support.latency import METER, NOW, later


def filled(values: list[float], every: float = 1.0) -> Window:
    window = Window()
    for number, value in enumerate(values):
        window.add(value, later(number * every))
    return window


@pytest.mark.parametrize(
    ("values", "p50", "p90"),
    [
        pytest.param([7000], 7000, 7000, id="one"),
        pytest.param([45_000, 15_000], 15_000, 45_000, id="of two the lower: the other may be a spike"),
        pytest.param([10, 11, 12, 13, 14, 15, 16, 17, 18, 19], 14, 18, id="ten: by nearest rank"),
        pytest.param([1000.4], 1000, 1000, id="whole microseconds"),
    ],
)
def test_percentiles(values: list[float], p50: int, p90: int) -> None:
    found = filled(values).measurement("a", METER, NOW)
    assert found is not None
    assert (found.p50, found.p90, found.samples, found.node, found.source) == (p50, p90, len(values), "a", METER)


@pytest.mark.parametrize("value", [-5.0, 0.0, 0.4, 1e9, math.nan, math.inf])
def test_what_is_no_round_trip_is_left_out(value: float) -> None:
    window = Window()
    assert not window.add(value, NOW)
    assert window.measurement("a", METER, NOW) is None


def test_old_round_trips_do_not_count() -> None:
    window = filled([5000, 9000], every=10)
    found = window.measurement("a", METER, later(5) + MAX_AGE)
    assert found is not None
    assert (found.p50, found.samples, found.time) == (9000, 1, later(10))
    assert window.measurement("a", METER, later(11) + MAX_AGE) is None


@pytest.mark.parametrize(
    ("values", "p50", "samples"),
    [
        pytest.param([10_000] * 6 + [30_000] * 2, 10_000, 8, id="two outliers are spikes"),
        pytest.param([10_000] * 6 + [30_000] * 3, 30_000, 3, id="three in a row are a change"),
        pytest.param([30_000] * 6 + [10_000] * 3, 10_000, 3, id="a change for the better as well"),
        pytest.param([10_000] * 6 + [30_000, 5000, 30_000], 10_000, 9, id="to both sides is none"),
        pytest.param([10_000] * 6 + [14_900] * 3, 10_000, 9, id="less than half as much again is none"),
    ],
)
def test_a_change_ends_what_was_before(values: list[float], p50: int, samples: int) -> None:
    found = filled(values).measurement("a", METER, later(20))
    assert found is not None
    assert (found.p50, found.samples) == (p50, samples)


@given(st.lists(st.integers(1, 60_000_000), min_size=1, max_size=40))
def test_a_window_is_bounded_and_its_percentiles_were_measured(values: list[int]) -> None:
    found = filled([float(value) for value in values]).measurement("a", METER, later(len(values)))
    assert found is not None
    assert found.samples <= LENGTH
    assert found.p50 <= found.p90
    last = values[-found.samples :]
    assert found.p50 == median_low(last)
    assert found.p90 in last


@pytest.mark.parametrize(
    ("ages", "over"),
    [
        pytest.param([], True, id="empty"),
        pytest.param([0], False, id="new"),
        pytest.param([400, 200, 400], False, id="one is young enough, and came in between"),
        pytest.param([400, 301], True, id="all are too old"),
    ],
)
def test_a_window_is_over_when_it_has_nothing_young_enough(ages: list[float], over: bool) -> None:
    window = Window()
    for age in ages:
        window.add(10_000, later(-age))
    assert window.is_over(NOW) is over
    assert (window.measurement("a", METER, NOW) is None) is over
