"""Which ProbeReports say something about their node's link."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import msgspec
import numpy as np
import pytest

from berth.kube.client import ApiClient
from berth.kube.probe_reports import LinkReport
from berth.scheduling.cache.link_use import MAX_AGE, LinkUseTable
from controllers.placement.link_reports import LinkReports
from tests.support.placement import Clock

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
LINK = {"interface": "eth0", "capacityBitsPerSecond": 10, "meanBitsPerSecond": 5, "deviationBitsPerSecond": 2}


def report(bandwidth: dict[str, Any] | None, *, age: float = 0.0, **status: Any) -> LinkReport:
    time = (NOW - timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%SZ")
    body = {"metadata": {"name": "n1"}, "status": {"time": time, "bandwidth": bandwidth, "peers": [], **status}}
    return msgspec.json.decode(msgspec.json.encode(body), type=LinkReport)


class World:
    def __init__(self, *, ahead: float = 0.0) -> None:
        now = NOW + timedelta(seconds=ahead)
        self.table = LinkUseTable(Clock())
        self.reports = LinkReports(
            cast("ApiClient", None), self.table, deferring=lambda handler, _: handler, now=lambda: now
        )

    def known(self) -> list[float]:
        return [float(np.nan_to_num(row, nan=-1.0)[0]) for row in self.table.arrays({"n1": 0}, 1)]


NOTHING = [-1.0, -1.0, -1.0]


@pytest.mark.parametrize(
    ("seen", "figures"),
    [
        pytest.param(report(LINK), [5, 2, 10], id="fresh"),
        pytest.param(report({**LINK, "capacityBitsPerSecond": None}), [5, 2, -1], id="no-capacity"),
        pytest.param(report({**LINK, "deviationBitsPerSecond": None}), [5, 0, 10], id="no-deviation"),
        pytest.param(report({**LINK, "meanBitsPerSecond": None}), NOTHING, id="no-samples"),
        pytest.param(report({**LINK, "meanBitsPerSecond": -1}), NOTHING, id="negative"),
        pytest.param(report(None), NOTHING, id="no-link"),
        pytest.param(report(LINK, age=MAX_AGE), NOTHING, id="too-old"),
        pytest.param(report(LINK, age=61), [5, 2, 10], id="of-an-earlier-time"),
        pytest.param(report(LINK, time="yesterday"), NOTHING, id="no-time"),
        pytest.param(report(LINK, time="2026-11-01T12:00:00"), NOTHING, id="no-zone-of-time"),
    ],
)
def test_what_a_report_says(seen: LinkReport, figures: list[float]) -> None:
    world = World()
    world.reports.on_report(None, report(LINK))
    world.reports.on_report(report(LINK), seen)
    assert world.known() == figures


@pytest.mark.parametrize("ahead", [3600, -3600, 315_360_000, -315_360_000], ids="{} s".format)
def test_a_report_that_comes_in_was_just_written_whatever_the_clocks_show(ahead: float) -> None:
    world = World(ahead=ahead)
    before, after = report(LINK, age=30), report(LINK)
    world.reports.on_report(None, before)
    assert world.known() == NOTHING
    world.reports.on_report(before, after)
    assert world.known() == [5, 2, 10]
    world.reports.on_report(after, before)
    assert world.known() == NOTHING, "one of an earlier time is not new"


def test_a_report_that_goes_says_nothing_more() -> None:
    world = World()
    world.reports.on_report(None, report(LINK))
    world.reports.on_report(report(LINK), None)
    assert world.known() == NOTHING


def test_reports_are_followed_through_the_watch() -> None:
    world = World()
    world.reports.watch._change("n1", None, report(LINK))
    assert world.known() == [5, 2, 10]
