"""The source Prometheus as its server is unnamed, new, away, back, and gone for long; answers are elsewhere."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from prometheus_client import REGISTRY

from berth.api.conditions import ConditionStatus
from berth.kube.client import ApiClient
from berth.runtime.component import ComponentContext
from controllers.networktopology.sources import base, prometheus_answer
from controllers.networktopology.sources import prometheus as subject
from controllers.networktopology.sources.base import (
    DEFAULT_SETTINGS,
    Reading,
    SourceSettings,
    SourceState,
    Surroundings,
    TopologyKey,
)
from controllers.networktopology.sources.prometheus import Prometheus
from controllers.networktopology.sources.prometheus_answer import Pair, PrometheusError, Series
from controllers.networktopology.sources.prometheus_presets import own_query
from controllers.networktopology.sources.prometheus_server import PrometheusServer
from controllers.networktopology.sources.steady_clock import SteadyClock
from tests.support.topologies import places, topology, weight_set

PLACES = places(n1="r/A", n2="r/B")
START = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
SETTINGS = SourceSettings("p90", PrometheusServer("http://prometheus:9090", own_query("q", "seconds", "node")))


class World:
    """The source, a server that answers or not, and a clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, settings: SourceSettings = SETTINGS) -> None:
        self.figure = "0.00085"
        self.problem = ""
        self.asked = 0
        self.told: list[TopologyKey] = []
        self.now = 1000.0
        self.jump = timedelta()
        monkeypatch.setattr("controllers.networktopology.sources.prometheus.prometheus_http.ask", self._answer)
        monkeypatch.setattr(subject, "POLL_SECONDS", 0.0)
        monkeypatch.setattr(subject, "time", self)
        self.source = Prometheus(
            Surroundings(cast(ComponentContext, None), cast(ApiClient, None), self.told.append, settings)
        )
        self.source._clock = SteadyClock(lambda: self.true_time() + self.jump, self.monotonic)

    def monotonic(self) -> float:
        return self.now

    def true_time(self) -> datetime:
        return START + timedelta(seconds=self.now)

    async def _answer(self, _: PrometheusServer) -> list[Series]:
        self.asked += 1
        if self.problem:
            raise PrometheusError(self.problem)
        return [Series(Pair("n1", "n2"), (self.true_time().timestamp(), self.figure))]

    async def ask(self) -> None:
        assert SETTINGS.prometheus is not None
        await self.source._ask(SETTINGS.prometheus)

    async def read(self, *weights: dict[str, Any], name: str = "net") -> Reading:
        return await self.source.read(TopologyKey("shop", name), topology(*weights), PLACES)

    def says(self, reading: Reading) -> tuple[ConditionStatus | bool, str, str]:
        found = self.source.availability(reading, "until then costs come from UserDefined")
        return found.status, found.reason, found.message


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


async def test_without_a_server_there_is_none_and_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, DEFAULT_SETTINGS)
    running = asyncio.create_task(world.source.run())
    reading = await world.read()
    assert reading.state is SourceState.MISSING
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert world.asked == 0
    holds, reason, message = world.says(reading)
    assert (holds, reason) == (False, "PrometheusNotConfigured")
    assert "--prometheus-url" in message
    assert "costs come from UserDefined" in message


def test_manifests_name_no_server() -> None:
    assert Prometheus.reading(topology(), PLACES, cast(Any, None)).state is SourceState.MISSING


async def test_nothing_is_concluded_before_the_first_answer(world: World) -> None:
    assert (await world.read()).state is SourceState.PENDING
    await world.ask()
    reading = await world.read()
    assert [item.microseconds for item in reading.measurements] == [850]
    assert world.says(reading) == (True, "PrometheusRead", "Prometheus (query)")


async def test_a_server_that_never_answered_leaves_measured_weights_as_they_are_for_15_minutes(world: World) -> None:
    world.problem = "no answer within 10 s"
    await world.ask()
    reading = await world.read(weight_set("NetperfCosts", zones={"A>B": 9}))
    assert reading.state is SourceState.FAILED
    expected = "Prometheus cannot be read: no answer within 10 s; the computed weights stay as they are"
    assert world.says(reading) == (False, "PrometheusUnreadable", expected)
    world.now += 900
    reading = await world.read(weight_set("NetperfCosts", zones={"A>B": 9}))
    assert reading.state is SourceState.EMPTY


async def test_a_server_that_never_answered_keeps_nobody_from_costs_that_were_not_measured(world: World) -> None:
    world.problem = "no answer within 10 s"
    await world.ask()
    reading = await world.read(weight_set("UserDefined", zones={"A>B": 9}))
    assert reading.state is SourceState.EMPTY
    expected = "Prometheus cannot be read: no answer within 10 s; until then costs come from UserDefined"
    assert world.says(reading) == (False, "PrometheusUnreadable", expected)


async def test_the_last_answer_stands_until_it_is_stale(world: World) -> None:
    await world.ask()
    world.problem = "ClientConnectorError: refused"
    world.now += 899
    await world.ask()
    reading = await world.read()
    assert (reading.state, len(reading.measurements)) == (SourceState.READ, 1)
    holds, reason, message = world.says(reading)
    assert (holds, reason) == (False, "PrometheusUnreadable")
    assert message.startswith("Prometheus gives no new answer: ClientConnectorError: refused; what it said last counts")
    world.now += 1
    reading = await world.read()
    assert (reading.state, reading.stale, reading.measurements) == (SourceState.EMPTY, 1, ())
    assert world.says(reading) == (
        False,
        "PrometheusStale",
        (
            "Prometheus has given no answer for 15 minutes: ClientConnectorError: refused; "
            "until then costs come from UserDefined"
        ),
    )
    world.problem = ""
    await world.ask()
    assert world.says(await world.read())[:2] == (True, "PrometheusRead")


@pytest.mark.parametrize(
    ("figure", "state", "reason"),
    [
        pytest.param("0.00085", SourceState.READ, "PrometheusRead", id="a round trip"),
        pytest.param("NaN", SourceState.EMPTY, "NoUsableMeasurements", id="none that can be"),
    ],
)
async def test_what_an_answer_is_worth(world: World, figure: str, state: SourceState, reason: str) -> None:
    world.figure = figure
    await world.ask()
    reading = await world.read()
    assert (reading.state, world.says(reading)[1]) == (state, reason)


@pytest.mark.parametrize("minutes", [15, -15], ids=["ahead", "back"])
async def test_a_jump_of_the_controllers_clock_and_back_throws_nothing_away(world: World, minutes: int) -> None:
    await world.ask()
    for world.jump in (timedelta(minutes=minutes), timedelta()):
        for _ in range(3):
            world.now += 30
            await world.ask()
            reading = await world.read()
            assert world.says(reading) == (True, "PrometheusRead", "Prometheus (query)")


async def test_a_clock_that_was_wrong_when_the_controller_started_may_be_set(world: World) -> None:
    world.jump = timedelta(hours=1)
    world.source._clock = SteadyClock(lambda: world.true_time() + world.jump, world.monotonic)
    await world.ask()
    holds, reason, message = world.says(await world.read())
    assert (holds, reason) == (False, "ClocksDiffer")
    assert "n1 to n2 is of another time; until then costs come from UserDefined" in message
    world.jump = timedelta()
    await world.ask()
    assert (await world.read()).state is SourceState.READ


def test_what_is_left_out_is_told(world: World) -> None:
    reading = Reading(SourceState.READ, "Prometheus (cilium)", malformed=("a to b is '-1'",), unknown_nodes=("a to x",))
    holds, reason, message = world.says(reading)
    assert (holds, reason) == (True, "SomeMeasurementsUnusable")
    assert "no round trip is like that: a to b is '-1'" in message
    assert "the cluster has no such place: a to x" in message


async def test_an_answer_is_worked_out_once_for_all_topologies(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    whole = prometheus_answer.read_series
    monkeypatch.setattr(subject, "read_series", lambda *given, **named: calls.append(1) or whole(*given, **named))
    await world.ask()
    await asyncio.gather(*(world.read(name=f"net-{number}") for number in range(5)))
    assert len(calls) == 1
    await world.ask()
    await world.read()
    await world.source.read(TopologyKey("shop", "net"), topology(), places(n1="r/A"))
    assert len(calls) == 3


async def test_it_is_asked_again_and_again_and_those_served_are_looked_at(world: World) -> None:
    await world.read(name="net")
    await world.read(name="other")
    world.source.forget(TopologyKey("shop", "other"))
    running = asyncio.create_task(world.source.run())
    while world.asked < 3:
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert set(world.told) == {TopologyKey("shop", "net")}


async def test_every_query_is_counted(world: World) -> None:
    def counts() -> list[float]:
        name = "berth_networktopology_prometheus_queries_total"
        return [REGISTRY.get_sample_value(name, {"outcome": outcome}) or 0.0 for outcome in ("answered", "failed")]

    before = counts()
    for world.problem in ("", "away", ""):
        await world.ask()
    assert [now - then for now, then in zip(counts(), before, strict=True)] == [2, 1]


async def test_trouble_is_logged_once_and_so_is_its_end(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = []
    for problem in ("", "away", "away", "", ""):
        world.problem = problem
        await world.ask()
        outcomes.append(capsys.readouterr().out.count("Prometheus"))
    assert outcomes == [0, 1, 0, 1, 0]


def test_what_does_not_count_is_put_into_words_once_for_all(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of hundreds of thousands of series of other clusters took a tenth of a second for each NetworkTopology."""
    words: list[Reading] = []
    count = base.left_out
    monkeypatch.setattr(base, "left_out", lambda reading, **how: words.append(reading) or count(reading, **how))
    reading = Reading(SourceState.EMPTY, "Prometheus (query)", unknown_nodes=("x to y",))
    for name in ("Prometheus (query)", "another"):
        assert "the cluster has no such place: x to y" in world.says(replace(reading, name=name))[2]
    assert len(words) == 1
    assert "no such place: z to y" in world.says(replace(reading, unknown_nodes=("z to y",)))[2]
    assert "no such place" not in world.says(replace(reading, unknown_nodes=()))[2]


async def test_the_loop_is_not_held_up_by_those_words(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every answer is new, so that every half a minute it was a quarter of a second."""
    threads: list[threading.Thread] = []
    count = base.left_out

    def put(reading: Reading, **how: str) -> str:
        threads.append(threading.current_thread())
        return count(reading, **how)

    monkeypatch.setattr(base, "left_out", put)
    world.figure = "-1"
    for _ in range(2):
        await world.ask()
        assert "n1 to n2 is '-1'" in world.says(await world.read())[2]
    assert len(threads) == 2
    assert threading.main_thread() not in threads
