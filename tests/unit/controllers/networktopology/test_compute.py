"""Weight sets from measurements and stated costs together with the places of nodes."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.labels import WEIGHTS_DIJKSTRA
from berth.api.networktopology import NetworkTopology
from controllers.networktopology import compute as subject
from controllers.networktopology.algorithms import ALGORITHMS
from controllers.networktopology.compute import MAX_COST, Computation, Costs
from controllers.networktopology.places import NodePlace, Places
from controllers.networktopology.sources.base import Latencies, LatenciesByLevel, Measurement, Reading, SourceState
from controllers.networktopology.sources.userdefined import read_stated
from tests.support.topologies import NO_SOURCE, measured, places, stated, topology

# The conformance example of the network-aware plugins: four zones in two regions, two nodes each.
EIGHT_NODES = places(
    n1="us-west-1/Z1",
    n2="us-west-1/Z1",
    n3="us-west-1/Z2",
    n4="us-west-1/Z2",
    n5="us-east-1/Z3",
    n6="us-east-1/Z3",
    n7="us-east-1/Z4",
    n8="us-east-1/Z4",
)
THREE_ZONES = places(n1="r/A", n2="r/B", n3="r/C")
FOUR_REGIONS = places(n1="r1/A", n2="r2/B", n3="r3/C", n4="r4/D")


def compute(net: NetworkTopology, reading: Reading, where: Places, *, algorithm: str = WEIGHTS_DIJKSTRA) -> Computation:
    """Compute from a reading, or from the stated costs when it is of no use."""
    basis = reading if reading.usable else read_stated(net, where.region_of)
    return subject.compute(basis, where, algorithm=algorithm)


class TestStatedCosts:
    def test_conformance_example(self) -> None:
        net = stated(
            regions={"us-west-1>us-east-1": 20, "us-east-1>us-west-1": 20},
            zones={"Z1>Z2": 5, "Z2>Z1": 5, "Z3>Z4": 10, "Z4>Z3": 10},
        )
        found = compute(net, NO_SOURCE, EIGHT_NODES)
        assert found.sets == {
            "Dijkstra": Costs(
                {("us-east-1", "us-west-1"): 20, ("us-west-1", "us-east-1"): 20},
                {("Z1", "Z2"): 5, ("Z2", "Z1"): 5, ("Z3", "Z4"): 10, ("Z4", "Z3"): 10},
            )
        }
        assert (found.basis, found.measured) == ("UserDefined", False)
        assert (*found.missing_regions, *found.missing_zones) == ()

    def test_a_missing_pair_is_filled_by_the_path_through_others(self) -> None:
        found = compute(stated(zones={"A>B": 2, "B>C": 3}), NO_SOURCE, THREE_ZONES)
        assert found.sets["Dijkstra"].zones == {("A", "B"): 2, ("A", "C"): 5, ("B", "C"): 3}
        assert [*found.missing_zones] == [("B", "A"), ("C", "A"), ("C", "B")]

    def test_a_region_cost_is_no_detour_between_zones_of_one_region(self) -> None:
        net = stated(regions={"us-west-1>us-east-1": 20, "us-east-1>us-west-1": 20})
        found = compute(net, NO_SOURCE, EIGHT_NODES)
        assert found.sets["Dijkstra"].zones == {}
        assert [*found.missing_zones] == [("Z1", "Z2"), ("Z2", "Z1"), ("Z3", "Z4"), ("Z4", "Z3")]

    def test_a_stated_link_across_regions_may_carry_a_path(self) -> None:
        found = compute(stated(zones={"Z1>Z3": 3, "Z3>Z2": 4}), NO_SOURCE, EIGHT_NODES)
        assert found.sets["Dijkstra"].zones == {("Z1", "Z2"): 7}

    def test_zone_costs_across_regions_are_not_given(self) -> None:
        found = compute(stated(zones={"Z1>Z3": 3}), NO_SOURCE, EIGHT_NODES)
        assert found.sets["Dijkstra"] == Costs({("us-west-1", "us-east-1"): 3}, {})

    def test_zones_that_no_node_carries_yet_are_computed(self) -> None:
        found = compute(stated(zones={"new-1>new-2": 4}), NO_SOURCE, EIGHT_NODES)
        assert found.sets["Dijkstra"].zones == {("new-1", "new-2"): 4}

    def test_a_path_longer_than_the_api_can_carry_is_capped(self) -> None:
        found = compute(stated(zones={"A>B": MAX_COST, "B>C": MAX_COST}), NO_SOURCE, THREE_ZONES)
        assert found.sets["Dijkstra"].zones["A", "C"] == MAX_COST

    @pytest.mark.parametrize("algorithm", ALGORITHMS)
    def test_a_chain_of_places_as_long_as_an_object_can_state_gets_direct_costs_only(self, algorithm: str) -> None:
        chain = {f"z{number:05}>z{number + 1:05}": 1 for number in range(20_000)}
        net = stated(zones={"A>B": 5, **chain})
        tracemalloc.start()
        found = compute(net, NO_SOURCE, THREE_ZONES, algorithm=algorithm)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 100 * 2**20
        assert (found.sets, found.too_large, found.basis) == ({}, True, "UserDefined")
        assert ("A", "B") not in found.missing_zones
        assert ("A", "C") in found.missing_zones

    def test_many_places_with_few_paths_are_computed(self) -> None:
        couples = {f"z{number}-a>z{number}-b": number for number in range(5000)}
        found = compute(stated(zones=couples), NO_SOURCE, THREE_ZONES)
        assert not found.too_large
        assert len(found.sets["Dijkstra"].zones) == 5000


class TestMeasurements:
    def test_both_sets_from_the_configmap(self) -> None:
        reading = measured(n1_n3=10, n2_n4=20, n3_n1=5, n1_n5=100, n5_n1=90)
        found = compute(stated(regions={"us-west-1>us-east-1": 1}), reading, EIGHT_NODES)
        costs = Costs(
            {("us-east-1", "us-west-1"): 90, ("us-west-1", "us-east-1"): 100}, {("Z1", "Z2"): 15, ("Z2", "Z1"): 5}
        )
        assert found.sets == {"Dijkstra": costs, "NetperfCosts": costs}
        assert list(found.sets) == ["Dijkstra", "NetperfCosts"]
        assert (found.basis, found.measured) == ("ConfigMap shop/netperf", True)

    def test_only_the_path_costs_are_filled(self) -> None:
        found = compute(topology(), measured(n1_n2=3, n2_n3=3), THREE_ZONES)
        assert found.sets["Dijkstra"].zones == {("A", "B"): 3, ("A", "C"): 6, ("B", "C"): 3}
        assert found.sets["NetperfCosts"].zones == {("A", "B"): 3, ("B", "C"): 3}

    def test_a_measured_pair_keeps_its_measure_however_short_the_way_by_others(self) -> None:
        """Packets between A and C do not go by way of B because that were shorter."""
        found = compute(topology(), measured(n1_n2=3, n2_n3=3, n1_n3=10), THREE_ZONES)
        assert found.sets["Dijkstra"] == found.sets["NetperfCosts"]
        assert found.sets["Dijkstra"].zones == {("A", "B"): 3, ("A", "C"): 10, ("B", "C"): 3}

    def test_a_measured_pair_of_regions_keeps_its_measure(self) -> None:
        found = compute(topology(), measured(n1_n2=3, n2_n3=3, n1_n3=10, n3_n4=1), FOUR_REGIONS)
        assert found.sets["Dijkstra"].regions == {
            ("r1", "r2"): 3,
            ("r1", "r3"): 10,
            ("r1", "r4"): 7,
            ("r2", "r3"): 3,
            ("r2", "r4"): 4,
            ("r3", "r4"): 1,
        }

    def test_a_latency_of_0_costs_1(self) -> None:
        assert compute(topology(), measured(n1_n2=0), THREE_ZONES).sets["Dijkstra"].zones == {("A", "B"): 1}

    def test_measurements_outweigh_stated_costs_also_where_they_are_missing(self) -> None:
        found = compute(stated(zones={"B>A": 7}), measured(n1_n2=3), THREE_ZONES)
        assert found.sets["Dijkstra"].zones == {("A", "B"): 3}
        assert ("B", "A") in found.missing_zones

    def test_a_path_may_lead_through_another_region(self) -> None:
        found = compute(topology(), measured(n1_n5=4, n5_n3=6), EIGHT_NODES)
        assert found.sets["Dijkstra"].zones == {("Z1", "Z2"): 10}
        assert "Z1" not in {zone for pair in found.sets["NetperfCosts"].zones for zone in pair}

    @pytest.mark.parametrize("state", [SourceState.MISSING, SourceState.EMPTY])
    def test_without_measurements_stated_costs_count(self, state: SourceState) -> None:
        found = compute(stated(zones={"A>B": 2}), Reading(state, "ConfigMap shop/netperf"), THREE_ZONES)
        assert list(found.sets) == ["Dijkstra"]
        assert found.basis == "UserDefined"


class TestLatenciesOfASource:
    """A source may work out latencies between places itself, and say which places do not reach each other."""

    READING = Reading(
        SourceState.READ,
        "ProbeReports",
        latencies=LatenciesByLevel(
            Latencies({}),
            Latencies({("A", "B"): 300, ("B", "C"): 300, ("C", "B"): 300}, frozenset({("A", "C")})),
        ),
    )

    def test_they_are_taken_as_they_are(self) -> None:
        found = subject.compute(self.READING, THREE_ZONES)
        assert found.sets["NetperfCosts"].zones == {("A", "B"): 3, ("B", "C"): 3, ("C", "B"): 3}
        assert found.measured

    def test_a_path_through_others_is_no_way_between_places_that_do_not_reach_each_other(self) -> None:
        found = subject.compute(self.READING, THREE_ZONES)
        assert ("A", "C") not in found.sets["Dijkstra"].zones
        assert ("A", "C") in found.missing_zones


RACKS = places(n1="r/A/a1", n2="r/A/a2", n3="r/A/a3", n4="r/B/b1", n5="r/B/b2", n6="r/B")


class TestSegments:
    def test_measurements_inside_a_zone_are_those_of_its_segments(self) -> None:
        found = compute(topology(), measured(n1_n2=2, n2_n1=4, n2_n3=3, n4_n6=9, n1_n4=70), RACKS)
        direct = {("a1", "a2"): 2, ("a2", "a1"): 4, ("a2", "a3"): 3}
        assert found.sets["NetperfCosts"] == Costs({}, {("A", "B"): 70}, direct)
        assert found.sets["Dijkstra"].segments == {**direct, ("a1", "a3"): 5}

    def test_stated_costs_count_between_segments_of_a_zone(self) -> None:
        found = compute(stated(segments={"a1>a2": 2, "a2>a3": 3, "a1>b1": 1}), NO_SOURCE, RACKS)
        assert found.sets["Dijkstra"] == Costs({}, {}, {("a1", "a2"): 2, ("a1", "a3"): 5, ("a2", "a3"): 3})

    def test_segments_that_do_not_reach_each_other_have_no_cost_and_are_told(self) -> None:
        between = Latencies({("a1", "a2"): 300, ("a2", "a3"): 300}, frozenset({("a1", "a3")}))
        latencies = LatenciesByLevel(Latencies({}), Latencies({}), between)
        found = subject.compute(Reading(SourceState.READ, "ProbeReports", latencies=latencies), RACKS)
        for costs in found.sets.values():
            assert costs == Costs({}, {}, {("a1", "a2"): 3, ("a2", "a3"): 3}, frozenset({("a1", "a3")}))
        assert list(found.sets) == ["Dijkstra", "NetperfCosts"]
        assert found.cut_segments == (("a1", "a3"),)

    def test_two_segments_that_are_all_there_is_may_be_cut(self) -> None:
        latencies = LatenciesByLevel(Latencies({}), Latencies({}), Latencies({}, frozenset({("b1", "b2")})))
        found = subject.compute(Reading(SourceState.READ, "ProbeReports", latencies=latencies), RACKS)
        assert found.sets["NetperfCosts"].cut_segments == {("b1", "b2")}

    def test_zones_with_too_many_segments_have_no_costs_between_these(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(subject, "MAX_SEGMENT_COSTS", 7)
        reading = measured(n1_n2=2, n4_n5=3, n1_n4=70)
        found = compute(topology(), reading, RACKS)
        assert found.sets["Dijkstra"] == Costs({}, {("A", "B"): 70}, {("b1", "b2"): 3})
        assert found.crowded == (("r", "A"),)

    @pytest.mark.parametrize(
        ("reading", "crowded"),
        [
            pytest.param(
                read_stated(stated(segments={"a1>a2": 2}), RACKS.region_of), (("r", "A"),), id="stated-in-one-zone"
            ),
            pytest.param(
                Reading(
                    SourceState.READ,
                    "ProbeReports",
                    latencies=LatenciesByLevel(
                        Latencies({}), Latencies({}), Latencies({}, frozenset({("b1", "b2"), ("b2", "b1")}))
                    ),
                ),
                (("r", "B"),),
                id="all-cut",
            ),
        ],
    )
    def test_zones_are_named_of_whose_segments_something_is_known(
        self, reading: Reading, crowded: tuple[tuple[str, str], ...], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(subject, "MAX_SEGMENT_COSTS", 0)
        assert subject.compute(reading, RACKS).crowded == crowded

    @pytest.mark.parametrize(
        ("net", "reading"),
        [
            pytest.param(topology(), measured(n1_n4=70), id="measured"),
            pytest.param(stated(zones={"A>B": 70}), NO_SOURCE, id="stated"),
        ],
    )
    def test_without_costs_of_segments_nothing_is_said_of_them(
        self, net: NetworkTopology, reading: Reading, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(subject, "MAX_SEGMENT_COSTS", 0)
        found = compute(net, reading, RACKS)
        assert found.sets["Dijkstra"] == Costs({}, {("A", "B"): 70})
        assert (found.crowded, found.cut_segments) == ((), ())


class TestCostUnit:
    """Latencies are added up as they were measured, and become costs at the end."""

    def test_a_third_of_real_zone_pairs_is_below_a_millisecond_and_still_told_apart(self) -> None:
        found = compute(topology(), measured(n1_n2=3, n2_n3=9), THREE_ZONES)
        assert found.sets["NetperfCosts"].zones == {("A", "B"): 3, ("B", "C"): 9}

    def test_paths_are_rounded_once(self) -> None:
        found = subject.compute(measured(n1_n2=3, n2_n3=3), THREE_ZONES, cost_unit=1000)
        assert found.sets["Dijkstra"].zones == {("A", "B"): 1, ("A", "C"): 1, ("B", "C"): 1}

    def test_what_is_measured_stays_within_what_a_limit_can_state(self) -> None:
        found = compute(topology(), measured(n1_n2=9000, n2_n3=9000), THREE_ZONES)
        assert found.sets["Dijkstra"].zones["A", "C"] == 10_000
        assert found.sets["Dijkstra"].zones["A", "B"] == 9000

    def test_stated_costs_keep_their_scale(self) -> None:
        net = stated(zones={"A>B": 20_000, "B>C": 5})
        found = subject.compute(read_stated(net, THREE_ZONES.region_of), THREE_ZONES, cost_unit=1000)
        assert found.sets["Dijkstra"].zones == {("A", "B"): 20_000, ("A", "C"): 20_005, ("B", "C"): 5}


@pytest.mark.parametrize(
    ("reading", "basis"),
    [
        pytest.param(NO_SOURCE, "", id="no source at all"),
        pytest.param(Reading(SourceState.MISSING, "ConfigMap shop/netperf"), "", id="ConfigMap missing"),
        pytest.param(measured(n1_n2=4), "ConfigMap shop/netperf", id="measured nodes without labels"),
    ],
)
def test_nothing_to_compute_gives_no_set(reading: Reading, basis: str) -> None:
    found = compute(topology(), reading, places(n1="/", n2="/"))
    assert (found.sets, found.basis) == ({}, basis)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_set_bears_the_name_of_the_algorithm(algorithm: str) -> None:
    found = compute(topology(), measured(n1_n2=3, n2_n3=3), THREE_ZONES, algorithm=algorithm)
    assert list(found.sets) == [algorithm, "NetperfCosts"]
    assert found.sets[algorithm].zones["A", "C"] == 6


NODES = st.dictionaries(
    st.sampled_from([f"n{number}" for number in range(12)]),
    st.builds(NodePlace, st.sampled_from(["", "r", "s"]), st.sampled_from(["", "A", "B", "C", "D"])),
)
MEASUREMENTS = st.lists(
    st.builds(Measurement, *[st.sampled_from([f"n{number}" for number in range(12)])] * 2, st.integers(0, 500)),
    max_size=30,
)


def computed(nodes: dict[str, NodePlace], measurements: list[Measurement]) -> Computation:
    reading = Reading(SourceState.READ, "ConfigMap shop/netperf", measurements=tuple(measurements))
    return compute(topology(), reading, Places.of(nodes))


@given(nodes=NODES, measurements=MEASUREMENTS)
def test_no_cost_is_invented(nodes: dict[str, NodePlace], measurements: list[Measurement]) -> None:
    found = computed(nodes, measurements)
    where = Places.of(nodes)
    for costs in found.sets.values():
        for level, known in ((costs.regions, where.regions), (costs.zones, where.zones)):
            for (origin, destination), cost in level.items():
                assert cost >= 1
                assert origin != destination
                assert {origin, destination} <= set(known)
    if not measurements:
        assert found.sets == {}


@given(nodes=NODES, measurements=MEASUREMENTS)
def test_every_pair_with_nodes_has_a_cost_or_is_missing(
    nodes: dict[str, NodePlace], measurements: list[Measurement]
) -> None:
    found = computed(nodes, measurements)
    costs = found.sets.get("Dijkstra", Costs())
    for pair in Places.of(nodes).region_pairs():
        assert (pair in costs.regions) != (pair in found.missing_regions)
    for pair in Places.of(nodes).zone_pairs():
        assert (pair in costs.zones) != (pair in found.missing_zones)


@given(nodes=NODES, measurements=MEASUREMENTS)
def test_paths_are_never_dearer_than_direct_measurements(
    nodes: dict[str, NodePlace], measurements: list[Measurement]
) -> None:
    sets = computed(nodes, measurements).sets
    direct, paths = sets.get("NetperfCosts", Costs()), sets.get("Dijkstra", Costs())
    assert all(paths.regions[pair] <= cost for pair, cost in direct.regions.items())
    assert all(paths.zones[pair] <= cost for pair, cost in direct.zones.items())


@given(nodes=NODES, measurements=MEASUREMENTS)
def test_both_algorithms_agree(nodes: dict[str, NodePlace], measurements: list[Measurement]) -> None:
    reading = Reading(SourceState.READ, "ConfigMap shop/netperf", measurements=tuple(measurements))
    found = [compute(topology(), reading, Places.of(nodes), algorithm=name).sets.get(name) for name in ALGORITHMS]
    assert found[0] == found[1]
