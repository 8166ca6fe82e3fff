"""ProbeReports that were followed and may not be read any more: what they said counts on, and all are told why."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from berth.api.base import format_timestamp
from berth.api.networktopology import NetworkTopology
from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.probe_reports import Report
from berth.runtime.component import ComponentContext
from controllers.networktopology.sources import probereports as subject
from controllers.networktopology.sources.base import Reading, SourceState, Surroundings, TopologyKey
from tests.support.topologies import places, probe_report, probed_peer, raw_topology, weight_set

KEY = TopologyKey("shop", "net")
PLACES = places(n1="r/A", n2="r/B")
FORBIDDEN = ApiError(status=403, reason="Forbidden", message="no such right")


def served(*, source: str = "probereports", age: float = 60.0) -> NetworkTopology:
    """NetworkTopology with costs of this source, whose newest measurement has this age."""
    time = format_timestamp(datetime.now(UTC) - timedelta(seconds=age))
    raw = raw_topology(weight_set("NetperfCosts"))
    return NetworkTopology.parse({**raw, "status": {"source": source, "dataTime": time}})


def unfollowed() -> subject.ProbeReports:
    """The source before its first look."""
    return subject.ProbeReports(Surroundings(cast(ComponentContext, None), cast(ApiClient, None), print))


def refused(*, age: float) -> subject.ProbeReports:
    """The source with reports of this age, which it was refused since, for longer than a silent watch is healthy."""
    time = datetime.now(UTC) - timedelta(seconds=age)
    source, synced = unfollowed(), asyncio.Event()
    synced.set()
    pairs = (("n1", "n2"), ("n2", "n1"))
    reports = [msgspec.convert(probe_report(a, probed_peer(b, 850, time=time)), Report) for a, b in pairs]
    objects = {report.metadata.name: report for report in reports}
    watch = SimpleNamespace(objects=objects, synced=synced, healthy=False, refusal=FORBIDDEN, age=200.0)
    source._reflector = cast(Any, watch)
    return source


async def read(source: subject.ProbeReports, topology: NetworkTopology) -> tuple[Reading, str, str]:
    """The reading, and what the condition says: reason and message."""
    reading = await source.read(KEY, topology, PLACES)
    condition = source.availability(reading, "until then costs come from UserDefined")
    assert condition.status is False
    return reading, condition.reason, condition.message


async def test_what_they_said_counts_on_and_the_condition_says_why_nothing_new_comes() -> None:
    reading, reason, message = await read(refused(age=60), served())
    assert (reading.state, len(reading.measurements), reason) == (SourceState.READ, 2, "ProbeReportsUnreadable")
    assert "no such right); allow this account to list and watch probereports.berth.dev; what they said" in message


async def test_once_that_is_too_old_it_is_not_the_agents_that_are_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "SETTLE_SECONDS", 0.0)
    reading, reason, message = await read(refused(age=1000), served(age=1000))
    assert (reading.state, reason) == (SourceState.EMPTY, "ProbeReportsUnreadable")
    assert "allow this account to list and watch probereports.berth.dev; until then costs come from" in message


async def test_the_process_goes_on_and_is_not_ready() -> None:
    """One that begins anew would know no reports at all."""
    source = refused(age=60)
    assert source._silence() is None
    assert "no such right" in (source._refused() or "")
    assert unfollowed()._refused() is None


@pytest.mark.parametrize(
    ("weights", "state"),
    [
        pytest.param({}, SourceState.FAILED, id="costs of reports stay"),
        pytest.param({"age": 1000}, SourceState.MISSING, id="until they are too old"),
        pytest.param({"source": "configmap"}, SourceState.MISSING, id="those of others were never held up"),
    ],
)
async def test_a_process_that_begins_without_the_right_leaves_costs_that_count(
    weights: dict[str, Any], state: SourceState
) -> None:
    source = unfollowed()
    for _ in range(subject.ABSENT_CHECKS):
        source._unreadable(FORBIDDEN)
    reading, reason, _ = await read(source, served(**weights))
    assert (reading.state, reason) == (state, "ProbeReportsUnreadable")
