"""Costs between places: the reference's table, weight sets, choice of the NetworkTopology."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.networktopology import NetworkTopology
from berth.network.costs import (
    NO_COSTS,
    SAME_ZONE_COST,
    UNKNOWN_COST,
    NetworkCosts,
    Place,
    absent_costs,
    read_costs,
)
from tests.support import kinds
from tests.support.placement import ZONE_COSTS

REGION = "topology.kubernetes.io/region"
SEGMENT = "topology.kubernetes.io/segment"
CLOSED = {"isAllowed": False}


def topology(*weights: dict[str, object], status: dict[str, object] | None = None) -> NetworkTopology:
    body = kinds.network_topology(*weights)
    body["metadata"]["namespace"] = "default"
    if status:
        body["status"] = status
    return NetworkTopology.parse(body)


@pytest.mark.parametrize(
    ("origin", "destination", "cost"),
    [
        pytest.param(Place("r1", "z1"), Place("r1", "z1"), SAME_ZONE_COST, id="same-zone"),
        pytest.param(Place("r1", "z1"), Place("r1", "z2"), 5.0, id="other-zone-of-the-region"),
        pytest.param(Place("r2", "z4"), Place("r2", "z3"), 10.0, id="other-zone-backwards"),
        pytest.param(Place("r1", "z1"), Place("r2", "z3"), 20.0, id="other-region"),
        pytest.param(Place("r1", "z1"), Place("r1", "z9"), None, id="zone-without-cost"),
        pytest.param(Place("r1", "z1"), Place("r9", "z9"), None, id="region-without-cost"),
        pytest.param(Place("r1", ""), Place("r2", ""), 20.0, id="no-zones-but-regions"),
        pytest.param(Place("r1", ""), Place("r1", ""), SAME_ZONE_COST, id="one-region-and-no-zones"),
        pytest.param(Place("r1", ""), Place("r1", "z1"), None, id="one-region-and-one-zone"),
        pytest.param(Place("", ""), Place("", ""), None, id="no-labels-at-all"),
        pytest.param(Place("r1", "z1"), Place("", ""), None, id="destination-without-labels"),
        pytest.param(Place("", "z1"), Place("", "z1"), SAME_ZONE_COST, id="same-zone-without-region"),
        pytest.param(Place("r1", "z1"), Place("r2", "z1"), 20.0, id="zone-names-shared-by-regions"),
    ],
)
def test_cost_between_places(origin: Place, destination: Place, cost: float | None) -> None:
    assert ZONE_COSTS.between(origin, destination) == cost


def test_nodes_of_a_region_without_zones_are_as_close_as_in_one_zone() -> None:
    places = [Place("us-west-1"), Place("us-east-1")]
    costs = NetworkCosts(regions={("us-west-1", "us-east-1"): 20.0, ("us-east-1", "us-west-1"): 20.0})
    assert costs.matrix(places).tolist() == [[1.0, 20.0], [20.0, 1.0]]
    # As upstream has it: costs between regions are stated, inside them nothing is.
    assert NO_COSTS.matrix(places).tolist() == [[1.0, 100.0], [100.0, 1.0]]


def test_a_zone_cost_across_regions_is_more_precise_than_the_regions() -> None:
    costs = NetworkCosts(zones={("z1", "z3"): 7.0}, regions={("r1", "r2"): 20.0})
    assert costs.between(Place("r1", "z1"), Place("r2", "z3")) == 7.0
    assert costs.between(Place("r2", "z3"), Place("r1", "z1")) is None


def test_a_regions_cost_to_itself_does_not_stand_in_for_zones() -> None:
    costs = NetworkCosts(regions={("r1", "r1"): 3.0})
    assert costs.between(Place("r1", "z1"), Place("r1", "z2")) is None


def test_costs_may_differ_by_direction() -> None:
    costs = NetworkCosts(zones={("a", "b"): 3.0, ("b", "a"): 8.0})
    matrix = costs.matrix([Place("r", "a"), Place("r", "b")])
    assert matrix.tolist() == [[1.0, 3.0], [8.0, 1.0]]


OF_SEGMENTS = NetworkCosts(
    zones={("z1", "z2"): 5.0},
    segments={("s1", "s2"): 3.0, ("s2", "s1"): 4.0, ("s1", "s4"): 2.0},
    cut_segments=frozenset({("s1", "s3")}),
)


@pytest.mark.parametrize(
    ("origin", "destination", "cost"),
    [
        pytest.param(Place("r", "z1", "s1"), Place("r", "z1", "s2"), 3.0, id="two-segments"),
        pytest.param(Place("r", "z1", "s2"), Place("r", "z1", "s1"), 4.0, id="backwards"),
        pytest.param(Place("r", "z1", "s1"), Place("r", "z1", "s1"), SAME_ZONE_COST, id="one-segment"),
        pytest.param(Place("r", "z1", "s1"), Place("r", "z1", "s9"), SAME_ZONE_COST, id="segment-without-cost"),
        pytest.param(Place("r", "z1", "s1"), Place("r", "z1"), SAME_ZONE_COST, id="node-without-a-segment"),
        pytest.param(Place("r", "z1", "s1"), Place("r", "z1", "s3"), None, id="cut"),
        pytest.param(Place("r", "z1", "s1"), Place("r", "z2", "s2"), 5.0, id="segments-of-two-zones"),
        pytest.param(Place("r", "z2", "s1"), Place("r", "z1", "s2"), None, id="of-two-zones-without-cost"),
        pytest.param(Place("r", "", "s1"), Place("r", "", "s2"), 3.0, id="of-a-region-without-zones"),
        pytest.param(Place("", "", "s1"), Place("", "", "s2"), None, id="of-no-zone"),
    ],
)
def test_segments_refine_the_cost_inside_a_zone(origin: Place, destination: Place, cost: float | None) -> None:
    assert OF_SEGMENTS.between(origin, destination) == cost


NAMES = st.sampled_from(["", "s1", "s2", "s3", "s4"])


@given(places=st.lists(st.builds(Place, st.sampled_from(["", "r"]), st.sampled_from(["", "z1", "z2"]), NAMES)))
def test_the_matrix_has_the_cost_of_each_pair(places: list[Place]) -> None:
    def cost(origin: Place, destination: Place) -> float:
        known = OF_SEGMENTS.between(origin, destination)
        return OF_SEGMENTS.unknown_cost if known is None else known

    wanted = np.array([[cost(here, there) for there in places] for here in places])
    assert np.array_equal(OF_SEGMENTS.matrix(places), wanted.reshape(len(places), len(places)))


@pytest.mark.parametrize(
    ("costs", "unknown"),
    [
        pytest.param(NO_COSTS, UNKNOWN_COST, id="nothing-known"),
        pytest.param(absent_costs("x/net"), UNKNOWN_COST, id="topology-absent"),
        pytest.param(NetworkCosts(zones={("a", "b"): 9.0}), UNKNOWN_COST, id="all-known-are-cheaper"),
        pytest.param(NetworkCosts(zones={("a", "b"): 99.0}), UNKNOWN_COST, id="just-cheaper"),
        pytest.param(NetworkCosts(zones={("a", "b"): 100.0}), 101.0, id="just-as-dear"),
        pytest.param(NetworkCosts(zones={("a", "b"): 120.0, ("b", "a"): 9.0}), 121.0, id="a-dear-zone"),
        pytest.param(NetworkCosts(zones={("a", "b"): 120.0}, regions={("r", "s"): 800.0}), 801.0, id="a-dear-region"),
        pytest.param(NetworkCosts(segments={("s", "t"): 120.0}), 121.0, id="a-dear-segment"),
    ],
)
def test_an_unknown_pair_costs_more_than_the_dearest_known_one(costs: NetworkCosts, unknown: float) -> None:
    assert costs.unknown_cost == unknown
    assert costs.matrix([Place("r7", "z7"), Place("r8", "z8")])[0, 1] == unknown


PLACES = [Place(region, zone) for region in ("", "r1", "r2", "r3") for zone in ("", "z1", "z2", "z3")]
COSTS = st.integers(0, 10_000).map(float)


@given(
    zones=st.dictionaries(st.tuples(*[st.sampled_from(["z1", "z2", "z3"])] * 2), COSTS),
    regions=st.dictionaries(st.tuples(*[st.sampled_from(["r1", "r2", "r3"])] * 2), COSTS),
)
def test_every_unknown_pair_is_dearer_than_every_known_one(
    zones: dict[tuple[str, str], float], regions: dict[tuple[str, str], float]
) -> None:
    costs = NetworkCosts(zones=zones, regions=regions)
    known = np.array([[costs.between(here, there) is not None for there in PLACES] for here in PLACES])
    matrix = costs.matrix(PLACES)
    assert matrix[~known].min() > matrix[known].max()
    assert matrix[~known].min() >= UNKNOWN_COST


def test_a_pair_that_is_cut_costs_more_than_it_did() -> None:
    before = NetworkCosts(zones={("a", "b"): 300.0, ("a", "c"): 800.0})
    cut = NetworkCosts(zones={("a", "c"): 800.0})
    here, there = Place("r", "a"), Place("r", "b")
    assert before.matrix([here, there])[0, 1] == 300.0
    assert cut.matrix([here, there])[0, 1] == 801.0


def test_costs_that_are_replaced_say_anew_what_an_unknown_pair_costs() -> None:
    assert replace(ZONE_COSTS, zones={("z1", "z2"): 500.0}).unknown_cost == 501.0


def test_unknown_costs_of_a_cheap_network_are_100_in_the_matrix() -> None:
    matrix = ZONE_COSTS.matrix([Place("r1", "z1"), Place(), Place("r1", "z9")])
    assert matrix.tolist() == [
        [SAME_ZONE_COST, UNKNOWN_COST, UNKNOWN_COST],
        [UNKNOWN_COST, UNKNOWN_COST, UNKNOWN_COST],
        [UNKNOWN_COST, UNKNOWN_COST, SAME_ZONE_COST],
    ]


def test_without_topology_only_equal_zones_are_close() -> None:
    assert not NO_COSTS.available
    assert NO_COSTS.matrix([Place("r", "a"), Place("r", "b")]).tolist() == [[1.0, 100.0], [100.0, 1.0]]


class TestReading:
    def test_both_levels(self) -> None:
        costs = read_costs(
            topology(
                {
                    "name": "UserDefined",
                    "topologyList": [
                        *kinds.weight_set(a={"b": 5})["topologyList"],
                        *kinds.weight_set(key=REGION, east={"west": 20})["topologyList"],
                    ],
                }
            )
        )
        assert costs.zones == {("a", "b"): 5.0}
        assert costs.regions == {("east", "west"): 20.0}
        assert (costs.source, costs.weight_sets, costs.available) == ("default/net", ("UserDefined",), True)

    def test_the_preferred_set_wins_pair_by_pair(self) -> None:
        obj = topology(kinds.weight_set("UserDefined", a={"b": 5, "c": 9}), kinds.weight_set("Dijkstra", a={"b": 2}))
        costs = read_costs(obj)
        assert costs.zones == {("a", "b"): 2.0, ("a", "c"): 9.0}
        assert costs.weight_sets == ("Dijkstra", "UserDefined")

    @pytest.mark.parametrize(
        ("sets", "zones", "read"),
        [
            pytest.param(
                {"Dijkstra": {"b": 2}, "NetperfCosts": {"b": 3, "c": 4}, "UserDefined": {"c": 90, "d": 91}},
                {"b": 2.0, "c": 4.0},
                ("Dijkstra", "NetperfCosts"),
                id="measured-sets-and-nothing-stated",
            ),
            pytest.param(
                {"Dijkstra": {"b": 2}, "UserDefined": {"b": 5, "c": 9}},
                {"b": 2.0, "c": 9.0},
                ("Dijkstra", "UserDefined"),
                id="paths-over-stated-costs-and-stated-costs",
            ),
            pytest.param(
                {"NetperfCosts": {}, "UserDefined": {"b": 5}},
                {"b": 5.0},
                ("UserDefined",),
                id="stated-costs-where-nothing-is-measured",
            ),
        ],
    )
    def test_costs_of_different_scales_are_not_mixed(
        self, sets: dict[str, dict[str, int]], zones: dict[str, float], read: tuple[str, ...]
    ) -> None:
        costs = read_costs(topology(*(kinds.weight_set(name, a=row) for name, row in sets.items())))
        assert costs.zones == {("a", to): cost for to, cost in zones.items()}
        assert costs.weight_sets == read

    @pytest.mark.parametrize(
        ("source", "observed", "zones", "read"),
        [
            pytest.param("userdefined", 3, {"b": 2.0, "c": 9.0}, ("Dijkstra", "UserDefined"), id="left-by-another"),
            pytest.param("userdefined", 2, {"b": 2.0, "d": 4.0}, ("Dijkstra", "NetperfCosts"), id="just-written"),
            pytest.param("probereports", 3, {"b": 2.0, "d": 4.0}, ("Dijkstra", "NetperfCosts"), id="measured"),
        ],
    )
    def test_paths_over_stated_costs_are_not_mixed_with_what_another_controller_measured(
        self, source: str, observed: int, zones: dict[str, float], read: tuple[str, ...]
    ) -> None:
        rows = {"Dijkstra": {"b": 2}, "NetperfCosts": {"b": 3, "d": 4}, "UserDefined": {"b": 5, "c": 9}}
        body = kinds.network_topology(*(kinds.weight_set(name, a=row) for name, row in rows.items()))
        body["metadata"]["generation"] = 3
        body["status"] = {"source": source, "observedGeneration": observed}
        costs = read_costs(NetworkTopology.parse(body))
        assert costs.zones == {("a", to): cost for to, cost in zones.items()}
        assert costs.weight_sets == read

    @pytest.mark.parametrize(
        ("sets", "cost"),
        [
            pytest.param({"NetperfCosts": CLOSED, "UserDefined": 5}, None, id="measured-before-stated"),
            pytest.param({"Dijkstra": 4, "NetperfCosts": CLOSED}, 4.0, id="a-path"),
            pytest.param({"Dijkstra": 4, "UserDefined": CLOSED}, 4.0, id="stated-after-a-path"),
            pytest.param({"NetperfCosts": CLOSED}, None, id="nothing-else"),
            pytest.param({"UserDefined": CLOSED}, None, id="stated"),
        ],
    )
    def test_segments_that_are_cut_are_not_near_for_what_was_stated(
        self, sets: dict[str, Any], cost: float | None
    ) -> None:
        costs = read_costs(topology(*(kinds.weight_set(name, key=SEGMENT, a={"b": row}) for name, row in sets.items())))
        assert costs.between(Place("r", "z", "a"), Place("r", "z", "b")) == cost

    def test_each_topology_key_has_its_own_scale(self) -> None:
        measured = [kinds.weight_set(name, a={"b": 3}) for name in ("Dijkstra", "NetperfCosts")]
        stated = kinds.weight_set(key=REGION, east={"west": 20})
        stated["topologyList"] += kinds.weight_set(a={"c": 90})["topologyList"]
        costs = read_costs(topology(*measured, stated))
        assert (costs.zones, costs.regions) == ({("a", "b"): 3.0}, {("east", "west"): 20.0})
        assert costs.weight_sets == ("Dijkstra", "NetperfCosts", "UserDefined")

    def test_sets_of_other_names_have_a_scale_of_their_own(self) -> None:
        obj = topology(kinds.weight_set("Mine", a={"b": 1}), kinds.weight_set("Yours", a={"b": 70, "c": 80}))
        assert read_costs(obj, weight_sets=["Mine", "Yours"]).zones == {("a", "b"): 1.0}

    def test_configured_sets_only(self) -> None:
        obj = topology(kinds.weight_set("UserDefined", a={"b": 5}), kinds.weight_set("Dijkstra", a={"b": 2}))
        assert read_costs(obj, weight_sets=["UserDefined", "Absent"]).zones == {("a", "b"): 5.0}

    def test_an_entry_without_cost_stays_unknown(self) -> None:
        costs = read_costs(topology(kinds.weight_set(a={"b": {"bandwidthCapacity": "1G"}})))
        assert costs.zones == {}
        assert not costs.available

    def test_an_entry_that_is_not_allowed_is_no_link(self) -> None:
        entries = {"b": {"networkCost": 5, "isAllowed": False}, "c": {"networkCost": 6, "isAllowed": True}}
        assert read_costs(topology(kinds.weight_set(a=entries))).zones == {("a", "c"): 6.0}

    def test_a_capacity_that_is_no_quantity_leaves_the_rest_in_use(self) -> None:
        costs = read_costs(topology(kinds.weight_set(a={"b": {"networkCost": 5, "bandwidthCapacity": "10 Gbit"}})))
        assert costs.zones == {("a", "b"): 5.0}

    def test_cost_zero_is_a_cost(self) -> None:
        assert read_costs(topology(kinds.weight_set(a={"b": 0}))).between(Place("", "a"), Place("", "b")) == 0.0

    @pytest.mark.parametrize(
        ("status", "time"),
        [
            pytest.param({}, "", id="no-time"),
            pytest.param({"weightCalculationTime": "2026-01-02T03:04:05Z"}, "2026-01-02T03:04:05Z", id="calculated"),
            pytest.param(
                {"weightCalculationTime": "2026-01-02T03:04:05Z", "dataTime": "2026-01-02T03:00:00Z"},
                "2026-01-02T03:00:00Z",
                id="measured",
            ),
        ],
    )
    def test_age_of_the_data(self, status: dict[str, object], time: str) -> None:
        assert read_costs(topology(kinds.weight_set(a={"b": 1}), status=status)).data_time == time


MISSING = {"type": "SourceAvailable", "status": "False", "reason": "ConfigMapNotFound", "message": "."}
READ = {**MISSING, "status": "True", "reason": "MeasurementsRead"}


@pytest.mark.parametrize(
    ("configmap", "observed", "source", "current"),
    [
        pytest.param("", 3, None, True, id="computed of this spec"),
        pytest.param("", 2, None, False, id="computed of the spec before"),
        pytest.param("", None, None, True, id="whoever computed does not say of which"),
        pytest.param("netperf", 3, READ, True, id="measurements read"),
        pytest.param("netperf", 3, MISSING, False, id="measurements named and not there"),
        pytest.param("", 3, MISSING, True, id="no measurements named"),
        pytest.param("netperf", 3, None, True, id="whoever computed says nothing of measurements"),
    ],
)
def test_whether_costs_are_of_this_spec_and_its_measurements(
    configmap: str, observed: int | None, source: dict[str, str] | None, current: bool
) -> None:
    body = kinds.network_topology(kinds.weight_set("Dijkstra", z1={"z2": 5}))
    body["metadata"]["generation"] = 3
    body["spec"]["configmapName"] = configmap
    body["status"] = {"observedGeneration": observed} if observed else {}
    if source:
        body["status"]["conditions"] = [{**source, "lastTransitionTime": "2026-01-02T03:04:05Z"}]
    costs = read_costs(NetworkTopology.parse(body))
    assert (costs.current, costs.generation) == (current, 3)


@pytest.mark.parametrize(
    ("costs", "words"),
    [
        pytest.param(ZONE_COSTS, "", id="costs"),
        pytest.param(NO_COSTS, "no NetworkTopology with costs", id="none"),
        pytest.param(absent_costs("x/net"), "NetworkTopology x/net, which the configuration names", id="configured"),
    ],
)
def test_why_there_are_no_costs(costs: NetworkCosts, words: str) -> None:
    assert costs.missing.startswith(words)
    assert bool(costs.missing) is not costs.available


def test_an_absent_topology_has_the_same_costs_every_time() -> None:
    assert absent_costs("x/net") is absent_costs("x/net")
    assert (absent_costs("x/net").absent, absent_costs("x/net").available) == ("x/net", False)
