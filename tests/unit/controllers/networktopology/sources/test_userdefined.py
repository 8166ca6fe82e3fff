"""Links that people stated in UserDefined: what counts as one, and links between regions derived from zones."""

from __future__ import annotations

from typing import cast

import pytest

from berth.api.networktopology import NetworkTopology
from berth.kube.client import ApiClient
from berth.runtime.component import ComponentContext
from controllers.networktopology.graph import CostGraph
from controllers.networktopology.sources.base import SourceState, StatedCosts, Surroundings
from controllers.networktopology.sources.userdefined import UserDefined, read_stated
from tests.support.topologies import Stated, stated, topology, weight_set

REGION_OF = {"Z1": "west", "Z2": "west", "Z3": "east", "Z4": "east"}


def stated_costs(net: NetworkTopology) -> StatedCosts:
    """The links of a reading; none when there is nothing to read."""
    reading = read_stated(net, REGION_OF)
    assert reading.state is (SourceState.EMPTY if reading.stated is None else SourceState.READ)
    assert reading.name == "UserDefined"
    return reading.stated or StatedCosts(CostGraph({}), CostGraph({}), CostGraph({}), 0)


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
        pytest.param({f"Z1>{'z' * 63}": 3}, [("Z1", "z" * 63, 3)], id="a name as long as labels"),
        pytest.param({f"Z1>{'z' * 64}": 3, f"{'z' * 64}>Z1": 3}, [], id="names that no label can hold"),
    ],
)
def test_zone_links(zones: Stated, links: list[tuple[str, str, int]]) -> None:
    found = stated_costs(stated(zones=zones))
    assert list(found.zones.links()) == links
    assert found.count == len(links)


def test_region_links() -> None:
    found = stated_costs(stated(regions={"west>east": 20, "east>west": 22}))
    assert list(found.regions.links()) == [("east", "west", 22), ("west", "east", 20)]
    assert list(found.zones.links()) == []


def test_the_cheapest_of_repeated_entries_counts() -> None:
    twice = weight_set("UserDefined", zones={"Z1>Z2": 9})
    twice["topologyList"] += weight_set("", zones={"Z1>Z2": 4})["topologyList"]
    assert list(stated_costs(topology(twice)).zones.links()) == [("Z1", "Z2", 4)]


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
    assert list(stated_costs(stated(regions=regions, zones=zones)).regions.links()) == links


@pytest.mark.parametrize("name", ["NetperfCosts", "Dijkstra", "Mine"])
def test_other_weight_sets_are_no_source(name: str) -> None:
    found = stated_costs(topology(weight_set(name, zones={"Z1>Z2": 5})))
    assert (found.regions.places, found.zones.places, found.count) == ((), (), 0)


def test_costs_of_segments_are_links_between_segments() -> None:
    found = stated_costs(stated(zones={"Z1>Z2": 5}, segments={"s1>s2": 3, "s1>s1": 2}))
    assert (list(found.segments.links()), list(found.zones.links())) == ([("s1", "s2", 3)], [("Z1", "Z2", 5)])
    assert found.count == 2


def test_other_topology_keys_are_left_alone() -> None:
    weights = weight_set("UserDefined", zones={"Z1>Z2": 5})
    weights["topologyList"][0]["topologyKey"] = "kubernetes.io/hostname"
    assert stated_costs(topology(weights)).count == 0


@pytest.mark.parametrize(
    ("zones", "holds", "reason", "message"),
    [
        pytest.param(
            {"Z1>Z2": 5, "Z2>Z1": 6},
            True,
            "UserDefined",
            "The spec names no measurements; 2 costs stated in UserDefined",
            id="stated",
        ),
        pytest.param(
            {},
            False,
            "NoSource",
            "The spec names no measurements and UserDefined states no cost; name a ConfigMap or state costs",
            id="nothing at all",
        ),
    ],
)
def test_availability(zones: Stated, holds: bool, reason: str, message: str) -> None:
    source = UserDefined(Surroundings(cast(ComponentContext, None), cast(ApiClient, None), print))
    found = source.availability(read_stated(stated(zones=zones), REGION_OF), "")
    assert found == ("SourceAvailable", holds, reason, message)
