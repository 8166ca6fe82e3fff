"""What agents report in the simulation, and that the controller's functions agree with the reference about it."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from bench.networktopology.agents import Phase, expected, near, written
from bench.networktopology.fleet import Fleet
from berth.kube.probe_reports import Report
from controllers.networktopology.compute import compute
from controllers.networktopology.sources.probe_measurements import read_reports
from controllers.networktopology.weights import weight_sets


def reported(fleet: Fleet) -> list[Report]:
    """All reports as the controller reads them."""
    return [
        msgspec.convert({"metadata": {"name": node}, "status": fleet.report(node).to_api()}, Report)
        for node in fleet.peers
    ]


@pytest.mark.parametrize(("nodes", "zones"), [(60, 4), (600, 12), (200, 40)])
@pytest.mark.parametrize("slower", [False, True], ids=["as drawn", "one zone is slower"])
def test_the_controllers_functions_agree_with_the_reference(nodes: int, zones: int, slower: bool) -> None:
    fleet = Fleet(nodes, zones)
    if slower:
        fleet.slow_down()
    reading = read_reports(reported(fleet), fleet.places, percentile="p90", now=datetime.now(UTC))
    found = written(weight_sets(compute(reading, fleet.places).sets))
    assert found == expected(fleet.round_trips, fleet.places)
    assert {name for name, *_ in found} == {"Dijkstra", "NetperfCosts"}


@pytest.mark.parametrize(("settled", "shown"), [(None, "-"), (31.4, "31")])
def test_a_phase_as_a_row(settled: float | None, shown: str) -> None:
    phase = Phase("quiet", 120.0, 2000, 6.0, 100.4, (0, 2), settled)
    assert phase.row() == f"| quiet | 120 | 2000 | 6.0 | 5.0 | 100 | 0 | 2 | {shown} |"


@pytest.mark.parametrize(
    ("found", "exact", "alike"), [(9, 10, True), (9, 11, False), (784, 850, True), (784, 870, False), (5, 5, True)]
)
def test_what_may_wait_is_near(found: int, exact: int, alike: bool) -> None:
    assert near(found, exact) == alike
