"""Network cost and hard limits of one pod towards its placed peers, and the score that comes of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.network.costs import UNKNOWN_COST, NetworkCosts, Place
from berth.network.limits import LimitedEdge
from berth.network.routing import Routing
from berth.scheduling.framework.cycle_state import CycleState, PeerEdges
from berth.scheduling.framework.plugin import cheapest_first
from berth.scheduling.gang.problem import Infrastructure
from berth.scheduling.gang.state import InfrastructureState
from berth.scheduling.plugins.network_overhead import NetworkOverhead
from tests.support.builders import node, pod
from tests.support.filtering import cluster
from tests.support.placement import both_ways

PLACES = [Place("us-west-1", "Z1"), Place("us-west-1", "Z2"), Place("us-east-1", "Z3"), Place("us-east-1", "Z4")]
COSTS = NetworkCosts(
    zones=both_ways({("Z1", "Z2"): 5.0, ("Z3", "Z4"): 10.0}), regions=both_ways({("us-west-1", "us-east-1"): 20.0})
)
LOCATION = np.array([0, 0, 1, 1, 2, 2, 3, 3], dtype=np.int32)


@dataclass(frozen=True)
class Edge:
    """A placed peer."""

    node: int
    limit: float = math.inf
    calls_us: bool = False


@dataclass
class View:
    """What the plugin says of eight nodes, two in each place."""

    cost: npt.NDArray[np.float64] | None
    violated: npt.NDArray[np.bool_]
    score: npt.NDArray[np.float64] | None


def view(*edges: Edge, costs: NetworkCosts = COSTS) -> View:
    state = cluster([node(f"n-{number}") for number in range(1, 9)])
    infrastructure = Infrastructure.of(
        list(state.node_index),
        ["cpu"],
        1.0,
        location=LOCATION,
        location_cost=costs.matrix(PLACES),
        score_cost=costs.matrix(PLACES, unknown=UNKNOWN_COST),
    )
    cycle = CycleState(
        state.info(pod("p")),
        state,
        infrastructure=InfrastructureState(infrastructure),
        edges=PeerEdges.of([(edge.node, not edge.calls_us, 0, 1) for edge in edges]),
        limits=[limited(edge) for edge in edges],
    )
    violated = np.zeros(8, dtype=np.bool_)
    for rejected in NetworkOverhead().filter(cycle):
        violated |= rejected.nodes
    return View(NetworkOverhead().cost(cycle), violated, NetworkOverhead().score(cycle, state.alive))


def limited(edge: Edge) -> LimitedEdge:
    return LimitedEdge(edge.limit, Routing.ALL, *(([], [edge.node]) if edge.calls_us else ([edge.node],)))


def towards(node: int, *, limit: float = math.inf, calls_us: bool = False) -> Edge:
    return Edge(node, limit, calls_us)


def cost_at(node: int, edge: Edge, costs: NetworkCosts) -> float:
    cost = view(edge, costs=costs).cost
    assert cost is not None
    return float(cost[node])


def test_conformance_example() -> None:
    # n-1..n-8; p2 stands on n-5 and p1, which depends on it, is scored.
    seen = view(towards(4))
    assert seen.cost is not None
    assert seen.cost.tolist() == [20, 20, 20, 20, 0, 1, 10, 10]
    assert seen.score is not None
    assert cheapest_first(seen.score).tolist() == [0, 0, 0, 0, 100, 95, 50, 50]
    assert not seen.violated.any()


def test_edges_count_in_both_directions() -> None:
    # p2 between p1@n-2, which calls it, and p3@n-1, which it calls: upstream would look at p3 only.
    seen = view(towards(1, calls_us=True), towards(0))
    assert seen.cost is not None
    assert seen.cost.tolist() == [1, 1, 10, 10, 40, 40, 40, 40]


def test_an_asymmetric_cost_is_that_of_the_calling_direction() -> None:
    costs = NetworkCosts(zones={("Z1", "Z2"): 3.0, ("Z2", "Z1"): 8.0})
    assert cost_at(2, towards(0), costs) == 8.0
    assert cost_at(2, towards(0, calls_us=True), costs) == 3.0


class TestUnknownCosts:
    """West to east is dear and Z1 to Z2 cut: nothing is known of two zones of one region."""

    FAR = NetworkCosts(regions=both_ways({("us-west-1", "us-east-1"): 800.0}))

    def test_the_cost_is_above_all_known_ones(self) -> None:
        assert cost_at(2, towards(0), self.FAR) > cost_at(4, towards(0), self.FAR) == 800.0

    def test_the_score_is_upstreams(self) -> None:
        score = view(towards(0), costs=self.FAR).score
        assert score is not None
        assert score.tolist() == [0, 1, 100, 100, 800, 800, 800, 800]
        assert cheapest_first(score).tolist() == [100, 100, 88, 88, 0, 0, 0, 0]

    def test_a_limit_that_the_known_pair_exceeds_holds_for_the_cut_one(self) -> None:
        assert view(towards(0, limit=300), costs=self.FAR).violated.astype(int).tolist() == [0, 0] + 6 * [1]


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


@given(
    st.lists(
        st.builds(
            Edge,
            node=st.integers(0, 7),
            limit=st.sampled_from([0.0, 1.0, 5.0, 10.0, 20.0, math.inf]),
            calls_us=st.booleans(),
        ),
        max_size=12,
    )
)
def test_view_equals_plain_addition(neighbours: list[Edge]) -> None:
    seen = view(*neighbours)
    assert (seen.cost is None) is not bool(neighbours)
    for slot in range(8):
        total, broken = 0.0, False
        for neighbour in neighbours:
            if neighbour.node == slot:
                continue
            here, there = PLACES[LOCATION[slot]], PLACES[LOCATION[neighbour.node]]
            cost = COSTS.between(there, here) if neighbour.calls_us else COSTS.between(here, there)
            assert cost is not None
            total += cost
            broken |= cost > neighbour.limit
        assert (0.0 if seen.cost is None else seen.cost[slot]) == total
        assert seen.violated[slot] == broken
