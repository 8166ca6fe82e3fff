"""Pairs of pods beyond their limit, of those that call each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.network.costs import NetworkCosts, Place
from berth.network.over_limit import over_limit, over_limits
from berth.network.routing import Routing
from berth.network.workload_places import WorkloadPlaces
from tests.support.edges import COSTS, PLACES, group, member

SITES = {**PLACES, "a3": Place("r2", "a")}
"""The zone name a is used in both regions."""


def over(routing: Routing, front: Sequence[str], back: Sequence[str], limit: float = 4) -> int:
    members = [member(name, node, at) for name, on in (("front", front), ("back", back)) for at, node in enumerate(on)]
    shop = group(("front", "back"), limit=limit)
    return over_limits(shop, WorkloadPlaces(members), SITES, COSTS, lambda _: routing)[0]


@pytest.mark.parametrize(
    ("routing", "front", "back", "pairs"),
    [
        pytest.param("All", ["a1", "b1"], ["a2", "b1"], 2, id="slices in two zones, all endpoints"),
        pytest.param("PreferSameZone", ["a1", "b1"], ["a2", "b1"], 0, id="the same, each in its zone"),
        pytest.param("PreferSameZone", ["a1", "x1"], ["a2", "b1"], 2, id="a caller in a zone without endpoints"),
        pytest.param("PreferSameZone", ["a1"], ["a2", "b1", "bare"], 2, id="an endpoint without a zone"),
        pytest.param("PreferSameZone", ["a1"], ["a3"], 1, id="one zone name, two regions"),
        pytest.param("PreferSameZone", ["a1"], ["a3", "a2", "b1"], 1, id="and not the other zone"),
        pytest.param("PreferSameNode", ["a1", "a2"], ["a1", "a3"], 1, id="the node before the zone"),
        pytest.param("Local", ["a1", "b1"], ["a1", "x1"], 0, id="the node alone"),
        pytest.param("All", ["a1"], ["a1", "", "gone", "bare"], 1, id="unknown costs 100, waiting pods nothing"),
    ],
)
def test_by_hand(routing: str, front: list[str], back: list[str], pairs: int) -> None:
    assert over(Routing(routing), front, back) == pairs


@pytest.mark.parametrize(("limit", "pairs"), [(300, 1), (800, 1), (801, 0)])
def test_a_limit_that_a_known_pair_exceeds_is_exceeded_by_an_unknown_one(limit: float, pairs: int) -> None:
    far = NetworkCosts(regions={("r1", "r2"): 800.0})
    placed = WorkloadPlaces([member("front", "a1"), member("back", "b1")])
    assert over_limits(group(("front", "back"), limit=limit), placed, SITES, far, lambda _: Routing.ALL)[0] == pairs


def test_without_a_limit_nothing_is_beyond_it() -> None:
    assert over(Routing.ALL, ["a1"], ["bare"], limit=float("inf")) == 0


def test_an_endpoint_that_is_being_deleted_is_called_no_more() -> None:
    leaving = replace(member("back", "x1"), terminating=True)
    placed = WorkloadPlaces([member("front", "a1"), leaving])
    shop = group(("front", "back"), limit=4)
    total, by_pod = over_limits(shop, placed, SITES, COSTS, lambda _: Routing.ALL)
    assert (total, by_pod.total()) == (0, 0)


def reached(routing: Routing, caller: str, endpoints: Sequence[str]) -> list[str]:
    """Endpoints that a caller reaches, by their nodes, in the words of berth/network/routing.py."""
    here = [node for node in endpoints if node == caller]
    zone = [node for node in endpoints if SITES[node].zone == SITES[caller].zone]
    if routing is Routing.LOCAL or (routing is Routing.SAME_NODE and here):
        return here
    return zone if routing is not Routing.ALL and zone and all(SITES[n].zone for n in endpoints) else list(endpoints)


NODES = st.lists(st.sampled_from(sorted(SITES)), max_size=5)


@settings(deadline=None)
@given(
    front=NODES,
    back=NODES,
    limit=st.sampled_from([0.0, 5.0, 50.0]),
    routing=st.sampled_from(Routing),
)
def test_counts_are_those_of_all_calls(front: list[str], back: list[str], limit: float, routing: Routing) -> None:
    members = [member(name, node, at) for name, on in (("front", front), ("back", back)) for at, node in enumerate(on)]
    shop = group(("front", "back"), limit=limit)
    callers, endpoints = over_limit(shop.edges[0], WorkloadPlaces(members), SITES, COSTS, routing)
    far: Counter[tuple[str, str]] = Counter()
    for caller in front:
        for endpoint in reached(routing, caller, back):
            cost = COSTS.between(SITES[caller], SITES[endpoint]) if caller != endpoint else 0.0
            far[caller, endpoint] += (COSTS.unknown_cost if cost is None else cost) > max(limit, 1)
    assert sum(callers[node] for node in front) == far.total()
    assert sum(endpoints[node] for node in back) == far.total()
    for node in set(front):
        assert callers[node] * front.count(node) == sum(n for (caller, _), n in far.items() if caller == node)
