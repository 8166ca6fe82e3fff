"""ProbeReports while the controller's clock jumps; the clock itself is in test_steady_clock.py."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from berth.kube.client import ApiClient
from berth.runtime.component import ComponentContext
from controllers.networktopology.sources import probereports as subject
from controllers.networktopology.sources.base import SourceState, Surroundings, TopologyKey
from controllers.networktopology.sources.probe_measurements import Report
from controllers.networktopology.sources.steady_clock import SteadyClock
from tests.support.topologies import places, probe_report, probed_peer, topology

PLACES = places(n1="r/A", n2="r/B")


@pytest.mark.parametrize("minutes", [15, -15], ids=["ahead", "back"])
async def test_a_jump_of_the_controllers_clock_and_back_throws_nothing_away(
    monkeypatch: pytest.MonkeyPatch, minutes: int
) -> None:
    monkeypatch.setattr(subject, "TELL_SECONDS", -1.0)
    clock = SimpleNamespace(jump=timedelta())
    source = subject.ProbeReports(Surroundings(cast(ComponentContext, None), cast(ApiClient, None), print))
    source._clock = SteadyClock(lambda: datetime.now(UTC) + clock.jump)
    reports = [probe_report(node, probed_peer(peer, 850)) for node, peer in (("n1", "n2"), ("n2", "n1"))]
    objects = {item["metadata"]["name"]: msgspec.convert(item, Report) for item in reports}
    source._reflector = cast(Any, SimpleNamespace(objects=objects, synced=asyncio.Event(), healthy=True))
    cast(Any, source._reflector).synced.set()
    for clock.jump in (timedelta(), timedelta(minutes=minutes), timedelta()):
        reading = await source.read(TopologyKey("shop", "net"), topology(), PLACES)
        assert (reading.state, len(reading.measurements), reading.stale) == (SourceState.READ, 2, 0)
