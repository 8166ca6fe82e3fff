"""Places of nodes as numbers."""

from __future__ import annotations

from berth.network.costs import NO_COSTS
from berth.network.sites import Sites
from tests.support.edges import COSTS, PLACES


def test_nodes_of_one_place_share_a_location_and_a_zone() -> None:
    sites = Sites.of(PLACES, COSTS)
    place = {name: (int(sites.location[row]), int(sites.zone[row])) for name, row in sites.row.items()}
    assert place["a1"] == place["a2"]
    assert len(set(place.values())) == 4
    assert place["bare"][1] == -1
    assert sites.location_cost[place["a1"][0], place["b1"][0]] == 5
    assert sites.location_cost[place["b1"][0], place["a1"][0]] == 7


def test_zones_of_one_name_are_one_zone_in_two_locations() -> None:
    west, east = (PLACES["a1"], type(PLACES["a1"])("r2", "a"))
    sites = Sites.of({"w": west, "e": east}, NO_COSTS)
    assert sites.location.tolist() == [0, 1]
    assert sites.zone.tolist() == [0, 0]


def test_without_nodes_there_is_nothing() -> None:
    assert Sites.of({}, COSTS).location_cost.shape == (0, 0)
