"""Costs and measurements of all pairs of zones: what is shown of which, and what is left out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from berth.api.labels import LABEL_REGION, LABEL_SEGMENT, LABEL_ZONE
from berth.api.networktopology import NetworkTopology
from berth.cli.topology.document import MAX_SEGMENTS, MAX_ZONES, topology_document
from berth.kube.probe_reports import Report
from tests.support.topologies import Stated, probe_report, probed_peer, raw_topology, weight_set

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
RACKS = {
    f"n-{rack}": {LABEL_REGION: "r", LABEL_ZONE: zone, LABEL_SEGMENT: rack}
    for rack, zone in (("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b"), ("b2", "b"))
}
NODES = {f"n-{zone}": {LABEL_ZONE: zone, LABEL_REGION: region} for zone, region in (("a", "r"), ("b", "r"), ("c", "s"))}


def peer(node: str, microseconds: int | None = 850, *, age: int = 30) -> dict[str, Any]:
    return probed_peer(node, microseconds, time=NOW - timedelta(seconds=age))


def document(*weights: dict[str, Any], reports: list[dict[str, Any]] | None = None, **status: Any) -> dict[str, Any]:
    raw = {**raw_topology(*weights), "status": status}
    read = [msgspec.convert(item, Report) for item in reports or []]
    return topology_document(NetworkTopology.parse(raw), NODES, read, now=NOW)


def pair(found: dict[str, Any], origin: str, destination: str) -> dict[str, Any]:
    (entry,) = [item for item in found["pairs"] if (item["origin"], item["destination"]) == (origin, destination)]
    return {name: value for name, value in entry.items() if name not in ("origin", "destination")}


def test_every_ordered_pair_of_zones_is_there_the_zones_of_a_region_together() -> None:
    found = document()
    assert found["zones"] == [
        {"name": "a", "region": "r"},
        {"name": "b", "region": "r"},
        {"name": "c", "region": "s"},
    ]
    assert [(item["origin"], item["destination"]) for item in found["pairs"]] == [
        ("a", "b"),
        ("a", "c"),
        ("b", "a"),
        ("b", "c"),
        ("c", "a"),
        ("c", "b"),
    ]
    assert (found["namespace"], found["name"], found["weightSets"]) == ("shop", "net", [])
    assert pair(found, "a", "b") == {}


def test_who_may_not_list_reports_sees_costs_and_is_told() -> None:
    topology = NetworkTopology.parse(raw_topology(weight_set("NetperfCosts", zones={"a>b": 9})))
    found = topology_document(topology, NODES, [], now=NOW, unread=["probereports"])
    assert found["unread"] == [{"resource": "probereports", "effect": "the round trips behind costs are left out"}]
    assert pair(found, "a", "b")["cost"] == 9


def test_costs_are_those_of_placement_and_those_of_paths_are_marked() -> None:
    found = document(
        weight_set("Dijkstra", zones={"a>b": 9, "b>a": 4}, regions={"r>s": 784}),
        weight_set("NetperfCosts", zones={"a>b": 9}, regions={"r>s": 784}),
    )
    assert pair(found, "a", "b") == {"cost": 9, "level": "zone", "derived": False}
    assert pair(found, "b", "a") == {"cost": 4, "level": "zone", "derived": True}
    assert pair(found, "a", "c") == {"cost": 784, "level": "region", "derived": False}
    assert pair(found, "c", "a") == {}
    assert found["weightSets"] == ["Dijkstra", "NetperfCosts"]


def test_paths_over_stated_costs_are_marked_too() -> None:
    stated = weight_set("UserDefined", zones={"a>b": 9})
    found = document(stated, weight_set("Dijkstra", zones={"a>b": 9, "b>a": 4}))
    assert [pair(found, *way)["derived"] for way in (("a", "b"), ("b", "a"))] == [False, True]


@pytest.mark.parametrize(
    ("source", "regions", "derived"),
    [
        pytest.param("probereports", {"r>s": 784}, (False, True), id="reports"),
        pytest.param("probereports", {}, (False, True), id="reports-of-one-region"),
        pytest.param("prometheus", {"r>s": 784}, (None, None), id="not-known"),
    ],
)
def test_pairs_that_were_measured_are_not_marked_where_the_object_has_no_room_for_it(
    source: str, regions: Stated, derived: tuple[bool | None, ...]
) -> None:
    """NetperfCosts is written without its zones then."""
    weights = (
        weight_set("Dijkstra", zones={"a>b": 9, "b>a": 9, "a>c": 4}, regions=regions),
        weight_set("NetperfCosts", regions=regions),
    )
    found = document(*weights, reports=[probe_report("n-a", peer("n-b", 850))], source=source)
    assert tuple(pair(found, *way).get("derived") for way in (("a", "b"), ("a", "c"))) == derived


def test_measurements_are_worked_out_from_the_reports() -> None:
    reports = [probe_report("n-a", peer("n-b", 850), peer("n-c", None)), probe_report("n-b", peer("n-a", 950, age=90))]
    found = document(reports=reports)
    measured = {
        "p90Microseconds": 850,
        "minMicroseconds": 850,
        "maxMicroseconds": 950,
        "samples": 2,
        "ageSeconds": 30,
    }
    assert pair(found, "a", "b") == pair(found, "b", "a") == measured
    assert pair(found, "a", "c") == {"unreachable": True, "samples": 1, "ageSeconds": 30}
    assert pair(found, "b", "c") == {}


@pytest.mark.parametrize(
    ("source", "says"),
    [
        pytest.param("prometheus", "with Prometheus alone", id="Prometheus"),
        pytest.param("configmap", "in the ConfigMap alone", id="a ConfigMap"),
        pytest.param("userdefined", "the costs are stated", id="stated"),
        pytest.param("later", "unknown to this version", id="a source of a later version"),
    ],
)
def test_round_trips_that_costs_do_not_come_from_are_not_shown(source: str, says: str) -> None:
    """There may be reports all the same: too few to begin with, or not chosen."""
    reports = [probe_report("n-a", peer("n-b", 850))]
    found = document(weight_set("NetperfCosts", zones={"a>b": 9}), reports=reports, source=source)
    assert found["costsFrom"] == source
    assert says in found["roundTrips"]
    assert pair(found, "a", "b") == {"cost": 9, "level": "zone", "derived": False}


@pytest.mark.parametrize("status", [{}, {"source": "probereports"}], ids=["not said", "reports"])
def test_round_trips_of_reports_are_shown(status: dict[str, str]) -> None:
    found = document(reports=[probe_report("n-a", peer("n-b", 850))], **status)
    assert pair(found, "a", "b")["samples"] == 1
    assert found.get("costsFrom") == status.get("source")
    assert "roundTrips" not in found


def test_what_does_not_count_for_costs_is_not_shown() -> None:
    reports = [probe_report("n-a", peer("n-b", age=900), peer("gone")), probe_report("gone", peer("n-a"))]
    assert all("samples" not in item for item in document(reports=reports)["pairs"])


@pytest.mark.parametrize("known", [True, False])
def test_where_costs_come_from_and_their_age(known: bool) -> None:
    condition = {
        "type": "SourceAvailable",
        "status": "True",
        "reason": "ProbeReportsRead",
        "message": "ProbeReports of 3 nodes",
        "lastTransitionTime": "2026-11-22T11:00:00Z",
    }
    status: dict[str, Any] = {"dataTime": "2026-11-22T11:59:00Z", "conditions": [condition]} if known else {}
    found = document(**status)
    assert found.get("dataAgeSeconds") == (60 if known else None)
    assert found.get("source") == (
        {"reason": "ProbeReportsRead", "message": "ProbeReports of 3 nodes"} if known else None
    )


def test_of_thousands_of_zones_those_are_shown_first_of_which_something_is_known() -> None:
    """All pairs of 5000 zones would be 25 million, and take all memory."""
    nodes = {f"n{number}": {LABEL_REGION: f"r{number % 2}", LABEL_ZONE: f"z{number:04}"} for number in range(5000)}
    topology = NetworkTopology.parse(raw_topology(weight_set("UserDefined", zones={"z4999>z4997": 5})))
    found = topology_document(topology, nodes, [], now=NOW)
    names = [zone["name"] for zone in found["zones"]]
    assert (len(names), found["zonesLeft"], names[-2:]) == (MAX_ZONES, 5000 - MAX_ZONES, ["z4997", "z4999"])
    assert len(found["pairs"]) == MAX_ZONES * (MAX_ZONES - 1)
    assert [pair["cost"] for pair in found["pairs"] if "cost" in pair] == [5]


def test_of_thousands_of_segments_those_are_shown_of_which_something_is_known() -> None:
    """All pairs of 3000 segments would be nine million."""
    nodes = {f"n-{n}": {LABEL_REGION: "r", LABEL_ZONE: "a", LABEL_SEGMENT: f"s{n}"} for n in range(3000)}
    few: Stated = {"s7>s9": 3, "s9>s2000": 4}
    many: Stated = {f"s0>s{n}": 3 for n in range(1, 300)}

    def shown(links: Stated) -> dict[str, Any]:
        topology = NetworkTopology.parse(raw_topology(weight_set("UserDefined", segments=links)))
        [found] = topology_document(topology, nodes, [], now=NOW)["segments"]
        return dict(found)

    found = shown(few)
    assert (found["names"], found["left"], len(found["pairs"])) == (["s2000", "s7", "s9"], 0, 6)
    found = shown(many)
    assert (len(found["names"]), found["left"]) == (MAX_SEGMENTS, 300 - MAX_SEGMENTS)
    assert len(found["pairs"]) == MAX_SEGMENTS * (MAX_SEGMENTS - 1)


def test_segments_of_zones_of_which_something_is_known_are_there_with_their_pairs() -> None:
    links: Stated = {"a1>a2": 3, "a2>a1": 4, "a1>a3": {"isAllowed": False}}
    topology = NetworkTopology.parse(
        raw_topology(weight_set("Dijkstra", segments={**links, "a2>a3": 7}), weight_set("NetperfCosts", segments=links))
    )
    reports = [msgspec.convert(probe_report("n-a1", peer("n-a2", 250), peer("n-a3", None)), Report)]
    [found] = topology_document(topology, RACKS, reports, now=NOW)["segments"]
    assert (found["region"], found["zone"], found["names"]) == ("r", "a", ["a1", "a2", "a3"])
    assert len(found["pairs"]) == 6
    measured = {"samples": 1, "ageSeconds": 30}
    figures = {"p90Microseconds": 250, "minMicroseconds": 250, "maxMicroseconds": 250, **measured}
    assert pair(found, "a1", "a2") == {"cost": 3, "level": "segment", "derived": False, **figures}
    assert pair(found, "a2", "a3") == {"cost": 7, "level": "segment", "derived": True}
    assert pair(found, "a1", "a3") == {"unreachable": True, **measured}
    assert pair(found, "a3", "a2") == {"cost": 1, "level": "zone", "derived": False}
