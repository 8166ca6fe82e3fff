"""ProbeReports and time: a clock that jumps (itself in test_steady_clock.py), and reports of before an outage."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from berth.api.networktopology import NetworkTopology
from berth.kube.client import ApiClient
from berth.kube.probe_reports import Report
from berth.runtime.component import ComponentContext
from controllers.networktopology.sources import base
from controllers.networktopology.sources import probereports as subject
from controllers.networktopology.sources.base import Reading, SourceState, Surroundings, TopologyKey
from controllers.networktopology.sources.steady_clock import SteadyClock
from tests.support.topologies import places, probe_report, probed_peer, raw_topology, topology, weight_set

KEY = TopologyKey("shop", "net")
PLACES = places(n1="r/A", n2="r/B")


def following(*reports: dict[str, Any]) -> subject.ProbeReports:
    """The source with these reports, which the API server has told it of."""
    source = subject.ProbeReports(Surroundings(cast(ComponentContext, None), cast(ApiClient, None), print))
    objects = {item["metadata"]["name"]: msgspec.convert(item, Report) for item in reports}
    synced = asyncio.Event()
    synced.set()
    source._reflector = cast(Any, SimpleNamespace(objects=objects, synced=synced, healthy=True, refusal=None))
    return source


@pytest.mark.parametrize("minutes", [15, -15], ids=["ahead", "back"])
async def test_a_jump_of_the_controllers_clock_and_back_throws_nothing_away(
    monkeypatch: pytest.MonkeyPatch, minutes: int
) -> None:
    monkeypatch.setattr(subject, "TELL_SECONDS", -1.0)
    clock = SimpleNamespace(jump=timedelta())
    source = following(probe_report("n1", probed_peer("n2", 850)), probe_report("n2", probed_peer("n1", 850)))
    source._clock = SteadyClock(lambda: datetime.now(UTC) + clock.jump)
    for clock.jump in (timedelta(), timedelta(minutes=minutes), timedelta()):
        reading = await source.read(KEY, topology(), PLACES)
        assert (reading.state, len(reading.measurements), reading.stale) == (SourceState.READ, 2, 0)


@pytest.mark.parametrize(
    ("source", "state"),
    [
        pytest.param("probereports", SourceState.FAILED, id="costs of reports stay"),
        pytest.param(None, SourceState.FAILED, id="so they do where the status does not say"),
        pytest.param("configmap", SourceState.EMPTY, id="costs of a ConfigMap go on"),
    ],
)
async def test_old_reports_hold_up_no_costs_of_another_source(source: str | None, state: SourceState) -> None:
    """After an outage it is not known yet whether agents have stopped."""
    then = datetime.now(UTC) - timedelta(hours=1)
    measured = raw_topology(weight_set("NetperfCosts", zones={"A>B": 9}))
    net = NetworkTopology.parse({**measured, "status": {"source": source} if source else {}})
    reading = await following(probe_report("n1", probed_peer("n2", 850, time=then))).read(KEY, net, PLACES)
    assert reading.state is state


NET = NetworkTopology.parse(
    {**raw_topology(weight_set("NetperfCosts", zones={"A>B": 9})), "status": {"source": "probereports"}}
)


def pair(age: float) -> list[dict[str, Any]]:
    """What two nodes report that have probed each other so many seconds ago."""
    then = datetime.now(UTC) - timedelta(seconds=age)
    return [probe_report(node, probed_peer(peer, 850, time=then)) for node, peer in (("n1", "n2"), ("n2", "n1"))]


@pytest.mark.parametrize(
    ("wrong", "detail", "says"),
    [
        pytest.param(4000.0, "before the API server could be reached", "more than an hour ahead of", id="ahead"),
        pytest.param(-4000.0, "of the future by the clock of this", "more than an hour behind", id="behind"),
        pytest.param(-200_000.0, "of the future by the clock of this", "more than a day behind", id="by days"),
    ],
)
async def test_a_clock_that_is_wrong_from_the_start_is_outvoted_once_agents_report(
    monkeypatch: pytest.MonkeyPatch, wrong: float, detail: str, says: str
) -> None:
    """Until then measured costs stay; and that it is wrong is told."""
    monkeypatch.setattr(subject, "TELL_SECONDS", -1.0)
    source = following(*pair(age=200.0))
    source._clock = SteadyClock(lambda: datetime.now(UTC) + timedelta(seconds=wrong))
    reflector: Any = source._reflector
    source._reported.hear(reflector.objects, time.monotonic())
    reading = await source.read(KEY, NET, PLACES)
    assert reading.state is SourceState.FAILED
    assert detail in reading.detail
    reflector.objects = {item["metadata"]["name"]: msgspec.convert(item, Report) for item in pair(age=5.0)}
    source._reported.hear(reflector.objects, time.monotonic())
    reading = await source.read(KEY, NET, PLACES)
    assert (reading.state, len(reading.measurements), reading.mistimed) == (SourceState.READ, 2, 0)
    assert max(item.age for item in reading.measurements) < 60
    found = source.availability(reading, "")
    assert (found.status, found.reason) == (True, "ClocksDiffer")
    assert found.message.startswith("ProbeReports of 2 nodes. ")
    assert says in found.message


async def test_reports_are_heard_as_they_come_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "TELL_SECONDS", 0.0)
    source = following(*pair(age=200.0))
    reflector: Any = source._reflector
    telling = asyncio.create_task(source._tell())
    for age in (200.0, 0.0):
        reflector.objects = {item["metadata"]["name"]: msgspec.convert(item, Report) for item in pair(age)}
        source._news.set()
        while source._news.is_set():  # else this test times out
            await asyncio.sleep(0)
    telling.cancel()
    reported = source._reported.at(time.monotonic())
    assert reported is not None
    assert abs((datetime.now(UTC) - reported).total_seconds()) < 30


@pytest.mark.parametrize(
    ("reading", "reason", "says"),
    [
        pytest.param(Reading(SourceState.EMPTY, "R", stale=7), "ProbeReportsStale", "the clock of this", id="stale"),
        pytest.param(
            Reading(SourceState.EMPTY, "R", malformed=("n1 to n2 was probed more than a day from now",), mistimed=1),
            "ClocksDiffer",
            "are of the future; see whether the clock of this controller is behind, or those of the nodes ahead",
            id="of the future",
        ),
    ],
)
def test_where_no_time_fits_the_clock_is_named(reading: Reading, reason: str, says: str) -> None:
    found = following().availability(reading, "costs come from UserDefined")
    assert (found.status, found.reason) == (False, reason)
    assert says in found.message


async def test_what_does_not_count_is_put_into_words_once_and_outside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that is wrong nothing counts of what thousands of agents say, for each NetworkTopology."""
    threads: list[threading.Thread] = []
    count = base.left_out

    def put(reading: Reading, **how: str) -> str:
        threads.append(threading.current_thread())
        return count(reading, **how)

    monkeypatch.setattr(base, "left_out", put)
    source = following(probe_report("n1", probed_peer("n2", 850, time=datetime.now(UTC) + timedelta(hours=1))))
    for name in ("net", "other"):
        reading = await source.read(TopologyKey("shop", name), topology(), PLACES)
        assert "n1 probed more than a minute from now" in source.availability(reading, "no costs").message
    assert len(threads) == 1
    assert threading.main_thread() not in threads
