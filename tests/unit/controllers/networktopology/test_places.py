"""Where nodes are: regions and zones from labels, and labels that are missing or contradict each other."""

from __future__ import annotations

import pytest

from berth.api.labels import LABEL_REGION, LABEL_SEGMENT, LABEL_ZONE
from controllers.networktopology.places import NodePlace, Places


def cluster(**nodes: str) -> Places:
    """Places of nodes given as ``name="region/zone"``."""
    return Places.of({name: NodePlace(*place.split("/")) for name, place in nodes.items()})


@pytest.mark.parametrize(
    ("labels", "place"),
    [
        pytest.param({LABEL_REGION: "r", LABEL_ZONE: "z", "other": "x"}, NodePlace("r", "z"), id="both"),
        pytest.param({LABEL_ZONE: "z", LABEL_SEGMENT: "s"}, NodePlace("", "z", "s"), id="zone and segment"),
        pytest.param({LABEL_ZONE: "z"}, NodePlace("", "z"), id="zone only"),
        pytest.param({}, NodePlace("", ""), id="none"),
    ],
)
def test_place_of_labels(labels: dict[str, str], place: NodePlace) -> None:
    assert NodePlace.of(labels) == place


def test_places_of_nodes() -> None:
    places = cluster(n3="us/b", n1="eu/a", n2="eu/a", n4="eu/c")
    assert places.regions == ("eu", "us")
    assert places.zones == ("a", "b", "c")
    assert places.region_of == {"a": "eu", "b": "us", "c": "eu"}
    assert [*places.region_pairs()] == [("eu", "us"), ("us", "eu")]
    assert [*places.zone_pairs()] == [("a", "c"), ("c", "a")]
    assert places.region_of == {zone: region for region, zones in places.zones_of.items() for zone in zones}
    assert (places.unlabelled, dict(places.split_zones)) == ((), {})


def test_lookups_of_one_node() -> None:
    places = cluster(n1="eu/a", n2="eu/")
    assert (places.zone_of("n1"), places.region_of_node("n1")) == ("a", "eu")
    assert (places.zone_of("n2"), places.region_of_node("n2")) == ("", "eu")
    assert (places.zone_of("gone"), places.region_of_node("gone")) == ("", "")


def test_an_empty_cluster() -> None:
    assert Places.of({}) == Places()
    assert (*Places().region_pairs(), *Places().zone_pairs()) == ()


@pytest.mark.parametrize(
    ("place", "regions", "zones"),
    [
        pytest.param("eu/", ("eu",), (), id="no zone"),
        pytest.param("/a", (), ("a",), id="no region"),
        pytest.param("/", (), (), id="neither"),
    ],
)
def test_nodes_without_labels_are_listed(place: str, regions: tuple[str, ...], zones: tuple[str, ...]) -> None:
    places = cluster(n1=place)
    assert places.unlabelled == ("n1",)
    assert (places.regions, places.zones) == (regions, zones)
    assert places.region_of == {}


@pytest.mark.parametrize(
    ("nodes", "region"),
    [
        pytest.param({"n1": "eu/a", "n2": "us/a", "n3": "us/a"}, "us", id="majority"),
        pytest.param({"n1": "us/a", "n2": "eu/a"}, "eu", id="tie: alphabetical"),
        pytest.param({"n1": "/a", "n2": "/a", "n3": "us/a"}, "us", id="nodes without a region do not vote"),
    ],
)
def test_region_of_a_zone(nodes: dict[str, str], region: str) -> None:
    assert cluster(**nodes).region_of == {"a": region}


def test_zones_in_several_regions_are_listed() -> None:
    assert dict(cluster(n1="us/a", n2="eu/a", n3="eu/b").split_zones) == {"a": ("eu", "us")}


def test_costs_inside_a_region_are_those_to_its_zones_and_to_zones_of_no_known_region() -> None:
    where = cluster(n1="r/A", n2="r/B", n3="s/C", n4="/D")
    costs = {"B": 1, "C": 2, "D": 3, "new": 4}
    assert where.inside_region("A", costs) == {"B": 1, "D": 3, "new": 4}
    assert where.inside_region("D", costs) == costs
    assert where.inside_region("new", costs) == costs


class TestSegments:
    def test_they_are_parts_of_zones(self) -> None:
        places = cluster(n1="r/A/s2", n2="r/A/s1", n3="r/B/s3", n4="r/A", n5="q//s4", n6="//s5")
        assert places.segments == ("s1", "s2", "s3", "s4", "s5")
        assert dict(places.segments_of) == {("r", "A"): ("s1", "s2"), ("r", "B"): ("s3",), ("q", ""): ("s4",)}
        assert places.split_segments == {}

    @pytest.mark.parametrize(
        ("one", "other", "shared"),
        [
            pytest.param("n1", "n2", True, id="two segments of a zone"),
            pytest.param("n1", "n1", True, id="one segment"),
            pytest.param("n1", "n3", False, id="segments of two zones"),
            pytest.param("n1", "n4", False, id="no segment"),
            pytest.param("n5", "n6", False, id="no zone and no region"),
            pytest.param("n6", "n6", False, id="nowhere"),
            pytest.param("n1", "gone", False, id="no such node"),
        ],
    )
    def test_nodes_that_share_a_zone(self, one: str, other: str, shared: bool) -> None:
        places = cluster(n1="r/A/s2", n2="r/A/s1", n3="r/B/s3", n4="r/A", n5="q//s4", n6="//s5")
        assert places.share_zone(one, other) is shared

    def test_a_segment_in_several_zones_counts_to_that_of_most_of_its_nodes(self) -> None:
        places = cluster(n1="r/A/s", n2="r/B/s", n3="r/B/s", n4="r/A/t")
        assert places.site_of == {"s": ("r", "B"), "t": ("r", "A")}
        assert places.split_segments == {"s": (("r", "A"), ("r", "B"))}
        assert [places.segment_of(node) for node in ("n1", "n2", "n4", "gone")] == ["", "s", "t", ""]

    def test_costs_inside_a_zone_are_those_to_its_segments_and_to_segments_of_no_known_zone(self) -> None:
        places = cluster(n1="r/A/s", n2="r/A/t", n3="r/B/u")
        assert places.inside_zone("s", {"t": 1, "u": 2, "new": 3}) == {"t": 1, "new": 3}
