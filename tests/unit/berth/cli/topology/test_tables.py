"""The page: readable with few zones and with many, nothing cut off."""

from __future__ import annotations

from typing import Any

import pytest

from berth.cli.topology.tables import MAX_PAIRS, topology_page


def document(zones: int, **fields: Any) -> dict[str, Any]:
    """Zones of which each pair has a cost of its own."""
    names = [f"zone-{number}" for number in range(zones)]
    pairs = [
        {"origin": a, "destination": b, "cost": 100 + (zones * x + y) % 9900, "level": "zone", "derived": False}
        for x, a in enumerate(names)
        for y, b in enumerate(names)
        if a != b
    ]
    return {
        "namespace": "shop",
        "name": "net",
        "weightSets": ["Dijkstra", "NetperfCosts"],
        "unread": [],
        "zones": [{"name": name} for name in names],
        "pairs": pairs,
        **fields,
    }


def test_what_may_not_be_read_is_said() -> None:
    unread = [{"resource": "probereports", "effect": "the round trips behind costs are left out"}]
    text = topology_page(document(3, unread=unread), width=110)
    assert "probereports: you may not list them; the round trips behind costs are left out" in text


def test_three_zones() -> None:
    found = document(3, source={"reason": "ProbeReportsRead", "message": "ProbeReports of 3 nodes"}, dataAgeSeconds=75)
    found["pairs"][0] |= {
        "cost": 9,
        "p90Microseconds": 850,
        "minMicroseconds": 810,
        "maxMicroseconds": 2300,
        "samples": 12,
        "ageSeconds": 41,
    }
    found["pairs"][1] |= {"derived": True, "level": "region"}
    found["pairs"][2] = {
        "origin": "zone-1",
        "destination": "zone-0",
        "unreachable": True,
        "samples": 3,
        "ageSeconds": 7,
    }
    text = topology_page(found, width=110)
    lines = [line.split() for line in text.splitlines()]
    assert "Newest data   1m15s old" in text
    assert "Source        ProbeReportsRead: ProbeReports of 3 nodes" in text
    assert ["1", "zone-0", ".", "9", "102r*"] in lines
    assert ["2", "zone-1", "?", ".", "105"] in lines
    assert ["zone-0", "zone-1", "9", "0.85", "0.81", "2.30", "12", "41s"] in lines
    notes = ["by", "way", "of", "others,", "cost", "of", "the", "regions"]
    assert ["zone-0", "zone-2", "102", *"-----", *notes] in lines
    assert ["zone-1", "zone-0", "?", "-", "-", "-", "3", "7s", "no", "answer"] in lines


def test_zones_that_are_left_out_are_counted() -> None:
    assert "and 4800 zones more" in topology_page(document(3, zonesLeft=4800), width=110)
    assert "zones more" not in topology_page(document(3, zonesLeft=0), width=110)


def test_segments_of_a_zone_have_a_matrix_of_their_own() -> None:
    pairs: list[dict[str, Any]] = [
        {"origin": "s1", "destination": "s2", "cost": 3, "level": "segment", "derived": True},
        {"origin": "s2", "destination": "s1", "cost": 1, "level": "zone", "derived": False},
        {"origin": "s1", "destination": "s3", "cost": 4, "level": "segment", "derived": False},
        {"origin": "s3", "destination": "s1", "unreachable": True, "samples": 3, "ageSeconds": 7},
        {"origin": "s2", "destination": "s3", "cost": 5, "level": "segment", "derived": False},
        {"origin": "s3", "destination": "s2", "cost": 6, "level": "segment", "derived": False},
    ]
    segments = [{"region": "r", "zone": "a", "names": ["s1", "s2", "s3"], "left": 4, "pairs": pairs}]
    text = topology_page(document(1, segments=segments), width=110)
    assert text.index("Fewer than two zones") < text.index("SEGMENTS OF r/a: COST FROM ROW TO COLUMN")
    lines = [line.split() for line in text.splitlines()]
    assert ["SEGMENT", "1", "2", "3"] in lines
    assert ["1", "s1", ".", "3*", "4"] in lines
    assert ["2", "s2", "1z", ".", "5"] in lines
    assert ["3", "s3", "?", "6", "."] in lines
    assert ["s2", "s1", "1", *"-----", "as", "inside", "the", "zone"] in lines
    assert "z that inside the zone" in text
    assert "and 4 segments more" in text


@pytest.mark.parametrize(("zones", "width"), [(7, 80), (30, 80), (30, 110), (30, 300), (30, 10), (200, 110)])
def test_every_cost_of_many_zones_is_in_the_matrix(zones: int, width: int) -> None:
    found = document(zones)
    text = topology_page(found, width=width)
    words = set(text.split())
    assert {str(pair["cost"]) for pair in found["pairs"]} <= words or width < 80
    if width >= 80:
        assert max(map(len, text.splitlines())) <= width
    assert ("PAIRS" in text) == (len(found["pairs"]) <= MAX_PAIRS)


def test_many_zones_are_summed_up() -> None:
    found = document(30)
    found["pairs"][0]["derived"] = True
    found["pairs"][1]["samples"] = 4
    del found["pairs"][2]["cost"]
    text = " ".join(topology_page(found, width=110).split())
    assert "1 measured, 1 worked out from others, 1 not known; -o json has each of the 870 pairs" in text


@pytest.mark.parametrize(
    ("zones", "shown"), [(3, "zone-0 zone-1 101 by way of others"), (30, "869 direct, 1 worked out")]
)
def test_costs_without_round_trips_show_what_there_is(zones: int, shown: str) -> None:
    found = document(zones, costsFrom="prometheus", roundTrips="with Prometheus alone", dataAgeSeconds=20)
    found["pairs"][0]["derived"] = True
    text = " ".join(topology_page(found, width=110).split())
    assert "Round trips with Prometheus alone Newest data 20s old" in text
    assert shown in text
    assert "P90 MS" not in text
    assert "measured" not in text


@pytest.mark.parametrize(
    ("zones", "shown"),
    [(3, "zone-0 zone-1 101 zone-0 zone-2 102"), (30, "0 direct, 870 direct or worked out, 0 worked out from others")],
)
def test_costs_of_which_it_is_not_known_whether_they_were_measured_are_not_marked(zones: int, shown: str) -> None:
    found = document(zones, roundTrips="with Prometheus alone")
    for pair in found["pairs"]:
        del pair["derived"]
    text = " ".join(topology_page(found, width=110).split())
    assert shown in text
    assert "101*" not in text


@pytest.mark.parametrize("zones", [0, 1])
def test_fewer_than_two_zones(zones: int) -> None:
    assert "Fewer than two zones have nodes." in topology_page(document(zones, weightSets=[]), width=110)


@pytest.mark.parametrize("width", [80, 100, 120])
def test_long_names_of_zones_cut_nothing_off(width: int) -> None:
    """They are broken over lines; figures and their headings stay whole."""
    found = document(2)
    names = ("northamerica-northeast1-c", "northamerica-northeast2-b")
    found["zones"] = [{"name": name} for name in names]
    found["pairs"] = [
        {
            "origin": names[0],
            "destination": names[1],
            "cost": 784,
            "level": "region",
            "derived": True,
            "p90Microseconds": 78_400,
            "minMicroseconds": 61_200,
            "maxMicroseconds": 123_400,
            "samples": 1250,
            "ageSeconds": 61,
        },
        {"origin": names[1], "destination": names[0]},
    ]
    text = topology_page(found, width=width)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    for whole in ("COST", "784", "78.40", "61.20", "123.40", "1250", "1m1s"):
        assert whole in text
