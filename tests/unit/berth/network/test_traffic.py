"""What the calls of a placed AppGroup cost: by hand, and beside the evaluator of bench/replicas."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replicas.cluster import read_cluster
from bench.replicas.evaluator import endpoint_loads, evaluate
from berth.network.costs import NetworkCosts, Place
from berth.network.groups import GroupEdge
from berth.network.routing import Routing
from berth.network.sites import Sites
from berth.network.survival import survival
from berth.network.traffic import EdgeTraffic, Traffic, cross_zone_share, mean_cost
from tests.support import replicas
from tests.support.edges import COSTS, PLACES

SITES = Sites.of({**PLACES, "a3": Place("r2", "a")}, COSTS)
"""The zone name a is used in both regions."""


def edge(caller: str, callee: str) -> GroupEdge:
    return GroupEdge(caller, callee, 0, math.inf)


def routed(routing: Routing, front: Sequence[str], back: Sequence[str]) -> EdgeTraffic:
    placed = {"front": Counter(front), "back": Counter(back)}
    [found] = Traffic([edge("front", "back")], placed, SITES).routed(lambda _: routing)
    return found


@pytest.mark.parametrize(
    ("routing", "front", "back", "cost", "cross", "failed"),
    [
        pytest.param("All", ["a1"], ["a1"], 0, 0, 0, id="same node"),
        pytest.param("All", ["a1"], ["a2"], 1, 0, 0, id="same zone"),
        pytest.param("All", ["a1", "b1"], ["a1", "b1"], 3, 0.5, 0, id="a slice in each of two zones, all endpoints"),
        pytest.param("PreferSameZone", ["a1", "b1"], ["a1", "b1"], 0, 0, 0, id="the same, the zone before all"),
        pytest.param("PreferSameZone", ["a1", "x1"], ["a2"], 20.5, 0.5, 0, id="a zone without an endpoint"),
        pytest.param("PreferSameZone", ["a1"], ["a2", "bare"], 50.5, 0.5, 0, id="an endpoint without a zone"),
        pytest.param("PreferSameZone", ["a1"], ["a3", "b1"], 40, 0, 0, id="one zone name, the costs of two regions"),
        pytest.param("PreferSameZone", ["a1"], ["a2", "a3"], 20.5, 0, 0, id="near and far endpoints of one zone name"),
        pytest.param("All", ["a1"], ["a3"], 40, 0, 0, id="one zone name is not crossed, whatever it costs"),
        pytest.param("PreferSameNode", ["a1"], ["a1", "a2"], 0, 0, 0, id="the node before the zone"),
        pytest.param("Local", ["a1", "x1"], ["a1"], 50, 0, 0.5, id="half of the calls fail"),
        pytest.param("All", ["bare"], ["bare", "a1"], 50, 0.5, 0, id="a node without a zone is one of its own"),
    ],
)
def test_one_edge(routing: str, front: list[str], back: list[str], cost: float, cross: float, failed: float) -> None:
    found = routed(Routing(routing), front, back)
    assert (found.cost, found.cross_zone, found.failed) == pytest.approx((cost, cross, failed))


def test_edges_without_a_pod_at_both_ends_have_no_calls() -> None:
    traffic = Traffic([edge("front", "back"), edge("back", "db")], {"front": {"a1": 1}, "back": {}}, SITES)
    assert traffic.edges == []
    assert mean_cost(traffic.routed(lambda _: Routing.ALL)) == 0
    assert cross_zone_share([]) == 0


def test_the_busiest_endpoint() -> None:
    placed = {"front": {"a1": 2, "a2": 1}, "back": {"a1": 1, "b1": 2}}
    traffic = Traffic([edge("front", "back")], placed, SITES)
    assert traffic.busiest("back", Routing.ALL) == pytest.approx(1)
    assert traffic.busiest("back", Routing.SAME_ZONE) == pytest.approx(3)
    assert traffic.busiest("back", Routing.LOCAL) == pytest.approx(3)


def test_no_call_that_arrives_loads_nobody() -> None:
    traffic = Traffic([edge("front", "back")], {"front": {"a1": 1}, "back": {"b1": 1}}, SITES)
    assert traffic.busiest("back", Routing.LOCAL) == 0


ROUTINGS: Mapping[Routing, dict[str, str]] = {
    Routing.ALL: {},
    Routing.SAME_ZONE: {"trafficDistribution": "PreferSameZone"},
    Routing.SAME_NODE: {"trafficDistribution": "PreferSameNode"},
    Routing.LOCAL: {"internalTrafficPolicy": "Local"},
}
ZONES = {"n1": "a1", "n2": "a1", "n3": "a2", "n4": "b1", "n5": "b1", "n6": ""}
EDGES = [("web", "cart"), ("web", "db"), ("cart", "db"), ("db", "cart")]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    nodes=st.fixed_dictionaries(
        {name: st.lists(st.sampled_from(sorted(ZONES)), max_size=4) for name in ("web", "cart", "db")}
    ),
    routing=st.fixed_dictionaries({name: st.sampled_from(list(ROUTINGS)) for name in ("web", "cart", "db")}),
)
def test_figures_are_those_of_an_evaluator_that_looks_at_pods(
    nodes: dict[str, Any], routing: dict[str, Routing]
) -> None:
    zones, regions = {("a1", "a2"): 7}, {("a", "b"): 40}
    cluster = read_cluster(
        [
            *(replicas.node(name, zone) for name, zone in ZONES.items()),
            replicas.topology(zones, regions),
            replicas.group(*EDGES),
            *(replicas.service(name, **ROUTINGS[kind]) for name, kind in routing.items()),
            *replicas.placed(**nodes),
        ]
    )
    wanted = evaluate(cluster, replicas.GROUP)
    both: dict[tuple[str, str], float] = {**zones, **{(b, a): cost for (a, b), cost in zones.items()}}
    costs = NetworkCosts(zones=both, regions={("a", "b"): 40, ("b", "a"): 40})
    sites = Sites.of({name: Place(zone[:1], zone) for name, zone in ZONES.items()}, costs)
    placed = {name: Counter(found) for name, found in nodes.items()}
    traffic = Traffic([edge(*ends) for ends in EDGES], placed, sites)
    found = traffic.routed(routing.__getitem__)
    assert len(found) == wanted.edges
    assert mean_cost(found) == pytest.approx(wanted.cost)
    assert cross_zone_share(found) == pytest.approx(wanted.cross_zone)
    assert sum(item.failed for item in found) == pytest.approx(wanted.unreachable * wanted.edges)
    for callee in {item.callee for item in found}:
        loads = endpoint_loads(cluster, cluster.groups[replicas.GROUP], cluster.members(replicas.GROUP), callee)
        assert traffic.busiest(callee, routing[callee]) == pytest.approx(max(loads.values(), default=0))
    left = survival(placed, sites)
    assert (left.replicated, left.survive_node, left.survive_zone) == (
        wanted.replicated, wanted.survive_node, wanted.survive_zone,
    )  # fmt: skip


def test_ten_thousand_pods_are_judged_at_once() -> None:
    """In a twentieth of a second on a machine of its own; the bound leaves room for a busy one."""
    places = {f"n{number}": Place(f"r{number % 10}", f"z{number % 30}") for number in range(700)}
    names = [f"w{number}" for number in range(100)]
    placed = {name: {f"n{(7 * at + 13 * pod) % 700}": 1 for pod in range(100)} for at, name in enumerate(names)}
    edges = [edge(names[at // 3], names[at]) for at in range(1, 100)]
    sites = Sites.of(places, COSTS)
    begun = time.process_time()
    found = Traffic(edges, placed, sites).routed(lambda _: Routing.SAME_ZONE)
    survival(placed, sites)
    assert time.process_time() - begun < 0.25
    assert len(found) == 99
