"""Readings of counters become mean and deviation; what no link can have carried does not count."""

from __future__ import annotations

from itertools import accumulate
from statistics import fmean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.node.bandwidth.links import Octets
from agents.node.bandwidth.utilisation import SAMPLE_SECONDS, WINDOW_SECONDS, Utilisation, UtilisationWindow

GIGABIT = 10**9


def filled(*readings: Octets | None, capacity: int | None = GIGABIT) -> Utilisation | None:
    """What readings say that lie ten seconds apart."""
    window, now = UtilisationWindow(), 0.0
    for reading in readings:
        now += SAMPLE_SECONDS
        window.add(now, "eth0", reading, capacity)
    return window.utilisation(now)


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        pytest.param([], None, id="none"),
        pytest.param([Octets(5, 5)], None, id="one says nothing"),
        pytest.param([Octets(0, 0), Octets(0, 0)], Utilisation(0, 0, 1), id="idle is not unknown"),
        pytest.param([Octets(0, 0), Octets(1000, 250)], Utilisation(800, 0, 1), id="received"),
        pytest.param([Octets(0, 0), Octets(250, 1000)], Utilisation(800, 0, 1), id="sent"),
        pytest.param([Octets(0, 0), Octets(1000, 0), Octets(1000, 3000)], Utilisation(1600, 800, 2), id="both in turn"),
        pytest.param([Octets(0, 0), None, Octets(9000, 0)], None, id="gone, and back"),
        pytest.param([Octets(0, 0), None, Octets(9000, 0), Octets(9500, 0)], Utilisation(400, 0, 1), id="then goes on"),
        pytest.param([Octets(9 * 10**9, 0), Octets(1000, 0)], None, id="begun anew"),
        pytest.param([Octets(2**32 - 500, 0), Octets(500, 0)], Utilisation(800, 0, 1), id="32 bits are over"),
        pytest.param([Octets(3 * 10**9, 0), Octets(2 * 10**9, 0)], None, id="more than the link carries: begun anew"),
    ],
)
def test_utilisation(readings: list[Octets | None], expected: Utilisation | None) -> None:
    assert filled(*readings) == expected


def test_without_a_known_capacity_a_lesser_counter_has_begun_anew() -> None:
    assert filled(Octets(2**32 - 500, 0), Octets(500, 0), capacity=None) is None


def test_another_interface_begins_anew() -> None:
    window = UtilisationWindow()
    for now, name, received in [(10.0, "eth0", 0), (20.0, "eth0", 1000), (30.0, "eth1", 9000), (40.0, "eth1", 9500)]:
        window.add(now, name, Octets(received, 0))
    assert window.utilisation(40.0) == Utilisation(400, 0, 1)


def test_samples_count_for_ten_minutes() -> None:
    window = UtilisationWindow()
    for now, received in [(0.0, 0), (10.0, 1000), (20.0, 1000)]:
        window.add(now, "eth0", Octets(received, 0))
    assert window.utilisation(WINDOW_SECONDS + 9.9) == Utilisation(400, 400, 2)
    assert window.utilisation(WINDOW_SECONDS + 10.0) == Utilisation(0, 0, 1)
    assert window.utilisation(WINDOW_SECONDS + 20.0) is None


@given(st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 10**12)), min_size=1, max_size=60))
def test_mean_and_deviation_are_those_of_the_busier_direction(carried: list[tuple[int, int]]) -> None:
    received, sent = (list(accumulate(column, initial=7)) for column in zip(*carried, strict=True))
    found = filled(*(Octets(*pair) for pair in zip(received, sent, strict=True)))
    rates = [8 * max(pair) / SAMPLE_SECONDS for pair in carried]
    assert found is not None
    assert found.samples == len(carried)
    assert found.mean == pytest.approx(fmean(rates))
    assert found.deviation == pytest.approx(pstdev(rates), abs=1e-3)
