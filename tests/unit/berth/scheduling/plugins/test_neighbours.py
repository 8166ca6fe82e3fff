"""Network cost and hard limits of one pod towards its placed neighbours, and the score that comes of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.network.costs import NetworkCosts, Place
from berth.scheduling.plugins.neighbours import Neighbour, NeighbourView, normalise, view_neighbours
from tests.support.placement import both_ways

PLACES = [Place("us-west-1", "Z1"), Place("us-west-1", "Z2"), Place("us-east-1", "Z3"), Place("us-east-1", "Z4")]
COSTS = NetworkCosts(
    zones=both_ways({("Z1", "Z2"): 5.0, ("Z3", "Z4"): 10.0}), regions=both_ways({("us-west-1", "us-east-1"): 20.0})
)
LOCATION = np.array([0, 0, 1, 1, 2, 2, 3, 3], dtype=np.int32)


def view(*neighbours: Neighbour, costs: NetworkCosts = COSTS, limits: bool = True) -> NeighbourView:
    return view_neighbours(neighbours, location=LOCATION, location_cost=costs.matrix(PLACES), enforce_limits=limits)


def towards(node: int, *, limit: float = math.inf, calls_us: bool = False) -> Neighbour:
    return Neighbour(node, max_cost=limit, bandwidth=0.0, calls_us=calls_us)


def test_conformance_example() -> None:
    # n-1..n-8; p2 stands on n-5 and p1, which depends on it, is scored.
    seen = view(towards(4))
    assert seen.cost.tolist() == [20, 20, 20, 20, 0, 1, 10, 10]
    assert normalise(seen.cost).tolist() == [0, 0, 0, 0, 100, 95, 50, 50]
    assert not seen.violated.any()
    assert seen.edges == 1


def test_edges_count_in_both_directions() -> None:
    # p2 between p1@n-2, which calls it, and p3@n-1, which it calls: upstream would look at p3 only.
    seen = view(towards(1, calls_us=True), towards(0))
    assert seen.cost.tolist() == [1, 1, 10, 10, 40, 40, 40, 40]
    assert seen.edges == 2


def test_an_asymmetric_cost_is_that_of_the_calling_direction() -> None:
    costs = NetworkCosts(zones={("Z1", "Z2"): 3.0, ("Z2", "Z1"): 8.0})
    assert view(towards(0), costs=costs).cost[2] == 8.0
    assert view(towards(0, calls_us=True), costs=costs).cost[2] == 3.0


class TestLimits:
    @pytest.mark.parametrize(
        ("limit", "violated"),
        [
            pytest.param(1, [0, 0, 1, 1, 1, 1, 1, 1], id="same-zone-only"),
            pytest.param(5, [0, 0, 0, 0, 1, 1, 1, 1], id="cost-equal-to-the-limit-is-fine"),
            pytest.param(20, [0] * 8, id="all-within"),
            pytest.param(math.inf, [0] * 8, id="no-limit"),
        ],
    )
    def test_node_by_node(self, limit: float, violated: list[int]) -> None:
        assert view(towards(0, limit=limit)).violated.astype(int).tolist() == violated

    def test_a_broken_limit_cannot_be_outvoted(self) -> None:
        # Three neighbours would be satisfied in the east, one in the west would not: upstream admits the node.
        satisfied = [towards(node, limit=10) for node in (4, 5, 6)]
        seen = view(*satisfied, towards(0, limit=5))
        assert seen.violated[4:].all()

    def test_the_neighbours_own_node_is_always_satisfied(self) -> None:
        assert view(towards(3, limit=0)).violated.astype(int).tolist() == [1, 1, 1, 0, 1, 1, 1, 1]

    def test_unknown_cost_breaks_a_limit_below_100(self) -> None:
        nothing = NetworkCosts(regions={("us-west-1", "us-east-1"): 20.0})
        assert view(towards(0, limit=99), costs=nothing).violated[4]
        assert not view(towards(0, limit=100), costs=nothing).violated[4]

    def test_without_any_costs_limits_are_not_judged(self) -> None:
        assert not view(towards(0, limit=1), costs=NetworkCosts(), limits=False).violated.any()


@given(
    st.lists(
        st.builds(
            Neighbour,
            node=st.integers(0, 7),
            max_cost=st.sampled_from([0.0, 1.0, 5.0, 10.0, 20.0, math.inf]),
            bandwidth=st.just(0.0),
            calls_us=st.booleans(),
        ),
        max_size=12,
    )
)
def test_view_equals_plain_addition(neighbours: list[Neighbour]) -> None:
    seen = view(*neighbours)
    for node in range(8):
        total, broken = 0.0, False
        for neighbour in neighbours:
            if neighbour.node == node:
                continue
            here, there = PLACES[LOCATION[node]], PLACES[LOCATION[neighbour.node]]
            cost = COSTS.between(there, here) if neighbour.calls_us else COSTS.between(here, there)
            assert cost is not None
            total += cost
            broken |= cost > neighbour.max_cost
        assert seen.cost[node] == total
        assert seen.violated[node] == broken
    assert seen.edges == len(neighbours)


class TestNormalise:
    @pytest.mark.parametrize(
        ("costs", "scores"),
        [
            pytest.param([], [], id="no-node"),
            pytest.param([0, 0], [0, 0], id="all-zero-stays"),
            pytest.param([7, 7, 7], [100, 100, 100], id="all-equal"),
            pytest.param([5], [100], id="one-node"),
            pytest.param([0, 1, 3], [100, 67, 0], id="fractions-are-cut-before-subtracting"),
        ],
    )
    def test_cases(self, costs: list[float], scores: list[float]) -> None:
        assert normalise(np.array(costs, dtype=np.float64)).tolist() == scores

    @given(st.lists(st.integers(0, 10_000), min_size=1, max_size=30))
    def test_lower_cost_never_scores_lower(self, costs: list[int]) -> None:
        scores = normalise(np.array(costs, dtype=np.float64))
        assert ((scores >= 0) & (scores <= 100)).all()
        order = np.argsort(costs, kind="stable")
        if max(costs):
            assert (np.diff(scores[order]) <= 0).all()
