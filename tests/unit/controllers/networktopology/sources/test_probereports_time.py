"""ProbeReports and time: a clock that jumps (itself in test_steady_clock.py), and reports of before an outage."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from berth.api.networktopology import NetworkTopology
from berth.kube.client import ApiClient
from berth.runtime.component import ComponentContext
from controllers.networktopology.sources import probereports as subject
from controllers.networktopology.sources.base import SourceState, Surroundings, TopologyKey
from controllers.networktopology.sources.probe_measurements import Report
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
    source._reflector = cast(Any, SimpleNamespace(objects=objects, synced=synced, healthy=True))
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
