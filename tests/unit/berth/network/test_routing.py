"""Where calls go and what they cost: by hand, and against plain loops over callers and endpoints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.network.routing import Reach, Routing, Scope, edge_cost, reach, unreachable_cost

SOME = settings(max_examples=300, deadline=None, derandomize=True)


@dataclass(frozen=True)
class Case:
    """Nodes in zones and locations, callers and endpoints on them."""

    zone: np.ndarray
    location: np.ndarray
    location_cost: np.ndarray
    callers: np.ndarray
    endpoints: np.ndarray
    routing: Routing

    @property
    def places(self) -> dict[str, np.ndarray]:
        return {"location": self.location, "location_cost": self.location_cost}

    @property
    def reach(self) -> Reach:
        return reach(self.routing, self.endpoints, self.zone)

    def routed(self, routing: Routing) -> float:
        return edge_cost(self.callers, reach(routing, self.endpoints, self.zone).mean_costs(**self.places))

    def pods(self) -> list[int]:
        """Node of every endpoint."""
        return [node for node, count in enumerate(self.endpoints.astype(int)) for _ in range(count)]

    def met(self, node: int) -> list[int]:
        """Node of every endpoint that a caller on `node` reaches, by the words of the module."""
        pods = self.pods()
        here = [pod for pod in pods if pod == node]
        zone = [pod for pod in pods if self.zone[pod] == self.zone[node]]
        zones_count = self.zone[node] >= 0 and all(self.zone[pod] >= 0 for pod in pods)
        if self.routing is Routing.LOCAL:
            return here
        if self.routing is Routing.SAME_NODE and here:
            return here
        if self.routing is not Routing.ALL and zones_count and zone:
            return zone
        return pods

    def cost(self, origin: int, target: int) -> float:
        return 0.0 if origin == target else float(self.location_cost[self.location[origin], self.location[target]])


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Up to seven nodes; nodes of one zone are mostly in one location, and a zone costs less than the way to others."""
    size, locations = draw(st.integers(1, 7)), draw(st.integers(1, 3))

    def numbers(low: int, high: int, count: int) -> np.ndarray:
        return np.array(draw(st.lists(st.integers(low, high), min_size=count, max_size=count)), dtype=np.int64)

    location = numbers(0, locations - 1, size)
    costs = numbers(1, 90, locations * locations).reshape(locations, locations).astype(np.float64)
    np.fill_diagonal(costs, 1.0)
    zone = location.copy()
    if draw(st.booleans()):
        zone = numbers(-1, 2, size)
    return Case(zone, location, costs, numbers(0, 3, size), numbers(0, 3, size), draw(st.sampled_from(list(Routing))))


@SOME
@given(case=cases())
def test_shares_are_those_of_the_endpoints_one_by_one(case: Case) -> None:
    found = case.reach
    for node in range(len(case.zone)):
        met = case.met(node)
        shares = found.shares(node)
        assert shares == pytest.approx([met.count(other) / len(met) if met else 0.0 for other in range(len(shares))])
        assert shares.sum() == pytest.approx(1.0 if met else 0.0)
        assert found.reached[node] == len(met)
        assert bool(found.scope[node] == Scope.NOWHERE) is (not met)


@SOME
@given(case=cases())
def test_costs_are_those_of_the_calls_one_by_one(case: Case) -> None:
    means = case.reach.mean_costs(**case.places)
    for node in range(len(case.zone)):
        costs = [case.cost(node, pod) for pod in case.met(node)]
        nothing = unreachable_cost(case.location_cost) if case.pods() else 0.0
        assert means[node] == pytest.approx(sum(costs) / len(costs) if costs else nothing)


@SOME
@given(case=cases())
def test_loads_are_those_of_the_calls_one_by_one(case: Case) -> None:
    loads = case.reach.loads(case.callers)
    expected = np.zeros(len(case.zone))
    for node, count in enumerate(case.callers):
        met = case.met(node)
        for pod in set(met):
            expected[pod] += count / len(met)
    assert loads == pytest.approx(expected)
    answered = sum(count for node, count in enumerate(case.callers) if case.met(node))
    assert np.dot(loads, case.endpoints) == pytest.approx(answered)


@SOME
@given(case=cases())
def test_every_endpoint_alike_is_the_mean_over_pairs_by_location(case: Case) -> None:
    """The closed formula: pairs of locations, less the pairs on one node."""
    if not (case.callers.any() and case.endpoints.any()):
        return
    size = len(case.location_cost)
    callers, endpoints = (np.bincount(case.location, count, minlength=size) for count in (case.callers, case.endpoints))
    together = case.callers * case.endpoints * case.location_cost[case.location, case.location]
    pairs = case.callers.sum() * case.endpoints.sum()
    assert case.routed(Routing.ALL) == pytest.approx(
        (callers @ case.location_cost @ endpoints - together.sum()) / pairs
    )


@SOME
@given(case=cases())
def test_the_own_node_is_never_dearer_than_the_zone(case: Case) -> None:
    assert case.routed(Routing.SAME_NODE) <= case.routed(Routing.SAME_ZONE) + 1e-9


@SOME
@given(case=cases())
def test_the_own_zone_is_never_dearer_than_all_where_zones_are_locations(case: Case) -> None:
    if (case.zone == case.location).all():
        assert case.routed(Routing.SAME_ZONE) <= case.routed(Routing.ALL) + 1e-9


@SOME
@given(case=cases())
def test_calls_without_an_endpoint_cost_at_least_as_much_as_any(case: Case) -> None:
    costs = case.reach.mean_costs(**case.places)
    cut = case.reach.scope == Scope.NOWHERE
    if case.pods() and cut.any():
        assert costs[cut].min() >= max(costs.max(), case.location_cost.max())


# Two zones of three nodes (0-2, 3-5) and a node without a zone (6); one location each.
ZONE = np.array([0, 0, 0, 1, 1, 1, -1])
LOCATION = np.array([0, 0, 0, 1, 1, 1, 2])
COST = np.array([[1.0, 5.0, 100.0], [5.0, 1.0, 100.0], [100.0, 100.0, 100.0]])


def on(**counts: int) -> np.ndarray:
    """Replicas on nodes n0 to n6."""
    return np.array([counts.get(f"n{node}", 0) for node in range(7)])


@pytest.mark.parametrize(
    ("routing", "endpoints", "caller", "shares", "cost"),
    [
        pytest.param(Routing.ALL, on(n0=1, n3=1), 0, on(n0=1, n3=1) / 2, 2.5, id="all-own-node-counts-as-any"),
        pytest.param(Routing.ALL, on(n0=1, n3=3), 1, on(n0=1, n3=3) / 4, 4.0, id="all-in-proportion"),
        pytest.param(Routing.SAME_ZONE, on(n0=1, n3=3), 1, on(n0=1), 1.0, id="zone"),
        pytest.param(Routing.SAME_ZONE, on(n0=1, n1=1, n3=1), 1, on(n0=1, n1=1) / 2, 0.5, id="zone-is-blind-to-nodes"),
        pytest.param(Routing.SAME_ZONE, on(n3=1, n4=1), 0, on(n3=1, n4=1) / 2, 5.0, id="zone-without-endpoints"),
        pytest.param(Routing.SAME_ZONE, on(n0=1, n3=1), 6, on(n0=1, n3=1) / 2, 100.0, id="caller-without-a-zone"),
        pytest.param(Routing.SAME_ZONE, on(n0=1, n3=1, n6=2), 0, on(n0=1, n3=1, n6=2) / 4, 51.25, id="one-has-no-zone"),
        pytest.param(Routing.SAME_NODE, on(n0=1, n1=3), 0, on(n0=1), 0.0, id="node"),
        pytest.param(Routing.SAME_NODE, on(n0=1, n3=1), 1, on(n0=1), 1.0, id="node-else-zone"),
        pytest.param(Routing.SAME_NODE, on(n3=1, n4=1), 0, on(n3=1, n4=1) / 2, 5.0, id="node-else-zone-else-all"),
        pytest.param(Routing.SAME_NODE, on(n0=1, n6=1), 6, on(n6=1), 0.0, id="a-node-needs-no-zone"),
        pytest.param(Routing.SAME_NODE, on(n0=1, n6=1), 1, on(n0=1, n6=1) / 2, 50.5, id="node-else-all"),
        pytest.param(Routing.LOCAL, on(n0=2, n1=1), 0, on(n0=1), 0.0, id="local"),
        pytest.param(Routing.LOCAL, on(n0=2, n1=1), 2, on(), 100.0, id="local-and-nothing-there"),
        pytest.param(Routing.ALL, on(), 0, on(), 0.0, id="no-endpoints-at-all"),
    ],
)
def test_by_hand(routing: Routing, endpoints: np.ndarray, caller: int, shares: np.ndarray, cost: float) -> None:
    found = reach(routing, endpoints, ZONE)
    assert found.shares(caller) == pytest.approx(shares)
    assert found.mean_costs(location=LOCATION, location_cost=COST)[caller] == pytest.approx(cost)


def test_eleven_replicas_over_three_zones_are_loaded_evenly() -> None:
    zone = np.array([0, 1, 2])
    even, uneven = np.array([4, 4, 3]), np.array([3, 4, 4])
    assert reach(Routing.SAME_ZONE, even, zone).loads(even) == pytest.approx(1.0)
    assert reach(Routing.SAME_ZONE, even, zone).loads(uneven) == pytest.approx([3 / 4, 1.0, 4 / 3])


def test_one_zone_name_in_two_regions_is_one_zone_of_two_locations() -> None:
    zone, location = np.array([0, 0, 1]), np.array([0, 1, 2])
    costs = np.array([[1.0, 80.0, 90.0], [80.0, 1.0, 90.0], [90.0, 90.0, 1.0]])
    found = reach(Routing.SAME_ZONE, np.array([1, 1, 1]), zone)
    assert found.shares(0) == pytest.approx([0.5, 0.5, 0.0])
    assert found.mean_costs(location=location, location_cost=costs)[0] == pytest.approx(40.0)


@pytest.mark.parametrize(
    ("matrix", "cost"),
    [
        pytest.param([[1.0, 5.0], [5.0, 1.0]], 100.0, id="as-an-unknown-cost"),
        pytest.param([[1.0, 3000.0], [4.0, 1.0]], 3000.0, id="as-the-dearest-way"),
        pytest.param(np.zeros((0, 0)), 100.0, id="no-nodes"),
    ],
)
def test_what_a_call_to_nothing_costs(matrix: list[list[float]], cost: float) -> None:
    assert unreachable_cost(np.array(matrix)) == cost


def test_an_edge_without_callers_costs_nothing() -> None:
    assert edge_cost(np.zeros(3), np.ones(3)) == 0.0
