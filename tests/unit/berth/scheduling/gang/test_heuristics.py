"""Heuristics: each charge by hand, and what they are worth over many applications.

Left out: how they steer single plans (strategies/test_berth.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bench.phare.bound import accepted_at_most, lowest_cost
from bench.phare.scenarios import Workload, applications, chains, edge_clusters, opportunistic_nodes
from berth.scheduling.gang import Application, Infrastructure, InfrastructureState, Weights, plan
from berth.scheduling.gang.heuristics import Balance, Waste, static_heuristics
from berth.scheduling.gang.instance import Instance
from hack.harness.gang import commit, violations
from tests.support.gang import app, nodes, only

NOTHING: dict[str, float] = {"opportunity_cost": 0.0, "scarcity": 0.0, "avoid_named": 0.0, "fit": 0.0}


def instance_of(
    infrastructure: Infrastructure, application: Application, *, seen: Application | None = None, **weights: float
) -> Instance:
    state = InfrastructureState(infrastructure)
    if seen is not None:
        state.observe(seen)
    return Instance(state, application, Weights(**(NOTHING | weights)))


def charges(instance: Instance) -> Any:
    columns = np.arange(instance.infrastructure.size)
    charge = static_heuristics(instance, columns, instance.state.free.T.copy())
    return (
        charge if isinstance(charge, float) else np.broadcast_to(charge, (instance.components, columns.size)).tolist()
    )


class TestStatic:
    def test_without_weights_nothing_is_charged(self) -> None:
        assert charges(instance_of(nodes(4, 8), app(1))) == 0.0

    def test_fit_charges_what_stays_free(self) -> None:
        infrastructure = nodes(8, 8, free=[[2, 250], [8, 1000]])
        assert charges(instance_of(infrastructure, app(1, 1), fit=1.0)) == [[0.25, 1.0]] * 2

    def test_scarcity_charges_the_share_of_a_small_room(self) -> None:
        # The selector of the first component wakes the charge; memory is plentiful.
        application = app(2, 4, named=only(3, (0,), ()))
        found = charges(instance_of(nodes(4, 8, 8, threshold=[1, 1, 0.5]), application, scarcity=1.0))
        assert found == [[0.5, 0.25, 0.0], [1.0, 0.5, 0.0]]

    def test_named_nodes_are_left_to_those_who_name_them(self) -> None:
        application = app(1, 1, named=only(20, (3,), ()))
        found = np.array(charges(instance_of(nodes(*[9.0] * 20), application, avoid_named=2.0)))
        assert np.argwhere(found).tolist() == [[1, 3]]
        assert found[1, 3] == 2.0

    def test_a_selector_of_many_nodes_claims_none(self) -> None:
        application = app(1, 1, named=only(20, tuple(range(10)), ()))
        assert not np.any(charges(instance_of(nodes(*[9.0] * 20), application, avoid_named=2.0)))

    def test_opportunity_cost_charges_the_saving_against_the_marginal_node(self) -> None:
        # A typical component takes 2 cores; the two cheap nodes hold two each. Looking ahead by 3 components reaches
        # the second node, by 5 the third.
        infrastructure = nodes(4, 4, 100, price=[[1.0, 0.0], [2.0, 0.0], [5.0, 0.0]])
        application = app(2, 4)
        for lookahead, saving in ((1.5, [2.0, 0.0, 0.0]), (2.5, [8.0, 6.0, 0.0])):
            instance = instance_of(infrastructure, application, seen=app(2), opportunity_cost=1.0, lookahead=lookahead)
            assert charges(instance) == [saving, [2 * amount for amount in saving]]


class TestWaste:
    INFRASTRUCTURE = nodes(10, 10, price=[[1.0, 0.0], [3.0, 0.0]])

    @pytest.mark.parametrize(
        ("cores", "charge"),
        [
            pytest.param([3.0, 3.0], [1.5, 4.5], id="too-little-for-anything-known"),
            pytest.param([4.0, 9.0], [0.0, 0.0], id="the-smallest-known-still-fits"),
            pytest.param([0.0, 1.0], [0.0, 1.5], id="nothing-is-left"),
        ],
    )
    def test_leftovers_that_nothing_fits_cost_half_their_price(self, cores: list[float], charge: list[float]) -> None:
        waste = Waste(instance_of(self.INFRASTRUCTURE, app(1), seen=app(4, 6)), np.array([0, 1]))
        rest = np.array([cores, [500.0, 500.0]])
        assert waste.everywhere(rest).tolist() == charge
        assert waste.at(rest[:, ::-1], np.array([1, 0])).tolist() == charge[::-1]
        assert [waste.on(rest[:, column].tolist(), column) for column in (0, 1)] == charge

    @pytest.mark.parametrize(
        ("infrastructure", "seen", "weight", "wanted"),
        [
            pytest.param(INFRASTRUCTURE, app(4), 0.5, True, id="priced-and-known"),
            pytest.param(INFRASTRUCTURE, None, 0.5, False, id="nothing-known"),
            pytest.param(nodes(10, 10), app(4), 0.5, False, id="no-prices"),
            pytest.param(INFRASTRUCTURE, app(4), 0.0, False, id="no-weight"),
        ],
    )
    def test_wanted(
        self, infrastructure: Infrastructure, seen: Application | None, weight: float, wanted: bool
    ) -> None:
        assert Waste.wanted(instance_of(infrastructure, app(1), seen=seen, waste=weight)) is wanted


class TestBalance:
    PRICED = nodes(8, 8, price=[[1.0, 1.0]] * 2)

    def test_leftovers_are_worth_the_typical_components_that_they_hold(self) -> None:
        seen = Application.of([[2.0, 4.0]])
        balance = Balance(instance_of(self.PRICED, app(1), seen=seen, balance=0.5), np.array([0, 1]))
        # A typical component costs 6; the scarcer resource counts.
        assert balance.worth(np.array([[4.0, 8.0], [4.0, 16.0]])).tolist() == [3.0, 12.0]

    @pytest.mark.parametrize(
        ("room", "wanted"),
        [
            pytest.param([[8.0, 2.0], [4.0, 40.0]], True, id="nodes-run-out-of-different-resources"),
            pytest.param([[8.0, 6.0], [4.0, 4.0]], False, id="all-run-out-of-memory"),
        ],
    )
    def test_wanted_where_it_tells_nodes_apart(self, room: list[list[float]], wanted: bool) -> None:
        seen = Application.of([[2.0, 4.0]])
        assert Balance.wanted(instance_of(self.PRICED, app(1), seen=seen), np.array(room)) is wanted


class TestArrivals:
    """What heuristics are for: the applications that come later."""

    def run(
        self, infrastructure: Infrastructure, arrivals: list[Any], weights: Weights | None = None
    ) -> tuple[int, float]:
        state, placed = InfrastructureState(infrastructure), []
        for application in arrivals:
            result = plan(state, application, weights)
            if result.complete:
                commit(state, application, result.assignment)
                placed.append((application, result))
        assert violations(infrastructure, [(application, result.assignment) for application, result in placed]) == []
        return len(placed), sum(result.cost for _, result in placed)

    def test_waste_fills_nodes_to_the_last_core(self) -> None:
        # Nothing smaller than 4 exists: 6 + 4 leaves nothing on the cheap node, 8 would leave 2 for ever.
        infrastructure = nodes(10, 100, price=[[1.0, 0.0], [1.05, 0.0]])
        state = InfrastructureState(infrastructure)
        state.observe(app(4))
        result = plan(state, app(8, 6, 4), Weights(opportunity_cost=0.0))
        assert result.assignment.tolist() == [1, 0, 0]

    def test_saturated_clusters_take_what_pooled_cores_allow(self) -> None:
        infrastructure = edge_clusters(12, 5)
        arrivals = applications(5, Workload(count=60))
        placed, _ = self.run(infrastructure, arrivals)
        assert placed >= accepted_at_most(infrastructure, arrivals) - 1

    def test_balance_places_more_when_memory_is_scarce(self) -> None:
        infrastructure = edge_clusters(15, 1, memory=(20.0, 64.0))
        arrivals = applications(1, Workload(count=60))
        plain = Weights(balance=0.0, opportunity_cost=0.0)
        assert self.run(infrastructure, arrivals)[0] > self.run(infrastructure, arrivals, plain)[0]

    def test_opportunity_cost_lowers_the_cost_of_the_whole_arrival(self) -> None:
        infrastructure, arrivals = edge_clusters(40, 3), applications(3, Workload(count=60))
        _, with_lookahead = self.run(infrastructure, arrivals)
        _, plain = self.run(infrastructure, arrivals, Weights(opportunity_cost=0.0, waste=0.0))
        assert with_lookahead < plain

    @pytest.mark.parametrize("multiplier", [1, 100])
    def test_close_to_the_lower_bound(self, multiplier: int) -> None:
        infrastructure, arrivals = edge_clusters(40, 3), applications(3, Workload(count=60, multiplier=multiplier))
        placed, cost = self.run(infrastructure, arrivals)
        assert placed == 60
        assert 1.0 <= cost / lowest_cost(infrastructure, arrivals) < 1.03

    @pytest.mark.parametrize("small", [40, 50, 70, 90])
    def test_room_stays_open_for_those_whom_selectors_bind(self, small: int) -> None:
        infrastructure = opportunistic_nodes(small)
        assert self.run(infrastructure, chains(infrastructure))[0] == 80
