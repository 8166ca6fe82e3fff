"""Strategy `berth`: what it is for. Whole applications on one node, few cut edges, retries, large shapes.

Left out: planning time and comparison with bounds (bench/phare measures them).
"""

from __future__ import annotations

import numpy as np
import pytest

from bench.phare.boutique import EDGES
from bench.phare.scenarios import Workload, applications, edge_clusters
from berth.scheduling.gang import Infrastructure, InfrastructureState, PlacedPeers, Weights, plan
from hack.harness.gang import commit, violations
from tests.support.gang import app, boutique, nodes, only, zoned


def edge_cost(cost: float, edges: int) -> float:
    return cost / edges


def filled(*free: float) -> Infrastructure:
    """Return nodes of 20 cores with these left."""
    return nodes(*[20.0] * len(free), free=[[amount, 1000.0] for amount in free])


class TestWholeApplications:
    def test_one_node_when_it_fits(self) -> None:
        result = plan(zoned(6, 4000), boutique())
        assert len(set(result.assignment.tolist())) == 1
        assert result.cost == 0.0

    def test_the_fullest_node_that_still_fits(self) -> None:
        assert plan(filled(20, 12, 15, 9), app(5, 5)).assignment.tolist() == [1, 1]

    def test_a_negative_fit_spreads(self) -> None:
        assert plan(filled(12, 20, 15), app(5, 5), Weights(fit=-1e-4)).assignment.tolist() == [1, 1]

    def test_the_cheapest_node_rules_over_the_fullest(self) -> None:
        infrastructure = nodes(10, 20, price=[[2.0, 0.0], [1.0, 0.0]])
        assert plan(infrastructure, app(5, 5)).assignment.tolist() == [1, 1]

    def test_splits_when_that_is_cheaper_than_the_edge(self) -> None:
        infrastructure = nodes(5, 50, price=[[1.0, 0.0], [2.0, 0.0]], bandwidth_price=0.5)
        split = plan(infrastructure, app(5, 5, edges=[(0, 1)], bandwidth=4.0))
        assert sorted(split.assignment.tolist()) == [0, 1]
        assert split.cost == 19.0
        joint = plan(infrastructure, app(5, 5, edges=[(0, 1)], bandwidth=6.0))
        assert joint.assignment.tolist() == [1, 1]

    def test_near_what_it_talks_to(self) -> None:
        for home in range(8):
            application = app(3, 3, edges=[(0, 1)], placed_peers=PlacedPeers.of([0, 1], [home, home]))
            assert plan(zoned(2, 10), application).assignment.tolist() == [home, home]

    def test_next_to_a_full_peer_in_its_zone(self) -> None:
        infrastructure = zoned(3, 10)
        state = InfrastructureState(infrastructure)
        state.free[4] = [0.0, 1000.0]
        result = plan(state, app(3, 3, edges=[(0, 1)], placed_peers=PlacedPeers.of([0], [4])))
        assert set(result.assignment.tolist()) <= {3, 5}
        assert result.cost == 1.0


class TestPartitions:
    @pytest.mark.parametrize("per_zone", [4, 6, 60, 300], ids=lambda count: f"{4 * count}-nodes")
    def test_a_third_per_node_stays_in_one_zone(self, per_zone: int) -> None:
        infrastructure = zoned(per_zone, 450)
        result = plan(infrastructure, boutique())
        assert result.complete
        assert len({int(infrastructure.location[node]) for node in result.assignment.tolist()}) == 1
        assert edge_cost(result.cost, len(EDGES)) <= 0.75

    def test_groups_one_after_another_on_nodes_of_a_third(self) -> None:
        infrastructure = zoned(30, 450)
        state, placed = InfrastructureState(infrastructure), []
        for _ in range(25):
            application = boutique()
            result = plan(state, application)
            assert result.complete
            commit(state, application, result.assignment)
            placed.append((application, result.assignment))
            assert edge_cost(result.cost, len(EDGES)) < 2
        assert violations(infrastructure, placed) == []

    def test_the_zone_with_room(self) -> None:
        infrastructure = zoned(4, 450)
        state = InfrastructureState(infrastructure)
        for node in range(12):
            state.free[node] = [250.0, 1000.0]
        assert set(plan(state, boutique()).assignment.tolist()) == {12, 13, 14, 15}

    def test_several_zones_when_none_can_pack_it(self) -> None:
        # Three nodes of 450 have room for 1270, but no way to divide the parts among them.
        result = plan(zoned(3, 450), boutique())
        assert result.complete
        assert len(set(result.assignment.tolist())) == 4

    def test_chatty_pairs_share_a_node(self) -> None:
        application = app(4, 4, 4, 4, edges=[(0, 2), (1, 3), (0, 1)], weight=[9, 9, 1])
        result = plan(zoned(2, 8), application)
        assert result.assignment[0] == result.assignment[2] != result.assignment[1] == result.assignment[3]
        assert result.cost == 1.0

    def test_zones_that_are_near_when_none_has_room(self) -> None:
        # Each zone holds half: the two zones of one region are 5 apart, or 10 in the other.
        result = plan(zoned(1, 8), app(4, 4, 4, 4, edges=[(0, 1), (1, 2), (2, 3)]))
        assert set(result.assignment.tolist()) == {0, 1}
        assert result.cost == 5.0

    def test_a_hard_limit_rules_over_cost(self) -> None:
        # The cheap zone has room for one part only; the limit forbids the other zone for its neighbour.
        infrastructure = nodes(
            5,
            5,
            5,
            price=[[1.0, 0.0], [4.0, 0.0], [4.0, 0.0]],
            location=[0, 1, 1],
            location_cost=[[1.0, 9.0], [9.0, 1.0]],
        )
        application = app(5, 5, edges=[(0, 1)], max_cost=5.0, weight=0.0)
        assert sorted(plan(infrastructure, application).assignment.tolist()) == [1, 2]

    @pytest.mark.parametrize(
        ("replicas", "cores"), [(5, 2000.0), (27, 4000.0)], ids=["55-components", "297-components"]
    )
    def test_many_replicas(self, replicas: int, cores: float) -> None:
        infrastructure, application = zoned(50, cores), boutique(replicas)
        result = plan(infrastructure, application)
        assert result.complete
        assert violations(infrastructure, [(application, result.assignment)]) == []
        assert edge_cost(result.cost, len(application.edges)) < 1


class TestRetries:
    def test_cheap_nodes_without_bandwidth_are_no_dead_end(self) -> None:
        count = 60
        infrastructure = nodes(
            *[6.0] * count,
            *[6.0] * 4,
            price=[[1.0, 0.0]] * count + [[3.0, 0.0]] * 4,
            bandwidth_capacity=[0.5] * count + [50.0] * 4,
        )
        chain = app(3, 3, 3, 3, edges=[(0, 1), (1, 2), (2, 3)], bandwidth=2.0)
        result = plan(infrastructure, chain)
        assert result.complete
        assert violations(infrastructure, [(chain, result.assignment)]) == []

    def test_cheap_leftovers_are_no_dead_end(self) -> None:
        infrastructure = nodes(
            *[2.0] * 90, *[8.0] * 6, price=[[1.0, 0.0]] * 90 + [[3.0, 0.0]] * 6, bandwidth_capacity=3.0
        )
        ring = app(2, 2, 2, 2, edges=[(0, 1), (1, 2), (2, 3), (3, 0)], bandwidth=2.0)
        result = plan(infrastructure, ring)
        assert result.complete
        assert len(set(result.assignment.tolist())) < 4

    def test_small_nodes_and_strong_demand(self) -> None:
        infrastructure = edge_clusters(150, 0, cores=(40, 80), memory=(16.0, 64.0))
        state = InfrastructureState(infrastructure)
        for application in applications(0, Workload(count=55, multiplier=100)):
            result = plan(state, application)
            assert result.complete
            commit(state, application, result.assignment)

    def test_a_bound_component_finds_its_node_among_thousands(self) -> None:
        infrastructure = nodes(*[8.0] * 3000, price=[[1.0, 0.0]] * 2999 + [[9.0, 0.0]])
        result = plan(infrastructure, app(1, 9 - 2, edges=[(0, 1)], allowed=only(3000, (2999,), None)))
        assert result.complete
        assert result.assignment[0] == 2999


def test_prices_and_network_together() -> None:
    # Half the price is worth a network cost of 5 at weight 0.1, not at weight 10.
    infrastructure = nodes(
        6, 6, 6, price=[[1.0, 0.0], [2.0, 0.0], [2.0, 0.0]], location=[0, 1, 1], location_cost=[[1.0, 5.0], [5.0, 1.0]]
    )
    application = app(4, 4, edges=[(0, 1)])
    assert 0 in plan(infrastructure, application, Weights(network=0.1)).assignment.tolist()
    assert sorted(plan(infrastructure, application, Weights(network=10.0)).assignment.tolist()) == [1, 2]


def test_permuting_components_does_not_change_the_cost_of_a_live_plan() -> None:
    infrastructure, application = zoned(10, 450), boutique()
    reference = plan(infrastructure, application)
    order = np.random.default_rng(1).permutation(11)
    back = np.argsort(order)
    shuffled = app(*application.requests[order, 0], edges=[(back[one], back[other]) for one, other in EDGES])
    assert plan(infrastructure, shuffled).cost == pytest.approx(reference.cost, abs=2.0)
