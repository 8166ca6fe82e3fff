"""Runner-ups of a whole plan at once agree with asking the placement state about every component."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.scheduling.gang import Application, Infrastructure, InfrastructureState, Weights, plan
from berth.scheduling.gang import runner_ups as alternatives
from berth.scheduling.gang.budget import finish
from berth.scheduling.gang.instance import Instance
from berth.scheduling.gang.placement_state import PlacementState
from berth.scheduling.gang.runner_ups import runner_ups
from tests.support.gang import app, nodes, only, zoned
from tests.support.gang_problems import problems

SOME = settings(max_examples=150, deadline=None, derandomize=True)
WEIGHTS = [Weights(), Weights(network=0.0), Weights(network=2.0, price=0.5, bandwidth=3.0), Weights(bandwidth=0.0)]


def one_by_one(instance: Instance, assignment: np.ndarray) -> dict[int, tuple[set[int], np.ndarray]]:
    """Return, per placed component, the other nodes that the placement would take it on, and the cost of every node."""
    placement = PlacementState(instance)
    placed = np.flatnonzero(assignment >= 0).tolist()
    for component in placed:
        placement.place(component, int(assignment[component]))
    found = {}
    for component in placed:
        placement.remove(component)
        others = set(np.flatnonzero(placement.feasible(component)).tolist()) - {int(assignment[component])}
        found[component] = (others, placement.marginal(component))
        placement.place(component, int(assignment[component]))
    return found


@SOME
@given(problem=problems(), weights=st.sampled_from(WEIGHTS), narrow=st.booleans(), partial=st.booleans())
def test_they_are_what_the_placement_state_finds_one_by_one(
    problem: tuple[Infrastructure, Application], weights: Weights, narrow: bool, partial: bool
) -> None:
    infrastructure, application = problem
    instance = Instance(InfrastructureState(infrastructure), application, weights)
    result = plan(infrastructure, application, weights, partial=partial)
    assignment = result.assignment.astype(np.intp)
    with pytest.MonkeyPatch.context() as patch:
        if narrow:
            patch.setattr(alternatives, "_CELLS", infrastructure.size)
        found = finish(runner_ups(instance, assignment))
    expected = one_by_one(instance, assignment)
    assert set(found) == set(expected)
    for component, (others, cost) in expected.items():
        options = found[component]
        assert {option.node for option in options} <= others
        assert len({option.node for option in options}) == len(options) == min(3, len(others))
        assert [option.cost for option in options] == pytest.approx(sorted(cost[list(others)])[:3])
        assert [option.cost for option in options] == pytest.approx([cost[option.node] for option in options])


@pytest.mark.parametrize("strategy", ["berth", "greedy", "phare"])
def test_the_first_of_equal_nodes_comes_first(strategy: str) -> None:
    result = plan(nodes(9, 9, 9, 9, 9), app(1), strategy=strategy, explain=True)
    home = int(result.assignment[0])
    assert [option.node for option in result.runner_ups[0]] == [node for node in range(5) if node != home][:3]


def test_only_nodes_with_room_after_the_whole_plan_are_named() -> None:
    result = plan(nodes(4, 3, 3), app(2, 2, 2, allowed=only(3, (0,), (0,), (1,))), explain=True)
    assert result.assignment.tolist() == [0, 0, 1]
    assert result.runner_ups == {0: (), 1: (), 2: ()}


@pytest.mark.parametrize(
    ("limit", "named"),
    [
        pytest.param(9, [], id="own-zone-only"),
        pytest.param(10, [3], id="own-region"),
        pytest.param(20, [3, 0, 1], id="every-region"),
    ],
)
def test_limits_cut_alternatives_by_zone(limit: float, named: list[int]) -> None:
    application = app(1, 1, edges=[(0, 1)], max_cost=[limit], allowed=only(4, (2,), None))
    result = plan(zoned(1, 10), application, explain=True)
    assert result.assignment.tolist() == [2, 2]
    assert [option.node for option in result.runner_ups[1]] == named


def test_nothing_placed_has_no_alternatives() -> None:
    assert plan(nodes(1), app(2), explain=True).runner_ups == {}
