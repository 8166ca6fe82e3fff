"""The simulated reports: the weights that follow from them are those of the simulated network."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest

from bench.networktopology.reports import measure, simulated
from controllers.networktopology.compute import compute
from controllers.networktopology.sources.probe_measurements import read_reports

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(("nodes", "zones"), [(60, 4), (600, 12), (1000, 40)])
def test_weights_are_those_of_the_simulated_network(nodes: int, zones: int) -> None:
    places, reports, truth = simulated(nodes, zones, now=NOW, seed=nodes)
    found = compute(read_reports(reports, places, percentile="p90", now=NOW), places)
    assert (*found.missing_regions, *found.missing_zones) == ()
    direct = found.sets["NetperfCosts"].zones
    assert set(direct) == set(places.zone_pairs())
    for (origin, destination), cost in direct.items():
        microseconds = truth[f"{origin}>{destination}"]
        assert math.floor(0.95 * microseconds / 100) <= cost <= math.ceil(1.05 * microseconds / 100)


def test_every_size_is_measured() -> None:
    found = measure(60, 4, rounds=1, seed=1)
    assert (found.nodes, found.zones, found.measurements) == (60, 4, 180)
    assert found.read > 0
    assert found.compute > 0
