"""A wall clock that jumps, and measurements that say which present is right."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.probe_reports import Report
from controllers.networktopology.sources.base import Reading
from controllers.networktopology.sources.probe_measurements import read_reports
from controllers.networktopology.sources.steady_clock import SteadyClock
from tests.support.topologies import places, probe_report, probed_peer

START = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
PLACES = places(n1="r/A", n2="r/B")


class World:
    """Two nodes that report every five minutes, and a controller whose clocks the test sets."""

    def __init__(self, wrong: float = 0.0) -> None:
        self.passed = 0.0
        self.asleep = 0.0
        self.wrong = wrong
        self.clock = SteadyClock(lambda: self.time + timedelta(seconds=self.wrong), lambda: self.passed - self.asleep)

    @property
    def time(self) -> datetime:
        """The true time."""
        return START + timedelta(seconds=self.passed)

    def at(self, reported: datetime) -> Callable[[datetime], Reading]:
        """What reports of a time say."""
        reports = [
            msgspec.convert(probe_report(node, probed_peer(peer, 850, time=reported)), Report)
            for node, peer in (("n1", "n2"), ("n2", "n1"))
        ]
        return lambda now: read_reports(reports, PLACES, percentile="p90", now=now)

    def look(self, age: float = 30.0) -> int:
        """How many measurements of this true age count now."""
        reading = self.clock.read(self.clock.present(), self.at(self.time - timedelta(seconds=age)))
        return len(reading.measurements)


@pytest.mark.parametrize("jump", [900.0, -900.0, 3600.0, -86_400.0], ids=lambda jump: f"{jump:+.0f}s")
def test_a_jump_and_back_throws_nothing_away(jump: float) -> None:
    world = World()
    for world.wrong in (0.0, jump, 0.0, jump):
        for _ in range(40):
            world.passed += 30.0
            assert world.look(age=world.passed % 300.0) == 2


@pytest.mark.parametrize("wrong", [-3600.0, 3600.0], ids=["behind", "ahead"])
def test_a_clock_that_was_wrong_from_the_start_may_be_set(wrong: float) -> None:
    world = World(wrong)
    assert world.look() == 0
    world.wrong = 0.0
    assert world.look() == 2
    world.passed += 600.0
    assert world.look() == 2
    assert world.clock.present().steady is None


def test_a_machine_that_was_asleep_goes_by_the_wall_clock_once_there_are_new_reports() -> None:
    """The monotonic clock does not count the time of sleep."""
    world = World()
    assert world.look(age=30.0) == 2
    world.passed = world.asleep = 7200.0
    assert world.look(age=7230.0) == 2, "the last reports of before are all that there is"
    world.passed += 20.0
    assert world.look(age=0.0) == 2
    assert world.clock.present().steady is None


def test_a_present_that_is_read_twice_is_followed_once() -> None:
    world = World(3600.0)
    world.wrong = 0.0
    present = world.clock.present()
    for _ in range(2):
        assert len(world.clock.read(present, world.at(world.time)).measurements) == 2
    assert world.clock.present().steady is None


@given(steps=st.lists(st.tuples(st.floats(0, 600), st.floats(-60, 60)), max_size=20))
def test_a_clock_that_is_set_little_by_little_is_followed(steps: list[tuple[float, float]]) -> None:
    world = World()
    for passed, slew in steps:
        world.passed += passed
        world.wrong += 0.99 * slew
        present = world.clock.present()
        assert present.steady is None
        assert present.wall == world.time + timedelta(seconds=world.wrong)
