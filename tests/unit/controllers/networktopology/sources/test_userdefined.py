"""Links that people stated in UserDefined: what counts as one, and links between regions derived from zones."""

from __future__ import annotations

import pytest

from controllers.networktopology.sources.userdefined import stated_costs
from tests.support.topologies import Stated, stated, topology, weight_set

REGION_OF = {"Z1": "west", "Z2": "west", "Z3": "east", "Z4": "east"}


@pytest.mark.parametrize(
    ("zones", "links"),
    [
        pytest.param({"Z1>Z2": 5}, [("Z1", "Z2", 5)], id="one direction"),
        pytest.param({"Z1>Z2": 5, "Z2>Z1": 6}, [("Z1", "Z2", 5), ("Z2", "Z1", 6)], id="both directions"),
        pytest.param({"Z1>Z2": 0}, [("Z1", "Z2", 0)], id="a stated zero is what people said"),
        pytest.param({"Z1>Z2": {"bandwidthCapacity": "1Gi"}}, [], id="bandwidth only is no link"),
        pytest.param(
            {"Z1>Z2": {"networkCost": 5, "bandwidthCapacity": "1Gi"}}, [("Z1", "Z2", 5)], id="cost with bandwidth"
        ),
        pytest.param({"Z1>Z1": 3}, [], id="to itself"),
        pytest.param({"Z1>Z9": 3}, [("Z1", "Z9", 3)], id="zone without nodes"),
    ],
)
def test_zone_links(zones: Stated, links: list[tuple[str, str, int]]) -> None:
    found = stated_costs(stated(zones=zones), REGION_OF)
    assert list(found.zones.links()) == links
    assert found.count == len(links)


def test_region_links() -> None:
    found = stated_costs(stated(regions={"west>east": 20, "east>west": 22}), REGION_OF)
    assert list(found.regions.links()) == [("east", "west", 22), ("west", "east", 20)]
    assert list(found.zones.links()) == []


def test_the_cheapest_of_repeated_entries_counts() -> None:
    twice = weight_set("UserDefined", zones={"Z1>Z2": 9})
    twice["topologyList"] += weight_set("", zones={"Z1>Z2": 4})["topologyList"]
    assert list(stated_costs(topology(twice), REGION_OF).zones.links()) == [("Z1", "Z2", 4)]


@pytest.mark.parametrize(
    ("regions", "links"),
    [
        pytest.param({}, [("west", "east", 40)], id="median of the zones between them"),
        pytest.param({"east>west": 7}, [("east", "west", 7), ("west", "east", 40)], id="by direction"),
        pytest.param({"west>east": 20}, [("west", "east", 20)], id="a stated cost stands"),
    ],
)
def test_regions_linked_through_zones(regions: Stated, links: list[tuple[str, str, int]]) -> None:
    zones: Stated = {"Z1>Z3": 30, "Z2>Z4": 50, "Z2>Z3": 40, "Z1>Z2": 1}
    assert list(stated_costs(stated(regions=regions, zones=zones), REGION_OF).regions.links()) == links


@pytest.mark.parametrize("name", ["NetperfCosts", "Dijkstra", "Mine"])
def test_other_weight_sets_are_no_source(name: str) -> None:
    found = stated_costs(topology(weight_set(name, zones={"Z1>Z2": 5})), REGION_OF)
    assert (len(found.regions), len(found.zones), found.count) == (0, 0, 0)


def test_other_topology_keys_are_left_alone() -> None:
    weights = weight_set("UserDefined", zones={"Z1>Z2": 5})
    weights["topologyList"][0]["topologyKey"] = "topology.kubernetes.io/segment"
    assert stated_costs(topology(weights), REGION_OF).count == 0
