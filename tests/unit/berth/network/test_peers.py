"""What the network makes of each node: against plain loops over edges, and by hand where it is easy to get wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from berth.network.peers import (
    bandwidth_cost,
    beyond_limits,
    cost_towards,
    edge_costs,
    over_links,
    short_of_bandwidth,
)

SOME = settings(max_examples=200, deadline=None, derandomize=True)


@dataclass(frozen=True)
class Network:
    """Nodes in locations and a pod's edges to placed peers; whole numbers, so that sums are exact."""

    location: np.ndarray
    location_cost: np.ndarray
    homes: np.ndarray
    outward: np.ndarray
    inward: np.ndarray
    demand: np.ndarray
    free: np.ndarray
    """bandwidth left for the pod, by node"""
    peers_free: np.ndarray
    """bandwidth left for its peers, by node"""

    @property
    def places(self) -> dict[str, np.ndarray]:
        return {"location": self.location, "location_cost": self.location_cost}

    def cost(self, origin: int, target: int) -> float:
        return 0.0 if origin == target else float(self.location_cost[self.location[origin], self.location[target]])


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Up to six nodes in up to three locations, up to five edges, some of them to one node."""
    size, places, edges = draw(st.integers(1, 6)), draw(st.integers(1, 3)), draw(st.integers(0, 5))

    def numbers(low: int, high: int, count: int) -> np.ndarray:
        return np.array(draw(st.lists(st.integers(low, high), min_size=count, max_size=count)), dtype=np.float64)

    return Network(
        location=numbers(0, places - 1, size).astype(np.int32),
        location_cost=numbers(0, 9, places * places).reshape(places, places),
        homes=numbers(0, size - 1, edges).astype(np.intp),
        outward=numbers(0, 9, edges),
        inward=numbers(0, 9, edges),
        demand=numbers(0, 4, edges),
        free=numbers(-2, 9, size),
        peers_free=numbers(-2, 9, size),
    )


def path(first: int, second: int) -> tuple[int, ...]:
    """Two links on the way between two nodes: one of the lower, one of the higher number."""
    return () if first == second else tuple(sorted({min(first, second), 6 + max(first, second)}))


@SOME
@given(network=networks())
def test_costs_are_those_of_the_edges_one_by_one(network: Network) -> None:
    found = cost_towards(network.homes, network.outward, network.inward, **network.places)
    price = network.peers_free
    money = bandwidth_cost(network.homes, network.demand, price=price)
    for node in range(len(network.location)):
        edges = zip(network.homes, network.outward, network.inward, network.demand, strict=True)
        network_cost = bandwidth = 0.0
        for home, outward, inward, demand in edges:
            network_cost += outward * network.cost(node, home) + inward * network.cost(home, node)
            bandwidth += demand * (price[node] + price[home]) if home != node else 0.0
        assert (found[node], money[node]) == (network_cost, bandwidth)


@SOME
@given(network=networks())
def test_limits_are_those_of_the_edges_one_by_one(network: Network) -> None:
    # 9 is the highest cost there is: it stands for no limit.
    outward = np.where(network.outward == 9, np.inf, network.outward)
    inward = np.where(network.inward == 9, np.inf, network.inward)
    found = beyond_limits(network.homes, outward, inward, **network.places)
    for node in range(len(network.location)):
        edges = zip(network.homes, outward, inward, strict=True)
        assert found[node] == any(network.cost(node, h) > o or network.cost(h, node) > i for h, o, i in edges)


@SOME
@given(network=networks())
def test_bandwidth_is_short_where_a_budget_would_be_exceeded(network: Network) -> None:
    found = short_of_bandwidth(network.homes, network.demand, free=network.free, peers_free=network.peers_free)
    for node in range(len(network.location)):
        edges = [(h, d) for h, d in zip(network.homes, network.demand, strict=True) if h != node]
        need = sum(demand for _, demand in edges)
        short = 0 < need > network.free[node]
        for home in {home for home, _ in edges}:
            received = sum(demand for other, demand in edges if other == home)
            short |= 0 < received > network.peers_free[home]
        assert found[node] == short


@SOME
@given(network=networks(), data=st.data())
def test_links_are_over_where_what_runs_through_one_exceeds_it(network: Network, data: st.DataObject) -> None:
    size = len(network.location)
    free = np.array(data.draw(st.lists(st.integers(0, 6), min_size=12, max_size=12)), dtype=np.float64)
    among = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    found = over_links(network.homes, network.demand, path=path, kind=np.arange(size), free=free.tolist(), among=among)
    for node in range(size):
        load = np.zeros(12)
        for home, demand in zip(network.homes.tolist(), network.demand, strict=True):
            load[list(path(node, home))] += demand
        over = np.flatnonzero((load > free) & (load > 0)).tolist() if among[node] else []
        named = [(short.link, short.wanted) for short in found if short.nodes[node]]
        assert named == [(link, load[link]) for link in over[:1]]


@SOME
@given(network=networks(), data=st.data())
def test_nodes_of_one_kind_are_looked_at_once(network: Network, data: st.DataObject) -> None:
    free, among = [data.draw(st.integers(-2, 9)) for _ in range(9)], np.ones(len(network.location), np.bool_)

    def path(first: int, second: int) -> list[int]:
        here, there = sorted(network.location[[first, second]].tolist())
        return [] if first == second else [3 * here + there]

    def short(kind: np.ndarray) -> list[tuple[int, float, int]]:
        found = over_links(network.homes, network.demand, path=path, kind=kind, free=free, among=among)
        return sorted((one.link, one.wanted, node) for one in found for node in np.flatnonzero(one.nodes).tolist())

    assert short(network.location) == short(np.arange(len(among)))


@SOME
@given(network=networks())
def test_edges_between_given_nodes_cost_what_their_locations_say(network: Network) -> None:
    nodes = np.arange(len(network.location))
    origins, targets = np.repeat(nodes, nodes.size), np.tile(nodes, nodes.size)
    expected = [network.cost(int(origin), int(target)) for origin, target in zip(origins, targets, strict=True)]
    assert edge_costs(origins, targets, **network.places).tolist() == expected


TWO_ZONES = {"location": np.array([0, 0, 1]), "location_cost": np.array([[1.0, 9.0], [7.0, 1.0]])}
"""Nodes 0 and 1 in one zone, 2 in the other; the way there costs 9, the way back 7."""


@pytest.mark.parametrize(
    ("outward", "inward", "costs"),
    [
        pytest.param(1, 0, [0.0, 1.0, 7.0], id="the-pod-calls"),
        pytest.param(0, 1, [0.0, 1.0, 9.0], id="the-pod-is-called"),
        pytest.param(2, 1, [0.0, 3.0, 23.0], id="weighted-in-both-directions"),
    ],
)
def test_a_peer_on_the_first_node_costs(outward: float, inward: float, costs: list[float]) -> None:
    found = cost_towards(np.array([0]), np.array([outward]), np.array([inward]), **TWO_ZONES)
    assert found.tolist() == costs


@pytest.mark.parametrize(
    ("homes", "limits", "beyond"),
    [
        pytest.param([0], [0.0], [False, True, True], id="own-node-only"),
        pytest.param([0], [1.0], [False, False, True], id="own-zone"),
        pytest.param([0], [7.0], [False, False, False], id="the-limit-itself-is-allowed"),
        pytest.param([0, 2], [1.0, 1.0], [True, True, True], id="two-zones-at-once"),
        pytest.param([0, 0], [0.0, 9.0], [False, True, True], id="two-on-one-node"),
        pytest.param([], [], [False, False, False], id="no-peer"),
    ],
)
def test_limits_of_calls_rule_out(homes: list[int], limits: list[float], beyond: list[bool]) -> None:
    nobody = np.full(len(homes), np.inf)
    found = beyond_limits(np.array(homes, dtype=np.intp), np.array(limits), nobody, **TWO_ZONES)
    assert found.tolist() == beyond


@pytest.mark.parametrize(
    ("homes", "free", "short"),
    [
        pytest.param([0], [9, 2, 9], [False, True, False], id="the-pods-node"),
        pytest.param([0], [2, 9, 9], [False, True, True], id="a-full-peer-takes-the-pod-itself"),
        pytest.param([0, 1], [2, 2, 9], [True, True, True], id="two-full-peers-take-nobody"),
        pytest.param([0, 0], [9, 9, 5], [False, False, True], id="edges-to-one-node-add-up"),
        pytest.param([1], [9, -1, 9], [True, False, True], id="overdrawn-and-nothing-added"),
    ],
)
def test_three_units_of_bandwidth_to_each_peer(homes: list[int], free: list[float], short: list[bool]) -> None:
    left = np.array(free, dtype=np.float64)
    found = short_of_bandwidth(np.array(homes), np.full(len(homes), 3.0), free=left, peers_free=left)
    assert found.tolist() == short


@SOME
@given(
    edges=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**61)), max_size=5),
    free=st.lists(st.integers(-(2**61), 2**62), min_size=4, max_size=4),
)
@example(edges=[(0, 2**54 - 1)], free=[2**54 - 1, 0, 0, 0])  # no float
def test_whole_numbers_are_compared_exactly_however_large(edges: list[tuple[int, int]], free: list[int]) -> None:
    homes, demand = (np.array([edge[n] for edge in edges], dtype=np.int64) for n in (0, 1))
    left = np.array(free, dtype=np.int64)
    found = short_of_bandwidth(homes, demand, free=left, peers_free=left)
    capacity = [max(0, amount) for amount in free]
    everywhere: dict[str, Any] = {"kind": np.arange(4), "among": np.ones(4, np.bool_)}
    found_over = over_links(homes, demand, path=lambda one, other: {one, other}, free=capacity, **everywhere)
    over = [any(short.nodes[node] for short in found_over) for node in range(4)]
    for node in range(4):
        away = [(home, amount) for home, amount in edges if home != node]
        need = sum(amount for _, amount in away)
        by_home = {home: sum(amount for other, amount in away if other == home) for home, _ in away}
        full = any(0 < amount > free[home] for home, amount in by_home.items())
        # Nothing is wider than 2**62: where more is needed, no budget counts as enough.
        assert found[node] == (full or 0 < min(need, 2**62) > free[node])
        load = {link: sum(a for h, a in edges if link in {node, h}) for link in range(4)}
        assert over[node] == any(load[link] > capacity[link] for link in (node, *(h for h, amount in edges if amount)))
