"""Times that clients state: what is believed, and what comes of it with clocks that are apart."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.runtime.measuring.client_clock import (
    VALID_SECONDS,
    ClientClock,
    Rejection,
    seconds_since,
)

NOW = 1_790_000_000.0


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        pytest.param("1790000000000", 0.0, id="now"),
        pytest.param("1789999999950", 0.05, id="50 ms ago"),
        pytest.param("1789999999950.25", 0.04975, id="with a fraction"),
        pytest.param(" 1790000000000 ", 0.0, id="with blanks around it"),
        pytest.param("1790000000500", -0.5, id="a clock that is ahead"),
        pytest.param("1790000", Rejection.ABSURD, id="1970"),
        pytest.param("1790000000", Rejection.ABSURD, id="seconds"),
        pytest.param("9999999999999999", Rejection.ABSURD, id="far ahead"),
        pytest.param("", Rejection.MALFORMED, id="nothing"),
        pytest.param("-5", Rejection.MALFORMED, id="negative"),
        pytest.param("+5", Rejection.MALFORMED, id="signed"),
        pytest.param("nan", Rejection.MALFORMED, id="no number"),
        pytest.param("inf", Rejection.MALFORMED, id="infinite"),
        pytest.param("1e400", Rejection.MALFORMED, id="a power"),
        pytest.param("0x10", Rejection.MALFORMED, id="hexadecimal"),
        pytest.param("1_790_000_000_000", Rejection.MALFORMED, id="with underscores"),
        pytest.param("١٧٩٠٠٠٠٠٠٠٠٠٠", Rejection.MALFORMED, id="digits of another script"),
        pytest.param("1" * 5000, Rejection.MALFORMED, id="without end"),
        pytest.param("2026-11-23T12:00:00Z", Rejection.MALFORMED, id="a date"),
    ],
)
def test_seconds_since(stated: str, expected: float | Rejection) -> None:
    found = seconds_since(stated, NOW)
    assert found == (pytest.approx(expected, abs=1e-5) if isinstance(expected, float) else expected)


@given(stated=st.text())
def test_whatever_is_stated_is_a_number_or_refused(stated: str) -> None:
    found = seconds_since(stated, NOW)
    assert isinstance(found, Rejection) or math.isfinite(found)


@given(
    offset=st.floats(-80_000, 80_000),
    trip=st.integers(1000, 400_000),
    later=st.integers(0, 400_000),
    seconds=st.floats(0.0, VALID_SECONDS),
)
def test_a_way_that_got_longer_shows_whatever_the_clocks_say(
    offset: float, trip: int, later: int, seconds: float
) -> None:
    clock = ClientClock()
    clock.calibrate(offset + trip / 2e6, trip, 100.0)
    found = clock.round_trip(offset + (trip + later) / 2e6, 100.0 + seconds)
    assert found == pytest.approx(trip + later, abs=2)


def test_nothing_is_said_before_the_offset_is_known() -> None:
    assert ClientClock().round_trip(0.01, 100.0) is None


def test_an_old_offset_is_not_used() -> None:
    clock = ClientClock()
    clock.calibrate(0.01, 20_000, 0.0)
    assert clock.round_trip(0.01, VALID_SECONDS) == 20_000
    assert clock.round_trip(0.01, VALID_SECONDS + 0.1) is None


def test_what_had_to_wait_does_not_count_as_offset() -> None:
    clock = ClientClock()
    for waited in (0.3, 0.0, 0.2):
        clock.calibrate(5.01 + waited, 20_000, 10.0)
    assert clock.round_trip(5.01, 10.0) == 20_000


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        pytest.param(29.0, 20_000, id="in the same half minute"),
        pytest.param(45.0, 20_000, id="in the next one"),
        pytest.param(61.0, 10_000, id="after a minute"),
    ],
)
def test_clocks_that_drift_apart_are_followed(later: float, expected: int) -> None:
    clock = ClientClock()
    clock.calibrate(0.010, 20_000, 0.0)
    clock.calibrate(0.015, 20_000, later)  # 5 ms further apart
    assert clock.round_trip(0.010, later) == expected


@pytest.mark.parametrize("seconds", [-3600.0, -2.0, 2.0, 3600.0])
def test_a_clock_that_is_set_is_followed_with_the_next_round_trip_of_the_kernel(seconds: float) -> None:
    clock = ClientClock()
    clock.calibrate(5.010, 20_000, 0.0)
    clock.calibrate(5.010, 20_000, 40.0)  # in another window
    clock.calibrate(5.010 + seconds, 20_000, 41.0)
    assert clock.round_trip(5.015 + seconds, 42.0) == pytest.approx(30_000, abs=2)


def test_no_request_comes_before_it_was_sent() -> None:
    clock = ClientClock()
    clock.calibrate(0.010, 20_000, 0.0)
    assert clock.round_trip(-0.001, 1.0) is Rejection.NEGATIVE
    assert clock.round_trip(0.0, 1.0) is Rejection.NEGATIVE
