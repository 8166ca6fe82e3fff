"""The conditions WeightsComputed and Complete: reason, what is missing by name, what to do."""

from __future__ import annotations

import pytest

from berth.api.checks import topology_problems
from berth.api.conditions import ConditionUpdate
from controllers.networktopology import compute as computing
from controllers.networktopology.compute import compute
from controllers.networktopology.conditions import complete, name_pairs, weights_computed
from controllers.networktopology.place_pairs import PlacePairs
from controllers.networktopology.places import Places
from controllers.networktopology.sources.base import Latencies, LatenciesByLevel, Reading, SourceState
from controllers.networktopology.sources.userdefined import read_stated
from tests.support.topologies import NO_SOURCE, Stated, measured, places, stated

TWO_ZONES = places(n1="r/A", n2="r/B")
NAME = "ConfigMap shop/netperf"
BOTH: Stated = {"A>B": 5, "B>A": 6}


def conditions(
    reading: Reading = NO_SOURCE, where: Places = TWO_ZONES, zones: Stated | None = None
) -> dict[str, ConditionUpdate]:
    basis = reading if reading.usable else read_stated(stated(zones=zones), where.region_of)
    computation = compute(basis, where)
    return {update.type: update for update in (weights_computed(computation), complete(computation, where))}


class TestWeightsComputed:
    def test_says_what_was_computed_from_what(self) -> None:
        found = conditions(measured(n1_n2=3))["WeightsComputed"]
        assert (found.status, found.reason) == (True, "Computed")
        assert found.message == f"Dijkstra and NetperfCosts from {NAME}: 0 region costs, 1 zone cost"

    @pytest.mark.parametrize(
        ("reading", "where", "reason"),
        [
            pytest.param(NO_SOURCE, TWO_ZONES, "NoSource", id="no source"),
            pytest.param(measured(n1_n2=3), places(n1="/", n2="/"), "NoPlacesConnected", id="no labels"),
            pytest.param(measured(n1_n1=3), TWO_ZONES, "NoPlacesConnected", id="measured inside a zone only"),
        ],
    )
    def test_says_why_nothing_was_computed(self, reading: Reading, where: Places, reason: str) -> None:
        found = conditions(reading, where)["WeightsComputed"]
        assert (found.status, found.reason) == (False, reason)

    def test_says_that_there_are_too_many_places(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("controllers.networktopology.compute.MAX_COSTS", 1)
        found = conditions(zones=BOTH)
        assert (found["WeightsComputed"].status, found["WeightsComputed"].reason) == (False, "TooManyPlaces")
        assert "UserDefined connects so many places" in found["WeightsComputed"].message
        assert found["Complete"].status is True


class TestComplete:
    def test_a_bandwidth_that_is_none_is_reported_and_the_costs_are_used(self) -> None:
        capacity = {"networkCost": 5, "bandwidthCapacity": "10 Gbit"}
        topology = stated(zones={"A>B": capacity, "B>A": 6})
        computation = compute(read_stated(topology, TWO_ZONES.region_of), TWO_ZONES)
        assert computation.sets["Dijkstra"].zones == {("A", "B"): 5, ("B", "A"): 6}
        found = complete(computation, TWO_ZONES, topology_problems(topology.spec))
        assert (found.status, found.reason) == (False, "SpecProblems")
        assert '"10 Gbit" is not a bandwidth; it is read as not known; write' in found.message

    def test_a_link_that_is_not_allowed_is_missing(self) -> None:
        found = conditions(zones={"A>B": {"networkCost": 5, "isAllowed": False}, "B>A": 6})["Complete"]
        assert "No path between zones: A to B;" in found.message

    def test_nothing_is_missing(self) -> None:
        found = conditions(zones=BOTH)["Complete"]
        assert (found.status, found.reason) == (True, "AllPairsKnown")
        assert "0 region pairs and 2 zone pairs" in found.message

    @pytest.mark.parametrize(
        ("zones", "missing"),
        [
            pytest.param({"A>B": 5}, "No path between zones: B to A;", id="one direction"),
            pytest.param({}, "No path between zones: A and B;", id="both directions, named once"),
        ],
    )
    def test_missing_pairs_are_named(self, zones: Stated, missing: str) -> None:
        found = conditions(zones=zones)["Complete"]
        assert (found.status, found.reason) == (False, "MissingCosts")
        assert missing in found.message

    def test_segments_that_do_not_reach_each_other_are_named(self) -> None:
        between = Latencies({}, frozenset({("s", "t"), ("t", "s")}))
        latencies = LatenciesByLevel(Latencies({}), Latencies({}), between)
        where = places(n1="r/A/s", n2="r/A/t")
        found = conditions(Reading(SourceState.READ, NAME, latencies=latencies), where=where)["Complete"]
        assert (found.status, found.reason) == (False, "MissingCosts")
        assert found.message.startswith("No answer between segments: s and t;")

    def test_a_segment_in_several_zones_is_named(self) -> None:
        found = conditions(zones=BOTH, where=places(n1="r/A/s", n2="r/B/s"))["Complete"]
        assert (found.status, found.reason) == (False, "SegmentInSeveralZones")
        assert "s (r/A, r/B); give every segment a name of its own" in found.message

    def test_zones_with_too_many_segments_are_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(computing, "MAX_SEGMENT_COSTS", 1)
        where = places(n1="r/A/s", n2="r/A/t")
        found = conditions(measured(n1_n2=3), where=where)["Complete"]
        assert (found.status, found.reason) == (False, "TooManySegments")
        assert "in r/A; make larger ones" in found.message

    def test_missing_regions_are_named(self) -> None:
        found = conditions(where=places(n1="west/A", n2="east/B"))["Complete"]
        assert "No path between regions: east and west;" in found.message

    @pytest.mark.parametrize(
        ("reading", "remedy"),
        [
            pytest.param(NO_SOURCE, "state their costs in UserDefined", id="stated"),
            pytest.param(measured(n1_n2=3), f"publish measurements between their nodes in {NAME}", id="measured"),
        ],
    )
    def test_the_remedy_belongs_to_the_source(self, reading: Reading, remedy: str) -> None:
        assert remedy in conditions(reading)["Complete"].message

    @pytest.mark.parametrize(
        ("where", "reason", "says"),
        [
            pytest.param(
                places(n1="r/A", n2="r/", n3="/A"),
                "NodesNotLabelled",
                "Nodes without a region or zone label: n2, n3; label them with topology.kubernetes.io/region",
                id="labels",
            ),
            pytest.param(
                places(n1="r/A", n2="r/A", n3="s/A"),
                "MissingCosts",
                "Zones with nodes in several regions: A (r, s); give every zone a name of its own",
                id="a zone in two regions",
            ),
        ],
    )
    def test_labels_that_are_wrong(self, where: Places, reason: str, says: str) -> None:
        found = conditions(where=where)["Complete"]
        assert (found.status, found.reason) == (False, reason)
        assert says in found.message

    def test_an_empty_cluster_lacks_nothing(self) -> None:
        assert conditions(where=Places())["Complete"].status


def test_name_pairs() -> None:
    there = PlacePairs((("a", "b", "c"),))
    assert name_pairs(there.without([("a", "c"), ("b", "c"), ("c", "b")])) == "a and b, c to a"


def test_of_the_pairs_of_5000_zones_the_first_are_named_and_the_others_counted() -> None:
    # A list of them took 12 GiB, and every NetworkTopology has one made, also one that states nothing.
    where = places(**{f"n{number}": f"r/z{number:04}" for number in range(5000)})
    found = conditions(where=where)["Complete"]
    assert found.message.startswith("No path between zones: z0000 and z0001, z0000 and z0002, ")
    assert "z0000 and z0010 and 12497490 more; state" in found.message
