"""Nodes whose clocks are wrong by a little more, or less, than what counts: each is judged once and stays so."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from berth.kube.probe_reports import Report
from controllers.networktopology.sources import probereports as subject
from controllers.networktopology.sources.steady_clock import SteadyClock
from tests.support.topologies import places, probe_report, probed_peer, topology
from tests.unit.controllers.networktopology.sources.test_probereports_time import KEY, following

START = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
HEARTBEAT = 300
PLACES = places(a1="r/A", a2="r/A", b1="r/B", b2="r/B")
PEERS = {"a1": "b1", "a2": "b2", "b1": "a2", "b2": "a1"}


class World:
    """Four nodes that report every 300 seconds; the clock of a1 is wrong."""

    def __init__(self, skew: Callable[[int], float], delay: Callable[[int], float]) -> None:
        self.elapsed = 0.0
        self.source = following()
        self.source._clock = SteadyClock(lambda: START + timedelta(seconds=self.elapsed), lambda: self.elapsed)
        self._skew, self._delay = skew, delay

    def report(self, node: str, beat: int) -> Report:
        """What it writes at a beat; its last probe was so long ago."""
        moment = START + timedelta(seconds=beat * HEARTBEAT - self._delay(beat))
        time = moment + timedelta(seconds=self._skew(beat) if node == "a1" else 0.0)
        return msgspec.convert(probe_report(node, probed_peer(PEERS[node], 850, time=time)), Report)

    async def states(self, beats: int) -> list[tuple[int, str]]:
        """Usable measurements and words of the condition, at a look every 10 seconds after the second reports."""
        reflector: Any = self.source._reflector
        found = []
        for beat in range(beats):
            reflector.objects = {node: self.report(node, beat) for node in PEERS}
            for look in range(0, HEARTBEAT, 10):
                self.elapsed = beat * HEARTBEAT + float(look)
                reading = await self.source.read(KEY, topology(), PLACES)
                if beat:
                    found.append((len(reading.measurements), self.source.availability(reading, "").message))
        return found


AHEAD = "ProbeReports of 3 nodes. Not used because no round trip is like that: a1 probed more than a minute from now"
BEHIND = "ProbeReports of 3 nodes. Not used because older than 15 minutes: 1 measurement"
FINE = "ProbeReports of 4 nodes"


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look reads anew."""
    monkeypatch.setattr(subject, "TELL_SECONDS", -1.0)


@pytest.mark.parametrize(
    ("skew", "state"),
    [
        pytest.param(55.0, (4, FINE), id="a little ahead"),
        pytest.param(75.0, (3, AHEAD), id="more than a minute ahead"),
        pytest.param(200.0, (3, AHEAD), id="less than a report's life ahead"),
        pytest.param(355.0, (3, AHEAD), id="about a report's life ahead"),
        pytest.param(905.0, (3, AHEAD), id="a quarter of an hour ahead"),
        pytest.param(-540.0, (4, FINE), id="nine minutes behind"),
        pytest.param(-600.0, (3, BEHIND), id="ten minutes behind: its reports would age away before the next"),
        pytest.param(-890.0, (3, BEHIND), id="nearly a quarter of an hour behind"),
    ],
)
async def test_a_wrong_clock_has_one_verdict_and_one_sentence(skew: float, state: tuple[int, str]) -> None:
    """It was fine and malformed by turns, with each report."""
    assert set(await World(lambda _: skew, lambda _: 5.0).states(4)) == {state}


@pytest.mark.parametrize("skew", [62.0, 70.0, -565.0, -572.0])
async def test_reports_that_come_sooner_or_later_change_no_verdict(skew: float) -> None:
    delays = (0.0, 15.0)
    states = await World(lambda _: skew, lambda beat: delays[beat % 2]).states(8)
    changes = sum(before != after for before, after in itertools.pairwise(states))
    assert changes <= 1


async def test_a_clock_that_is_set_right_is_believed_with_the_next_report() -> None:
    states = await World(lambda beat: 200.0 if beat < 2 else 0.0, lambda _: 5.0).states(3)
    assert [state for state, _ in itertools.groupby(states)] == [(3, AHEAD), (4, FINE)]
