"""Budgets of links: which capacity of a NetworkTopology counts, and what traffic takes of which."""

from __future__ import annotations

from typing import Any

import pytest

from berth.api.labels import LABEL_REGION, LABEL_SEGMENT, LABEL_ZONE
from berth.network.costs import Place
from berth.network.link_budgets import MAX_BUDGET, PlacePair, pairs_between, read_budgets, taken
from tests.support.topologies import topology, weight_set

REGIONS = PlacePair(LABEL_REGION, "r1", "r2")
ZONES = PlacePair(LABEL_ZONE, "z1", "z2")
INSIDE = (PlacePair(LABEL_REGION, "r1", "r1"), PlacePair(LABEL_ZONE, "z1", "z1"))
SEGMENTS = PlacePair(LABEL_SEGMENT, "s1", "s2")
SETS = ("Dijkstra", "UserDefined")


def capacity(text: Any, **fields: Any) -> dict[str, Any]:
    return {"bandwidthCapacity": text, **fields}


@pytest.mark.parametrize(
    ("zones", "budget"),
    [
        pytest.param({"z1>z2": capacity("1G")}, 10**9, id="one-direction-is-stated"),
        pytest.param({"z1>z2": capacity("1G"), "z2>z1": capacity("300M")}, 3 * 10**8, id="the-smaller-counts"),
        pytest.param({"z2>z1": capacity("1G", networkCost=7)}, 10**9, id="in-either-order"),
        pytest.param({"z1>z2": capacity("1500m")}, 2, id="whole-bits"),
        pytest.param({"z1>z2": capacity("1e30")}, MAX_BUDGET, id="absurd"),
        pytest.param({"z1>z2": capacity("1M", bandwidthAllocated="1M")}, 10**6, id="allocated-is-not-read"),
        pytest.param({"z1>z2": capacity("0")}, None, id="zero-is-what-clients-write-for-none"),
        pytest.param({"z1>z2": capacity("-5")}, None, id="negative"),
        pytest.param({"z1>z2": capacity("fast")}, None, id="no-quantity"),
        pytest.param({"z1>z2": capacity("1G", isAllowed=False)}, None, id="no-link"),
        pytest.param({"z1>z2": 5}, None, id="cost-only"),
    ],
)
def test_budget_of_two_zones(zones: Any, budget: int | None) -> None:
    assert read_budgets(topology(weight_set("UserDefined", zones=zones)), SETS).get(ZONES) == budget


def test_the_first_set_that_states_a_capacity_counts() -> None:
    stated = topology(
        weight_set("UserDefined", zones={"z1>z2": capacity("1G")}, regions={"r1>r2": capacity("5G")}),
        weight_set("Dijkstra", zones={"z1>z2": capacity("2G")}, regions={"r1>r2": 3}),
        weight_set("Others", zones={"z1>z2": capacity("1M")}),
    )
    assert read_budgets(stated, SETS) == {ZONES: 2 * 10**9, REGIONS: 5 * 10**9}
    assert read_budgets(stated, ("Nothing",)) == {}


@pytest.mark.parametrize(
    ("one", "other", "pairs"),
    [
        pytest.param(Place("r2", "z2"), Place("r1", "z1"), (REGIONS, ZONES), id="regions-and-zones"),
        pytest.param(Place("r1"), Place("r2", "z2"), (REGIONS,), id="no-zone"),
        pytest.param(Place("", "z1"), Place("r2", "z2"), (ZONES,), id="no-region"),
        pytest.param(Place(), Place(), (), id="neither"),
        pytest.param(Place("r1"), Place("r1"), (PlacePair(LABEL_REGION, "r1", "r1"),), id="inside"),
        pytest.param(Place("r1", "z1", "s1"), Place("r2", "z2", "s2"), (REGIONS, ZONES), id="segments-of-two-zones"),
        pytest.param(Place("r1", "z1", "s2"), Place("r1", "z1", "s1"), (*INSIDE, SEGMENTS), id="segments-of-a-zone"),
        pytest.param(Place("r1", "z1", "s2"), Place("r1", "z1"), INSIDE, id="no-segment"),
    ],
)
def test_traffic_takes_of_the_pairs_of_places_that_it_runs_between(
    one: Place, other: Place, pairs: tuple[PlacePair, ...]
) -> None:
    assert pairs_between(one, other) == pairs
    assert taken({(one, other): 7}) == dict.fromkeys(pairs, 7)


def test_what_runs_between_two_regions_adds_up() -> None:
    a, b, c = Place("r1", "z1"), Place("r1", "z3"), Place("r2", "z2")
    assert taken({(a, c): 5, (b, c): 4})[REGIONS] == 9


def test_two_segments_have_a_budget() -> None:
    stated = topology(weight_set("UserDefined", segments={"s1>s2": capacity("1G")}))
    assert read_budgets(stated, SETS) == {SEGMENTS: 10**9}


def test_a_link_is_called_by_its_places() -> None:
    names = [str(pair) for pair in (REGIONS, ZONES, SEGMENTS)]
    assert names == ["r1-r2 (region)", "z1-z2 (zone)", "s1-s2 (segment)"]
