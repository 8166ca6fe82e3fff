"""Presets give the right round trips of recorded answers; tests/data/prometheus/README.md says how these were had."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pytest

from controllers.networktopology.sources.base import Reading
from controllers.networktopology.sources.prometheus_answer import decode_answer, read_series
from controllers.networktopology.sources.prometheus_presets import Preset, preset_query
from tests.support.topologies import places

RECORDED = Path(__file__).resolve().parents[4] / "data" / "prometheus"
PLACES = places(n1="us-east/A", n2="us-east/B", n3="us-west/C", rome="it/R")


def recorded(preset: Preset) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDED / f"{preset}.json").read_text())
    return found


def read(preset: Preset) -> Reading:
    series = decode_answer(200, json.dumps(recorded(preset)["answer"]).encode())
    query = preset_query(preset, "p90")
    assert series[0].value is not None
    return read_series(series, PLACES, query=query, now=datetime.fromtimestamp(series[0].value[0], UTC))


@pytest.mark.parametrize("preset", get_args(Preset))
def test_what_was_recorded_is_the_answer_to_what_is_asked(preset: Preset) -> None:
    assert recorded(preset)["query"] == preset_query(preset, "p90").promql


@pytest.mark.parametrize(
    ("preset", "expected", "malformed"),
    [
        pytest.param(
            "netperf", {("n1", "n2"): 850, ("n1", "n3"): 78_400, ("n2", "n1"): 860}, (), id="90th percentiles"
        ),
        pytest.param("kubenurse", {("n1", "n2"): 1800, ("n1", "n3"): 157_000}, (), id="means by node of the pod"),
        pytest.param("goldpinger", {("n1", "n2"): 2400, ("n1", "n3"): 80_000}, (), id="means by address of the node"),
        pytest.param(
            "cilium",
            {("n1", "n2"): 636},
            ("n1 to n3 is '-1'", "n2 to n3 is '0'"),
            id="pings between nodes, where there was an answer",
        ),
        pytest.param("liqo", {("n1", "rome"): 14_250}, (), id="from the gateway's node to the virtual node"),
    ],
)
def test_round_trips_between_nodes(
    preset: Preset, expected: dict[tuple[str, str], int], malformed: tuple[str, ...]
) -> None:
    found = read(preset)
    assert {(item.origin, item.destination): item.microseconds for item in found.measurements} == expected
    assert (found.malformed, found.unknown_nodes) == (malformed, ())


def test_submariner_measures_between_regions() -> None:
    found = read("submariner")
    assert found.latencies is not None
    regions, zones, _ = found.latencies
    assert regions.known == {("us-east", "us-west"): 71_340, ("us-west", "us-east"): 71_340}
    assert zones.known == {}
    assert found.unknown_nodes == ("us-east to eu-west",)


@pytest.mark.parametrize("percentile", ["p50", "p99"])
def test_another_percentile_is_asked_for_where_there_are_some(percentile: str) -> None:
    assert f"netperf_{percentile}_latency" in preset_query("netperf", percentile).promql
    assert preset_query("kubenurse", percentile) == preset_query("kubenurse", "p90")
