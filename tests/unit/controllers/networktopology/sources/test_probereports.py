"""The source ProbeReports as its kind is absent, forbidden, there, silent and gone; the round trips are elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from berth.api.networktopology import NetworkTopology
from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.probe_reports import Report
from berth.runtime.component import ComponentContext
from berth.runtime.health import Checks
from controllers.networktopology.sources import probereports as subject
from controllers.networktopology.sources.base import Reading, SourceState, Surroundings, TopologyKey
from controllers.networktopology.sources.coverage import Coverage
from controllers.networktopology.sources.probereports import ProbeReports
from tests.support.topologies import places, probe_report, probed_peer, raw_topology, weight_set

KEY = TopologyKey("shop", "net")
PLACES = places(n1="r/A", n2="r/B", n3="r/B")


def report() -> Report:
    """One of this moment: after a quarter of an hour it is stale, and a run of all tests takes longer."""
    return msgspec.convert(probe_report("n1", probed_peer("n2", 850)), Report)


def begun(*weights: dict[str, Any]) -> NetworkTopology:
    """NetworkTopology that has its costs from reports already."""
    return NetworkTopology.parse({**raw_topology(*weights), "status": {"source": "probereports"}})


class Watch:
    """A reflector whose state the test sets."""

    def __init__(self, *_: Any) -> None:
        self.objects: dict[str, Report] = {}
        self.synced = asyncio.Event()
        self.healthy, self.refusal = True, None
        self.age = 0.0
        self.changed: Callable[[], None] = lambda: None
        self.running = False

    def add_batch_handler(self, handler: Callable[[], None]) -> None:
        self.changed = handler

    async def run(self) -> None:
        self.running = True
        try:
            await asyncio.Event().wait()
        finally:
            self.running = False

    def say(self, *reports: Report) -> None:
        """Have these reports, all of them."""
        self.objects = {report.metadata.name: report for report in reports}
        self.synced.set()
        self.changed()


class World:
    """The source, and an API server that has the kind or not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *statuses: int) -> None:
        *self.first, self.status = statuses or (200,)
        self.watches: list[Watch] = []
        self.told: list[TopologyKey] = []
        self.checks = Checks()
        monkeypatch.setattr(subject, "Reflector", self._watch)
        monkeypatch.setattr(subject, "TELL_SECONDS", 0.0)
        self.source = ProbeReports(Surroundings(cast(ComponentContext, self), cast(ApiClient, self), self.told.append))

    def _watch(self, *_: Any) -> Watch:
        self.watches.append(Watch())
        return self.watches[-1]

    async def list_pages(self, *_: Any, **__: Any) -> AsyncIterator[list[Report]]:
        status = self.first.pop(0) if self.first else self.status
        if status != 200:
            raise ApiError(status=status, reason="No", message="no")
        yield []

    async def look(self, times: int = 1) -> None:
        for _ in range(times):
            await self.source._look()
        await asyncio.sleep(0)

    async def read(self, name: str = "net", *weights: dict[str, Any]) -> Reading:
        """Read for a NetworkTopology that has its costs from reports already."""
        return await self.source.read(TopologyKey("shop", name), begun(*weights), PLACES)


Make = Callable[..., World]


@pytest.fixture
async def make(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Make]:
    """Makes worlds, and ends what they follow."""
    worlds: list[World] = []

    def one(*statuses: int) -> World:
        worlds.append(World(monkeypatch, *statuses))
        return worlds[-1]

    yield one
    for world in worlds:
        if world.source._following is not None:
            world.source._following.cancel()


async def test_nothing_is_concluded_before_the_first_look(make: Make) -> None:
    assert (await make().read()).state is SourceState.PENDING


@pytest.mark.parametrize(
    ("status", "state", "detail"),
    [
        pytest.param(404, SourceState.MISSING, "", id="no such kind"),
        pytest.param(403, SourceState.MISSING, "to list and watch probereports.berth.dev", id="no right: as if absent"),
        pytest.param(500, SourceState.FAILED, "to list and watch probereports.berth.dev", id="trouble"),
    ],
)
async def test_a_kind_that_cannot_be_read(make: Make, status: int, state: SourceState, detail: str) -> None:
    world = make(status)
    await world.look(3)
    found = await world.read()
    assert found.state is state
    assert found.detail.endswith(detail)
    assert world.watches == []


@pytest.mark.parametrize(
    ("first", "then", "state"),
    [
        pytest.param(500, 200, SourceState.PENDING, id="trouble that is over at once"),
        pytest.param(403, 200, SourceState.PENDING, id="an API server that knows no rights yet"),
        pytest.param(500, 404, SourceState.MISSING, id="trouble, then no kind"),
    ],
)
async def test_one_bad_answer_is_no_absence(make: Make, first: int, then: int, state: SourceState) -> None:
    """Taken for absent, its costs would be replaced by those of another source until the next look."""
    world = make(first, then)
    await world.look()
    assert (await world.read()).state is SourceState.FAILED
    await world.look()
    assert (await world.read()).state is state


async def test_what_cannot_be_read_is_looked_at_again_soon_and_told(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "RETRY_SECONDS", 0.0)
    world = make(403)
    running = asyncio.create_task(world.source.run())
    try:
        assert (await world.read()).state is SourceState.PENDING
        while not world.told:  # else this test times out
            await asyncio.sleep(0)
        assert (await world.read()).state is SourceState.MISSING
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_refusals_count_in_a_row(make: Make) -> None:
    world = make(403, 500, 403)
    await world.look(3)
    assert (await world.read()).state is SourceState.FAILED


async def test_a_kind_that_is_there_is_followed_once_and_read(make: Make) -> None:
    world = make()
    await world.look(2)
    (watch,) = world.watches
    assert (await world.read()).state is SourceState.PENDING
    watch.say()
    assert (await world.read()).state is SourceState.MISSING
    watch.say(report())
    found = await world.read()
    assert (found.state, found.name) == (SourceState.READ, "ProbeReports of 1 node")


async def test_while_the_api_server_is_silent_nothing_is_concluded(make: Make) -> None:
    """Agents cannot write either: after an outage all reports look old."""
    world = make()
    await world.look()
    world.watches[0].say(report())
    world.watches[0].healthy = False
    assert (await world.read()).state is SourceState.PENDING


def old() -> Report:
    """One of a node that has written nothing for an hour."""
    time = datetime.now(UTC) - timedelta(hours=1)
    return msgspec.convert(probe_report("n2", *[probed_peer(name, 850, time=time) for name in ("n1", "n3")]), Report)


def waiting() -> Report:
    """One of before an outage of five minutes; its agent could not write since."""
    time = datetime.now(UTC) - timedelta(minutes=10)
    return msgspec.convert(probe_report("n1", probed_peer("n2", 850, time=time)), Report)


MEASURED = weight_set("NetperfCosts", zones={"A>B": 9})


@pytest.mark.parametrize(
    ("reports", "weights", "settle", "state"),
    [
        pytest.param([old], [MEASURED], 60.0, SourceState.FAILED, id="all are old"),
        pytest.param([old, report], [MEASURED], 60.0, SourceState.FAILED, id="the first agent has written again"),
        pytest.param([report], [MEASURED], 60.0, SourceState.READ, id="none is old"),
        pytest.param([waiting], [MEASURED], 60.0, SourceState.READ, id="it was away for five minutes"),
        pytest.param([old], [MEASURED], 0.0, SourceState.EMPTY, id="all are old still"),
        pytest.param([old, report], [MEASURED], 0.0, SourceState.READ, id="most agents have gone"),
        pytest.param([old], [], 60.0, SourceState.EMPTY, id="no measured costs that could stay"),
    ],
)
async def test_after_an_outage_of_the_api_server_old_reports_prove_nothing(
    make: Make,
    monkeypatch: pytest.MonkeyPatch,
    reports: list[Callable[[], Report]],
    weights: list[dict[str, Any]],
    settle: float,
    state: SourceState,
) -> None:
    """Agents could not write, nor could the controller lead: it has just been started."""
    monkeypatch.setattr(subject, "SETTLE_SECONDS", settle)
    world = make()
    await world.look()
    world.watches[0].say(*(made() for made in reports))
    assert (await world.read("net", *weights)).state is state


async def test_every_outage_counts(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    world, clock = make(), 1000.0
    monkeypatch.setattr(subject, "time", SimpleNamespace(monotonic=lambda: clock))
    await world.look()
    watch = world.watches[0]
    watch.say(old())
    for _ in range(2):
        assert (await world.read("net", MEASURED)).state is SourceState.FAILED
        clock += subject.SETTLE_SECONDS
        assert (await world.read("net", MEASURED)).state is SourceState.EMPTY
        watch.healthy = False
        await world.look()
        watch.healthy = True


async def test_a_kind_that_goes_is_left_and_one_that_comes_back_followed(make: Make) -> None:
    world = make()
    await world.look()
    world.watches[0].say(report())
    world.status = 404
    await world.look()
    assert (await world.read()).state is SourceState.READ, "one answer may be a load balancer's"
    world.status = 200
    await world.look()
    world.status = 404
    await world.look(2)
    assert (await world.read()).state is SourceState.MISSING
    assert not world.watches[0].running
    world.status = 200
    await world.look()
    world.watches[1].say(report())
    assert (await world.read()).state is SourceState.READ


async def test_trouble_of_the_api_server_ends_nothing(make: Make) -> None:
    world = make()
    await world.look()
    world.watches[0].say(report())
    world.status = 500
    await world.look(5)
    assert (await world.read()).state is SourceState.READ


async def test_reports_are_worked_out_once_for_all_topologies(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    world = make()
    monkeypatch.setattr(subject, "TELL_SECONDS", 3600.0)
    await world.look()
    world.watches[0].say(report())
    first, *others = await asyncio.gather(*(world.read(f"net-{number}") for number in range(5)))
    assert all(other is first for other in others)
    world.watches[0].say(report())
    assert await world.read() is first, "with thousands of agents there is always one that has just written"
    telling = asyncio.create_task(world.source._tell())
    while not world.told:
        await asyncio.sleep(0)
    assert await world.read() is not first
    telling.cancel()
    monkeypatch.setattr(subject, "TELL_SECONDS", -1.0)
    assert await world.read() is not await world.read(), "measurements grow old"


async def test_changes_make_those_due_that_are_served(make: Make) -> None:
    world = make()
    running = asyncio.create_task(world.source.run())
    try:
        await world.read("net")
        await world.read("other")
        world.source.forget(TopologyKey("shop", "other"))
        while not world.watches:
            await asyncio.sleep(0)
        world.watches[0].say(report())
        while not world.told:
            await asyncio.sleep(0)
        assert set(world.told) == {KEY}
        assert world.checks.health() == {}
        world.watches[0].healthy, world.watches[0].age = False, 200.0
        assert world.checks.health() == {"watch probereports": "no response from the API server for 200 s"}
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert not world.watches[0].running


@pytest.mark.parametrize(
    ("reading", "holds", "reason", "says"),
    [
        pytest.param(
            Reading(SourceState.READ, "ProbeReports of 3 nodes"),
            True,
            "ProbeReportsRead",
            "ProbeReports of 3 nodes",
            id="read",
        ),
        pytest.param(
            Reading(SourceState.READ, "R", unknown_nodes=("n1 to n9",), stale=4),
            True,
            "ProbeReportsRead",
            "no such node exists: n1 to n9. Not used because older than 15 minutes: 4 measurements",
            id="nodes come and go",
        ),
        pytest.param(
            Reading(SourceState.READ, "R", malformed=("n1 to n2 took -5 microseconds",)),
            True,
            "SomeMeasurementsUnusable",
            "no round trip is like that: n1 to n2 took -5 microseconds",
            id="nonsense",
        ),
        pytest.param(
            Reading(SourceState.MISSING, "ProbeReports"), False, "NoProbeReports", "run the node agents", id="none"
        ),
        pytest.param(
            Reading(SourceState.MISSING, "R", detail="not allowed"),
            False,
            "ProbeReportsUnreadable",
            "not allowed",
            id="chosen and no right",
        ),
        pytest.param(
            Reading(SourceState.TOO_FEW, "ProbeReports of 1 node", coverage=Coverage(1, 8, 0, 6)),
            False,
            "TooFewProbeReports",
            "ProbeReports of 1 node are too few to begin with: 1 of 8 nodes report, and",
            id="too few",
        ),
        pytest.param(
            Reading(SourceState.EMPTY, "R", stale=7),
            False,
            "ProbeReportsStale",
            "whether the node agents run",
            id="old",
        ),
        pytest.param(
            Reading(SourceState.EMPTY, "R", unknown_nodes=("gone",)),
            False,
            "NoUsableMeasurements",
            "no such node exists: gone",
            id="nothing usable",
        ),
        pytest.param(
            Reading(SourceState.FAILED, "R", detail="forbidden"),
            False,
            "ProbeReportsUnreadable",
            "forbidden; the computed weights stay as they are",
            id="unreadable",
        ),
    ],
)
def test_availability(monkeypatch: pytest.MonkeyPatch, reading: Reading, holds: bool, reason: str, says: str) -> None:
    found = World(monkeypatch).source.availability(reading, "costs come from UserDefined")
    assert (found.type, found.status, found.reason) == ("SourceAvailable", holds, reason)
    assert says in found.message
    assert ("costs come from UserDefined" in found.message) == (not holds and reading.settled)
