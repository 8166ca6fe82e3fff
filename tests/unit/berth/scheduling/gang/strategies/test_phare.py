"""Strategy `phare`: order, perceived cost, ties, candidates and backtracking on hand-computed cases."""

from __future__ import annotations

import numpy as np
import pytest

from berth.scheduling.gang import Application, Infrastructure, InfrastructureState, Weights, plan
from berth.scheduling.gang.instance import Instance
from berth.scheduling.gang.strategies.phare import CANDIDATES, Phare
from hack.harness.gang import commit
from tests.support.gang import app, nodes, only


def search(infrastructure: Infrastructure, application: Application) -> Phare:
    return Phare(Instance(InfrastructureState(infrastructure), application, Weights()))


class TestOrder:
    @pytest.mark.parametrize(
        ("selectors", "expected"),
        [
            pytest.param([False, False, False], [1, 2, 0], id="importance-descending"),
            pytest.param([True, False, False], [0, 1, 2], id="selector-first"),
            pytest.param([True, False, True], [2, 0, 1], id="selectors-by-importance"),
        ],
    )
    def test_selectors_then_importance(self, selectors: list[bool], expected: list[int]) -> None:
        # z: A 2+4=6, B 4+2+3=9, C 6+2=8.
        application = app(2, 4, 6, edges=[(0, 1), (1, 2)], bandwidth=[10, 5], has_selector=selectors)
        assert search(nodes(100), application).order == expected

    def test_equal_importance_goes_by_name(self) -> None:
        assert search(nodes(100), app(2, 2, 2, names=("c", "a", "b"))).order == [1, 2, 0]


class TestPerceivedCost:
    def test_cost_over_affinity(self) -> None:
        # A(2)-B(4), demand 10: z_A = y_A = 6; a has room for both, b only for A.
        infrastructure = nodes(10, 5, price=[[1.0, 0.0], [0.5, 0.0]])
        phare = search(infrastructure, app(2, 4, edges=[(0, 1)], bandwidth=[10]))
        assert phare.computing(0).tolist() == [1.0, 0.0]
        assert phare.perceived(0)[0] == pytest.approx(2.0)

    def test_dear_nodes_without_affinity_are_told_apart(self) -> None:
        infrastructure = nodes(5, 5, price=[[2e12, 0.0], [1e12, 0.0]])
        cost = search(infrastructure, app(2, 4, edges=[(0, 1)], bandwidth=[10])).perceived(0)
        assert cost[1] < cost[0] < np.inf

    def test_affinity_is_the_minimum_over_resources(self) -> None:
        # Cores: y 12, z 9, all free 9 -> 0.75. Memory: y 3, z 2.5, free 2.5 -> 0.75, free 2 -> 0.75 squared.
        application = app(4, 2, 6, edges=[(0, 1), (0, 2)], bandwidth=[10, 5])
        infrastructure = Infrastructure.of(["a", "b"], ("cpu", "memory"), [[9.0, 2.5], [9.0, 2.0]])
        assert search(infrastructure, application).computing(0) == pytest.approx([0.75, 0.75**2], abs=1e-6)

    def test_labels_that_admit_half_the_neighbours_halve_the_affinity(self) -> None:
        application = app(1, 1, 1, edges=[(0, 1), (0, 2)], allowed=only(2, None, (0,), None))
        assert search(nodes(10, 10), application).computing(0).tolist() == [1.0, 0.5]

    def test_placing_raises_the_cost_of_neighbours_elsewhere(self) -> None:
        infrastructure = nodes(10, 10, bandwidth_price=[2.0, 3.0])
        phare = search(infrastructure, app(1, 1, edges=[(0, 1)], bandwidth=[4]))
        assert phare.placement.marginal(1).tolist() == [0.0, 0.0]
        phare.placement.place(0, 0)
        # Four units over a link that costs 2 at one end and 3 at the other.
        assert phare.placement.marginal(1).tolist() == [0.0, 20.0]

    def test_threshold_hides_room_except_from_those_who_name_the_node(self) -> None:
        application = app(4, 4, named=only(1, (0,), ()))
        phare = search(nodes(10, threshold=0.5), application)
        assert phare.placement.feasible(0).tolist() == [True]
        phare.placement.place(1, 0)
        assert phare.placement.feasible(0).tolist() == [True]
        assert search(nodes(7, threshold=0.5), application).placement.feasible(1).tolist() == [False]


class TestCandidates:
    @pytest.mark.parametrize(
        ("free", "expected"),
        [
            pytest.param([[9, 9], [10, 9], [10, 10]], [1, 0, 2], id="used-first-then-more-resources"),
            pytest.param([[10, 10], [10, 10], [10, 10]], [0, 1, 2], id="name"),
            pytest.param([[10, 10], [8, 8], [9, 9]], [2, 1, 0], id="of-the-used-the-roomier"),
        ],
    )
    def test_ties(self, free: list[list[float]], expected: list[int]) -> None:
        infrastructure = Infrastructure.of(["a", "b", "c"], ("cpu", "memory"), [[10, 10]] * 3, free=free)
        assert search(infrastructure, app(1)).candidates(0) == expected

    def test_cheaper_goes_before_used(self) -> None:
        infrastructure = nodes(10, 10, price=[[1.0, 0.0], [0.9, 0.0]], free=[[5, 10], [10, 1000]])
        assert search(infrastructure, app(1)).candidates(0) == [1, 0]

    def test_no_more_than_m(self) -> None:
        assert CANDIDATES == 10
        assert search(nodes(*[10.0] * 14), app(1)).candidates(0) == list(range(10))

    def test_infeasible_nodes_are_none(self) -> None:
        assert search(nodes(1, 1), app(2)).candidates(0) == []


class TestBacktracking:
    def test_an_early_choice_is_taken_back(self) -> None:
        # The important B (z 4) prefers the cheap node that only A may use.
        infrastructure = nodes(4, 4, price=[[1.0, 0.0], [2.0, 0.0]])
        application = app(3, 4, allowed=only(2, (0,), None))
        result = plan(infrastructure, application, strategy="phare")
        assert result.assignment.tolist() == [0, 1]

    def test_gives_up_in_bounded_time(self) -> None:
        # Twelve parts of 6 on eleven nodes of 11: pooled room is there, a placement is not.
        result = plan(nodes(*[11.0] * 11), app(*[6.0] * 12), strategy="phare")
        assert not result.complete
        assert set(result.assignment.tolist()) == {-1}

    def test_partial_keeps_what_fits(self) -> None:
        result = plan(nodes(*[11.0] * 11), app(*[6.0] * 12), strategy="phare", partial=True)
        assert (result.assignment >= 0).sum() == 11

    def test_five_hundred_components_do_not_recurse(self) -> None:
        count = 500
        chain = [(index, index + 1) for index in range(count - 1)]
        result = plan(nodes(*[60.0] * 10), app(*[1.0] * count, edges=chain, bandwidth=1.0), strategy="phare")
        assert result.complete


def test_equal_nodes_fill_one_after_another() -> None:
    # Two unconnected parts each: nothing but price and ties decides.
    infrastructure = nodes(*[20.0] * 6, price=[[1.0, 0.0]] * 6)
    state = InfrastructureState(infrastructure)
    for placed in range(1, 9):
        application = app(4, 6)
        commit(state, application, plan(state, application, strategy="phare").assignment)
        assert np.count_nonzero((state.free[:, 0] > 0) & (state.free[:, 0] < 20)) == placed % 2
    assert np.count_nonzero(state.free[:, 0] < 20) == 4


def test_without_slack_a_placed_neighbour_still_counts_in_the_neighbourhood() -> None:
    # y counts all neighbours wherever they are: with equal demands (y = z) the last part leaves the node.
    infrastructure = nodes(10.0, 10.0, price=[[1.0, 0.0]] * 2)
    result = plan(infrastructure, app(3, 3, 4, edges=[(0, 1), (1, 2)], bandwidth=1.0), strategy="phare")
    assert result.assignment.tolist() == [1, 0, 0]
