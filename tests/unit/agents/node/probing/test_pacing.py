"""The cap on probes a second, on a clock that only waiting moves."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.node.probing.pacing import Pacer


class Clock:
    """Seconds that pass by sleeping."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def passed(pauses: list[float], rate: float) -> list[float]:
    """When callers pass that come so long after the one before has."""
    clock = Clock()
    pacer = Pacer(rate, clock=clock, sleep=clock.sleep)
    times = []
    for pause in pauses:
        clock.sleep(pause)
        pacer.wait()
        times.append(clock.now - 1000.0)
    return times


@pytest.mark.parametrize(
    ("pauses", "times"),
    [
        pytest.param([0], [0], id="the first at once"),
        pytest.param([0, 0, 0], [0, 0.5, 1.0], id="the others one by one"),
        pytest.param([0, 0.2], [0, 0.5], id="what has passed counts"),
        pytest.param([0, 7, 0, 0], [0, 7, 7.5, 8.0], id="no burst after a pause"),
    ],
)
def test_wait(pauses: list[float], times: list[float]) -> None:
    assert passed(pauses, rate=2.0) == pytest.approx(times)


@given(pauses=st.lists(st.floats(min_value=0, max_value=3), min_size=2, max_size=40), rate=st.sampled_from([1, 7, 20]))
def test_never_faster_than_the_rate(pauses: list[float], rate: float) -> None:
    times = passed(pauses, rate)
    assert all(after - before >= 1 / rate - 1e-6 for before, after in pairwise(times))
