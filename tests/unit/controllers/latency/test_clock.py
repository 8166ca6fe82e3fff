"""A time that goes on steadily whatever becomes of the wall clock, and comes back to it."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.latency.clock import SLEW, TOLERANCE, SlewedClock
from tests.support.latency import later


class World:
    """A wall clock that is so many seconds ahead of the one that is right."""

    def __init__(self) -> None:
        self.passed, self.ahead = 0.0, 0.0
        self.clock = SlewedClock(self.wall, lambda: self.passed)

    def wall(self) -> datetime:
        return later(self.passed + self.ahead)

    def read(self, seconds: float, ahead: float) -> float:
        """Let time pass; what is told, in seconds from the beginning."""
        self.passed, self.ahead = self.passed + seconds, ahead
        return (self.clock() - later(0)).total_seconds()


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        pytest.param([(10, 0)], 10, id="a clock that is right"),
        pytest.param([(10, 1.5), (10, 1.5)], 21.5, id="a correction is followed at once"),
        pytest.param([(10, -1.5)], 8.5, id="backwards too"),
        pytest.param([(10, 3600)], 15, id="a jump ahead is not"),
        pytest.param([(10, -3600)], 5, id="nor one back"),
        pytest.param([(10, 3600), (7190, 3600)], 10_800, id="until it is that of the wall clock"),
        pytest.param([(10, -3600), (7190, -3600)], 3600, id="or that"),
        pytest.param([(10, 3600), (10, 0)], 20, id="a jump that is taken back"),
        pytest.param([(0, -1.5)], 0, id="it does not go back"),
    ],
)
def test_what_is_told(steps: list[tuple[float, float]], told: float) -> None:
    world = World()
    assert [world.read(*step) for step in steps][-1] == pytest.approx(told, abs=TOLERANCE.total_seconds())


@given(st.lists(st.tuples(st.floats(0, 100), st.sampled_from([0.0, 3600.0, -3600.0, 86_400.0])), min_size=1))
def test_it_goes_on_and_not_much_faster(steps: list[tuple[float, float]]) -> None:
    world, before = World(), 0.0
    for seconds, ahead in steps:
        now = world.read(seconds, ahead)
        assert before <= now <= before + seconds * (1 + SLEW) + TOLERANCE.total_seconds()
        before = now
